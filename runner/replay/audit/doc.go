// Package audit owns what a run directory must agree on: with itself, and with what
// a replay of the run came to. It refuses to know how a replay is run.
package audit
