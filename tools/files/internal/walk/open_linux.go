package walk

import (
	"cmp"

	"golang.org/x/sys/unix"
)

// open opens a path relative to the tree with the system call openat2 (Linux 5.6), which follows no links. If the kernel
// or a filter refuses that, it uses package os, which needs twice as long for big trees. extraFlags is
// 0, or O_DIRECTORY for a folder.
func (t *Tree) open(path string, extraFlags int) (*Content, error) {
	path = cmp.Or(path, ".")
	how := unix.OpenHow{
		Flags:   uint64(openFlags | extraFlags),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := unix.Openat2(int(t.dir.Fd()), path, &how)
	switch err {
	case nil:
		return &Content{fd: fd, remaining: unlimited}, nil
	case unix.ENOENT, unix.ELOOP, unix.EACCES, unix.ENOTDIR:
		return nil, err
	}
	return t.openInRoot(path, extraFlags)
}
