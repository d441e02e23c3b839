// Package bundle makes a proposal of the run directory that a run left elsewhere.
// Whoever could write to that directory may have written all of it, so nothing of
// it is believed: its chain is checked, its objects are compared with what its
// transcript tells, and where it belongs is found without it. The rules come from
// the base commit, the job file and the environment of this half, and a bundle can
// only make them stricter.
//
// It knows no agent, and runs no command of the repository.
package bundle
