// Package runner owns the pipeline of a run, from a task to exactly one
// outcome: which stage follows which, what each needs from the one before, and
// what is written to the run directory. How a stage does its work is known to
// the packages below; how a run is asked for is known to the command line.
package runner
