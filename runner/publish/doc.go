// Package publish turns a proposal into a publication: it makes the commit, moves the task's
// branch, and describes the change. The Destination is a branch on this machine, or a forge's with
// a pull request. It owns the description, following a moved base, and dealing with concurrent
// publications.
//
// It knows no agent or sandbox, and neither judges nor verifies: the Proposal brings the functions for a moved base.
package publish
