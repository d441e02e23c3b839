// Package layer owns an overlay's changes on disk: who has them mounted, because the kernel
// silently accepts a second mount, and copies of them. It mounts nothing and does not know the
// changes' purpose.
package layer

import "fmt"

// MountedError reports an overlay still mounted by processes of a left sandbox. The kernel would
// accept a second mount with undefined content.
type MountedError struct {
	PID int // of the process inside
}

func (e *MountedError) Error() string {
	return fmt.Sprintf("processes of a sandbox that was left still have its overlay (the first of them is %d)", e.PID)
}

// ForkError explains why an overlaid workspace cannot be copied.
type ForkError struct{ Why string }

func (e *ForkError) Error() string { return "the workspace can't be forked: " + e.Why }
