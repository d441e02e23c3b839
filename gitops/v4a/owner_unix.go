//go:build unix

package v4a

import (
	"io/fs"
	"syscall"
)

// differingOwner returns the owner of a file when that of now is another.
func differingOwner(now, like fs.FileInfo) (uid, gid int, differs bool) {
	a, okA := now.Sys().(*syscall.Stat_t)
	b, okB := like.Sys().(*syscall.Stat_t)
	if !okA || !okB || (a.Uid == b.Uid && a.Gid == b.Gid) {
		return 0, 0, false
	}
	return int(b.Uid), int(b.Gid), true
}
