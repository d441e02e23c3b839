// Package publish takes a proposal to its publication: it makes the commit, takes
// it to the task's branch and tells of it. Where to is a Destination: a
// branch on this machine, or one of a forge with its pull request. It owns what is
// said of a change there, when a change follows a base that moved, and what a run
// finds that others published meanwhile.
//
// It knows no agent and no sandbox, and judges and verifies nothing: what a change
// that follows its base needs of that comes with the Proposal.
package publish
