// Package publish turns a proposal into a publication: it makes the commit, moves the task's branch, and
// describes the change. The Destination is a branch on this machine, or a branch and pull request on a forge.
// The package owns the description, moving a change to a newer base, and handling concurrent publications.
//
// It knows no agent or sandbox. It neither judges nor verifies a change: after a move it calls functions of
// the Proposal.
package publish
