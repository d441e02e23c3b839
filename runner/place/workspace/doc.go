// Package workspace owns the checkout that a run works in: which commit is its
// base, what stood there before the first turn, whether commands left git alone,
// the change set and its files in the run directory, and how the checkout is put
// back, or put together again for a run that goes on. It refuses to know forges,
// tasks and what the change is for.
package workspace
