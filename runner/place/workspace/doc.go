// Package workspace owns a run's checkout: its base, its state before the first turn, the change
// set with its files in the run directory, commands' changes to git, and restoring the checkout or
// a resumed run's work. It does not know forges, tasks or a change's purpose.
package workspace
