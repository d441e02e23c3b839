// Package runner owns the pipeline of a run, from a task to exactly one outcome: the order of
// stages, their inputs, and the run directory. The packages below do the work of stages; the
// command line defines requests.
package runner
