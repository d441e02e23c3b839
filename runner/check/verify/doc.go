// Package verify owns the commands that judge a change: setup, checks on base and change, and the
// table of both. It does not know the change's author or future.
package verify
