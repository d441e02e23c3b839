// Package runner owns the pipeline of a run, from a task to exactly one outcome. It decides the order
// of stages, their inputs, and the run directory. Packages below runner implement the stages.
package runner
