// Package audit verifies a run directory against itself and against a replay. It does not know how
// replays run.
package audit
