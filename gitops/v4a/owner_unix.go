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

// heldByOwner reports whether a directory is sticky and so keeps a user from
// renaming a file in it: neither is the user's. The superuser may.
func heldByOwner(dir, file fs.FileInfo, user int) bool {
	d, okD := dir.Sys().(*syscall.Stat_t)
	f, okF := file.Sys().(*syscall.Stat_t)
	return okD && okF && dir.Mode()&fs.ModeSticky != 0 && user != 0 && int(d.Uid) != user && int(f.Uid) != user
}
