// Package failinglog shortens a GitHub Actions job log to the likely cause of a failure: the end of the
// failing step, marked errors, and the first lines that look like errors. It reads logs of any length in
// bounded memory.
//
// A log is untrusted output of the job's programs, so the package does not interpret its lines.
package failinglog
