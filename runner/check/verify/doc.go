// Package verify owns the commands of a job that say whether a change is good: the
// setup commands before them, the checks on the base and on the change, and the
// table of both. It refuses to know who made the change and what becomes of it.
package verify
