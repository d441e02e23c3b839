// Package resolve finds the targets of a campaign: in its list, in a file, and by searches on the forge. It
// looks them up on the forge, a hundred at a time. Each target is frozen with its commit and, if it cannot
// run, the reason. The package does not know how the plan is used or what runs cost.
//
// Names, paths and values of targets come from strangers. This package only compares them and passes them on.
package resolve
