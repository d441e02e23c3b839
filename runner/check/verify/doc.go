// Package verify owns the commands that judge a change: setup, checks on base and change, and the
// table with both results. It does not know who made the change or what happens to it.
package verify
