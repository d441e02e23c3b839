// Package bundle makes a proposal from a run directory made elsewhere. The directory is not trusted, because
// its author may have written everything in it. The package verifies the chain, compares the objects with the
// transcript, and finds the destination independently. Rules come from the base commit, the job file and this
// half's environment. A bundle can only make them stricter.
//
// The package knows no agent and runs no command of the repository.
package bundle
