package walk

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
)

// Content is an open file or folder, for one goroutine at a time.
type Content struct {
	fd        int
	file      *os.File // the file of fd if package os has opened it, or nil
	remaining int64    // bytes left to read; this saves a read for the end, which costs as much as a small file
}

// unlimited is the value of remaining for reading to the end.
const unlimited = math.MaxInt64

// openFlags open for reading without blocking on a named pipe.
const openFlags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC

// openInRoot opens a path with package os, which opens one folder of the path after the other. extraFlags is 0, or
// O_DIRECTORY for a folder.
func (t *Tree) openInRoot(path string, extraFlags int) (*Content, error) {
	file, err := t.root.OpenFile(path, openFlags|extraFlags, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	wantsFolder := extraFlags&unix.O_DIRECTORY != 0
	switch {
	case err != nil: // returned below
	case !wantsFolder && !info.Mode().IsRegular():
		err = errors.New("not a regular file") // Fd would make reading from a pipe wait
	case t.rules.View.HidesFile(file) != "": // a link has replaced the listed file
		err = fs.ErrPermission
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Content{fd: int(file.Fd()), file: file, remaining: unlimited}, nil
}

// Read reads up to the remaining bytes of a file.
func (c *Content) Read(p []byte) (int, error) {
	if c.remaining <= 0 {
		return 0, io.EOF
	}
	for {
		n, err := unix.Read(c.fd, p)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			c.remaining -= int64(n)
			return n, nil
		}
	}
}

// Close closes the file or folder.
func (c *Content) Close() error {
	if c.file != nil {
		return c.file.Close()
	}
	return unix.Close(c.fd)
}

// names returns the names in a folder, in the kernel's order. It leaves out temporary files of patches.
func (c *Content) names() ([]string, error) {
	var names []string
	buffer := make([]byte, 16<<10)
	for {
		n, err := unix.ReadDirent(c.fd, buffer)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		case n <= 0:
			return slices.DeleteFunc(names, tree.IsTemporary), nil
		default:
			_, _, names = unix.ParseDirent(buffer[:n], -1, names)
		}
	}
}

// stat returns information about a folder's entry, without following links.
func (c *Content) stat(name string) (Entry, error) {
	var info unix.Stat_t
	for {
		err := unix.Fstatat(c.fd, name, &info, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return Entry{}, err
		}
		return Entry{Name: name, Mode: fileType(uint32(info.Mode)), modified: info.Mtim.Nano(), size: info.Size, device: uint64(info.Dev), inode: info.Ino}, nil
	}
}

// fileType converts the file type of the system to that of package fs.
func fileType(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	}
	return fs.ModeIrregular
}
