// Package layer owns what an overlay keeps of its changes on the disk, in a folder of its
// own: who has it mounted, since the kernel takes a second mount without a word, and
// copies of it. It mounts nothing, and refuses to know what the changes are for.
package layer

import "fmt"

// HeldError says that an overlay is mounted still: a sandbox that was left has processes
// that have not ended. The kernel would take a second mount without a word, and either
// would show what it likes.
type HeldError struct {
	PID int // of the process inside
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("processes of a sandbox that was left still have its overlay (the first of them is %d)", e.PID)
}

// ForkError says that a workspace in an overlay can't be had once more, and why.
type ForkError struct{ Why string }

func (e *ForkError) Error() string { return "the workspace can't be forked: " + e.Why }
