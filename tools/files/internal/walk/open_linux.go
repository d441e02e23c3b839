package walk

import (
	"cmp"

	"golang.org/x/sys/unix"
)

// open opens a path in one system call, openat2 (Linux 5.6), by which the
// kernel keeps it below the folder and follows no link. Package os opens
// folder after folder, which takes twice as long for a tree of many files. It does so
// here where the kernel or a filter of system calls refuses.
func (t *Tree) open(path string, extra int) (*Content, error) {
	path = cmp.Or(path, ".")
	how := unix.OpenHow{
		Flags:   uint64(flags | extra),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := unix.Openat2(int(t.dir.Fd()), path, &how)
	switch err {
	case nil:
		return &Content{fd: fd, left: toItsEnd}, nil
	case unix.ENOENT, unix.ELOOP, unix.EACCES, unix.ENOTDIR:
		return nil, err
	}
	return t.openInRoot(path, extra)
}
