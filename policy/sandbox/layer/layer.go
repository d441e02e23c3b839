// Package layer owns an overlay's changes on disk. It records which process has them mounted, because
// the kernel silently accepts a second mount. It copies, merges and removes them. It mounts nothing and
// does not know the purpose of the changes.
package layer

import "fmt"

// MountedError reports that processes of an earlier sandbox still have an overlay mounted. The kernel
// would accept a second mount, with undefined content.
type MountedError struct {
	PID int // the first process of that sandbox
}

func (e *MountedError) Error() string {
	return fmt.Sprintf("processes of a sandbox that was left still have its overlay (the first of them is %d)", e.PID)
}

// ForkError explains why an overlaid workspace cannot be copied.
type ForkError struct{ Why string }

func (e *ForkError) Error() string { return "the workspace can't be forked: " + e.Why }
