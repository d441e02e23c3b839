// Package worker owns one agent at work: the model that answers it, the tools
// that it has, what it is told before its first turn, after a restart and at an
// end that comes too early, its questions to people, and the budget that ends it.
// It refuses to know how the work is verified and published.
package worker
