// Package resolve finds the targets of a campaign file: from its list, a file, a command and the
// forge. It looks them up on the forge, a hundred at a time, and freezes them with any reason
// against their start. It does not know the plan's use or the cost of runs.
//
// Names, paths and values of targets come from strangers: they are text to compare and pass on.
package resolve
