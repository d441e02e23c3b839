// Package failinglog shortens a GitHub Actions job log to the cause of a failure: the failing
// step's end, marked errors, and the first lines that look like errors. It reads logs of any length
// in bounded memory.
//
// It does not interpret lines: a log is untrusted output of the job's programs.
package failinglog
