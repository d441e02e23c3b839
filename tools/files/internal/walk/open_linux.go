package walk

import (
	"cmp"

	"golang.org/x/sys/unix"
)

// open opens a path with one openat2 call (Linux 5.6), which stays below the folder and follows no
// link. Package os needs twice as long for big trees; it is the fallback if the kernel or a filter
// refuses openat2.
func (t *Tree) open(path string, extra int) (*Content, error) {
	path = cmp.Or(path, ".")
	how := unix.OpenHow{
		Flags:   uint64(openFlags | extra),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := unix.Openat2(int(t.dir.Fd()), path, &how)
	switch err {
	case nil:
		return &Content{fd: fd, remaining: unlimited}, nil
	case unix.ENOENT, unix.ELOOP, unix.EACCES, unix.ENOTDIR:
		return nil, err
	}
	return t.openInRoot(path, extra)
}
