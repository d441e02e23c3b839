// Package bundle makes a proposal from a foreign run directory. It is untrusted, because whoever
// could write it may have written everything: its chain is verified, its objects are compared with
// its transcript, and its destination is found independently. The rules come from the base commit,
// the job file and this half's environment; a bundle can only make them stricter.
//
// It knows no agent and runs no command of the repository.
package bundle
