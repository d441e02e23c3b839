// Package copytree copies files and folders with times, modes, symbolic and hard links. It overwrites
// nothing, follows no links, and skips sockets, pipes and devices.
package copytree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Into copies the content of the folder from into a tree. It does nothing if from is missing.
func Into(ctx context.Context, to *os.Root, from string) error {
	source, err := os.OpenRoot(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	return (&Copier{To: to}).Content(ctx, source)
}

// Folder copies the folder called name, with its content, from one root to the same path in
// another.
func Folder(ctx context.Context, to, from *os.Root, name string) error {
	return (&Copier{To: to}).Path(ctx, from, name)
}

// Copier copies files and folders with times, modes, symbolic and hard links. It never overwrites
// an existing file. It skips sockets, pipes and devices, and records unreadable paths.
type Copier struct {
	To           *os.Root // the root of the copy
	Omit         func(name string) bool
	Replacements map[string]string // other content for files, by path; "" means that the file is omitted
	// OnCopied gets the metadata of each file and link that did not change during its copy, and the
	// metadata of the copy.
	OnCopied func(full string, original, copied *unix.Stat_t)
	Unread   []string // paths that could not be read

	ctx         context.Context
	hardLinks   map[[2]uint64]string // the copy of a file with hard links, by device and inode
	cannotClone bool                 // the file systems cannot share content, so data is copied
	buffer      []byte
}

// folder is an open folder and its copy. Copier uses the names in it with system calls, because package os
// needs twice as many calls for each file.
type folder struct {
	from, to *os.File
	path     string // "" or with a final slash
}

// listedAtOnce is the number of entries read from a folder before the context is checked again.
const listedAtOnce = 4096

// smallFile is the size in bytes below which a file is copied with one buffer.
const smallFile = 64 << 10

// Path copies one path of from and makes its parent folders.
func (c *Copier) Path(ctx context.Context, from *os.Root, name string) error {
	if _, err := from.Lstat(name); err != nil {
		return c.recordUnreadable(name, err)
	}
	parent, base := path.Split(name)
	if parent != "" {
		if err := c.To.MkdirAll(path.Clean(parent), 0o777); err != nil {
			return ignoreExisting(err) // a file in place of a parent stays, and nothing is copied
		}
	}
	return c.inFolder(ctx, from, parent, func(at folder) error { return c.copyEntry(at, base) })
}

// Content copies everything in from.
func (c *Copier) Content(ctx context.Context, from *os.Root) error {
	return c.inFolder(ctx, from, "", c.copyContent)
}

// inFolder opens a folder of from and its existing copy for do. name is "" or ends with a slash.
func (c *Copier) inFolder(ctx context.Context, from *os.Root, name string, do func(folder) error) error {
	c.ctx = ctx
	if c.buffer == nil {
		c.buffer = make([]byte, smallFile)
	}
	original, err := from.OpenFile(path.Clean(name), syscall.O_DIRECTORY, 0)
	if err != nil {
		return c.recordUnreadable(name, err)
	}
	defer original.Close()
	copied, err := c.To.OpenFile(path.Clean(name), syscall.O_DIRECTORY, 0)
	if err != nil {
		return ignoreExisting(err)
	}
	defer copied.Close()
	return do(folder{original, copied, name})
}

// copyContent copies a folder's content.
func (c *Copier) copyContent(at folder) error {
	for {
		names, err := at.from.Readdirnames(listedAtOnce)
		for _, name := range names {
			if err := c.copyEntry(at, name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.recordUnreadable(at.path, err)
		}
	}
}

// copyEntry copies a file, link or folder. It skips devices, pipes and existing files, and records
// unreadable ones.
func (c *Copier) copyEntry(at folder, name string) error {
	full := at.path + name
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case c.Omit != nil && c.Omit(full):
		return nil
	}
	info, err := lstatIn(at.from, name)
	if err != nil {
		return c.recordUnreadable(full, err)
	}
	var copied *unix.Stat_t
	content, replaced := c.Replacements[full]
	switch kind := info.Mode & unix.S_IFMT; {
	case kind == unix.S_IFDIR:
		return c.copyFolder(at, name, info)
	case kind == unix.S_IFLNK:
		copied, err = c.copyLink(at, name, info)
	case kind != unix.S_IFREG || replaced && content == "":
		return nil
	case replaced:
		return c.To.WriteFile(full, []byte(content), 0o666)
	default:
		copied, err = c.copyFile(at, name, info)
	}
	if err == nil && copied != nil && c.OnCopied != nil {
		c.OnCopied(full, info, copied)
	}
	if err = c.recordUnreadable(full, ignoreExisting(err)); err != nil {
		return fmt.Errorf("%q: %w", full, err)
	}
	return nil
}

// ignoreExisting returns nil for an error about an existing destination, and any other error
// unchanged.
func ignoreExisting(err error) error {
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// recordUnreadable records an unreadable path and returns nil. It also returns nil for a path that
// was deleted meanwhile. Any other error is returned, and stops the copy.
func (c *Copier) recordUnreadable(name string, err error) error {
	if regularfile.Absent(err) {
		return nil
	}
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	c.Unread = append(c.Unread, name)
	return nil
}

// copyFolder copies a folder into a new or existing one, but never through a link. It sets the mode
// and time only of a folder that it made.
func (c *Copier) copyFolder(at folder, name string, info *unix.Stat_t) error {
	full := at.path + name
	if pathname.IsTooDeep(full) {
		c.Unread = append(c.Unread, full)
		return nil
	}
	below, err := openFolderIn(at.from, name)
	if err != nil {
		return c.recordUnreadable(full, err)
	}
	defer below.Close()
	mkdirErr := unix.Mkdirat(int(at.to.Fd()), name, 0o700)
	if ignoreExisting(mkdirErr) != nil {
		return fmt.Errorf("%q: %w", full, mkdirErr)
	}
	into, err := openFolderIn(at.to, name) // fails for a link, which may point anywhere in the tree
	if err != nil {
		return ignoreExisting(err)
	}
	defer into.Close()
	if err := c.copyContent(folder{below, into, full + "/"}); err != nil || mkdirErr != nil {
		return err
	}
	return errors.Join(setTime(at.to, name, info), into.Chmod(fs.FileMode(info.Mode).Perm()))
}

// copyLink copies a symbolic link with its modification time. It returns the metadata of the copy, or nil
// if the original changed meanwhile.
func (c *Copier) copyLink(at folder, name string, info *unix.Stat_t) (*unix.Stat_t, error) {
	n, err := unix.Readlinkat(int(at.from.Fd()), name, c.buffer)
	if err != nil {
		return nil, err
	}
	if err := unix.Symlinkat(string(c.buffer[:n]), int(at.to.Fd()), name); err != nil {
		return nil, err
	}
	if err := setTime(at.to, name, info); err != nil {
		return nil, err
	}
	if now, err := lstatIn(at.from, name); err != nil || !isUnchanged(now, info) {
		return nil, nil //nolint:nilerr // it was replaced meanwhile
	}
	return lstatIn(at.to, name)
}

// copyFile copies a regular file. If another name of the same file was copied before, it makes a
// hard link to that copy. It returns the metadata of the copy, or nil if the original changed meanwhile.
func (c *Copier) copyFile(at folder, name string, info *unix.Stat_t) (*unix.Stat_t, error) {
	if info.Nlink <= 1 {
		return c.copyToNewFile(at, name, info)
	}
	id := [2]uint64{uint64(info.Dev), info.Ino}
	if first, is := c.hardLinks[id]; is {
		if err := c.To.Link(first, at.path+name); err != nil {
			return nil, err
		}
		return lstatIn(at.to, name)
	}
	copied, err := c.copyToNewFile(at, name, info)
	if err == nil {
		if c.hardLinks == nil {
			c.hardLinks = map[[2]uint64]string{}
		}
		c.hardLinks[id] = at.path + name
	}
	return copied, err
}

// copyToNewFile is copyFile without hard links.
func (c *Copier) copyToNewFile(at folder, name string, info *unix.Stat_t) (*unix.Stat_t, error) {
	in, err := openIn(at.from, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(in)
	opened, err := fstat(in)
	if err != nil {
		return nil, err
	}
	if opened.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("it is no regular file any more")
	}
	copied, err := c.copyOpened(in, opened, at.to, name)
	if err != nil {
		return nil, err
	}
	if now, err := fstat(in); err != nil || !isUnchanged(now, info) {
		return nil, err
	}
	return copied, nil
}

// copyOpened copies an open file to a new one, with its permissions and modification time. It returns the
// metadata of the copy.
func (c *Copier) copyOpened(in int, opened *unix.Stat_t, to *os.File, name string) (copied *unix.Stat_t, err error) {
	perm := uint32(opened.Mode & 0o777)
	out, err := openIn(to, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, perm)
	if err != nil {
		return nil, err
	}
	err = errors.Join(c.copyData(out, in, opened), setTime(to, name, opened))
	if err == nil {
		copied, err = fstat(out)
	}
	if err == nil && uint32(copied.Mode&0o777) != perm { // the umask of the process has bits of it
		if err = unix.Fchmod(out, perm); err == nil {
			copied, err = fstat(out)
		}
	}
	return copied, errors.Join(err, unix.Close(out))
}

// copyData copies a file's content. It clones the content if the file system can. Otherwise it
// copies only the data between holes, so a sparse file stays sparse.
func (c *Copier) copyData(out, in int, info *unix.Stat_t) error {
	if !c.cannotClone {
		err := clone(out, in)
		if err == nil {
			return nil
		}
		c.cannotClone = errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EXDEV)
	}
	if info.Size < smallFile && info.Blocks*blockSize >= info.Size {
		return c.copyRange(out, in, 0, cmp.Or(info.Size, regularfile.Small)) // some file systems know no sizes
	}
	for at := int64(0); at < info.Size; {
		data, end, err := nextData(in, at, info.Size)
		if err == nil {
			err = c.copyRange(out, in, data, end)
		}
		if err != nil {
			return err
		}
		at = end
	}
	return unix.Ftruncate(out, info.Size)
}

// blockSize is the unit of Stat_t.Blocks.
const blockSize = 512

// copyRange copies the content from one offset to another, or to the end of the file.
func (c *Copier) copyRange(out, in int, at, end int64) error {
	for at < end {
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		part := c.buffer[:min(int64(len(c.buffer)), end-at)]
		n, err := retryInterrupted(func() (int, error) { return unix.Pread(in, part, at) })
		if err != nil || n == 0 {
			return err
		}
		for part = part[:n]; len(part) > 0; part = part[n:] {
			if n, err = retryInterrupted(func() (int, error) { return unix.Pwrite(out, part, at) }); err != nil {
				return err
			}
			at += int64(n)
		}
	}
	return nil
}

// nextData returns the bounds of the next data at or after offset at. If the file system does not
// know its holes, it returns everything up to size.
func nextData(f int, at, size int64) (start, end int64, err error) {
	start, err = unix.Seek(f, at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return size, size, nil
	case errors.Is(err, syscall.EINVAL), errors.Is(err, errors.ErrUnsupported):
		return at, size, nil
	case err != nil:
		return 0, 0, err
	}
	end, err = unix.Seek(f, start, unix.SEEK_HOLE)
	return start, min(end, size), err
}

// retryInterrupted repeats a system call that a signal interrupts, as package os does.
func retryInterrupted[T any](call func() (T, error)) (T, error) {
	for {
		if result, err := call(); !errors.Is(err, unix.EINTR) {
			return result, err
		}
	}
}

// openIn opens a name in a folder, without following links.
func openIn(dir *os.File, name string, flags int, perm uint32) (fd int, err error) {
	return retryInterrupted(func() (int, error) {
		return unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
	})
}

// openFolderIn opens a folder in another. The error for anything else is ENOTDIR.
func openFolderIn(dir *os.File, name string) (*os.File, error) {
	fd, err := openIn(dir, name, unix.O_DIRECTORY, 0)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, syscall.ENOTDIR
	case err != nil:
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// lstatIn returns the metadata of a name in a folder, without following links.
func lstatIn(dir *os.File, name string) (*unix.Stat_t, error) {
	return retryInterrupted(func() (*unix.Stat_t, error) {
		info := &unix.Stat_t{}
		return info, unix.Fstatat(int(dir.Fd()), name, info, unix.AT_SYMLINK_NOFOLLOW)
	})
}

func fstat(fd int) (*unix.Stat_t, error) {
	info := &unix.Stat_t{}
	return info, unix.Fstat(fd, info)
}

// setTime sets the times of a name in a folder to the modification time of info.
func setTime(dir *os.File, name string, info *unix.Stat_t) error {
	return unix.UtimesNanoAt(int(dir.Fd()), name, []unix.Timespec{info.Mtim, info.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// isUnchanged reports whether a file is still the same, with the same content.
func isUnchanged(a, b *unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Mode == b.Mode && a.Size == b.Size && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}
