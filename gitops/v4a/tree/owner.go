package tree

import (
	"io/fs"
	"syscall"
)

// owner returns who owns a file, where the system says so.
func owner(info fs.FileInfo) (uid, gid int, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}

// heldByOwner reports whether a directory is sticky and so keeps a user from
// renaming a file in it: neither is the user's. The superuser may.
func heldByOwner(dir, file fs.FileInfo, user int) bool {
	ofDir, _, knownDir := owner(dir)
	ofFile, _, knownFile := owner(file)
	return knownDir && knownFile && dir.Mode()&fs.ModeSticky != 0 && user != 0 && ofDir != user && ofFile != user
}
