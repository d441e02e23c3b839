// Package copytree copies files and folders with times, modes, symbolic and hard links. It overwrites
// nothing, follows no links, and skips sockets, pipes and devices.
package copytree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
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
	Replacements map[string]string                                            // other content for files, by path; "" means that the file is omitted
	OnCopied     func(from, to *os.Root, full string, info fs.FileInfo) error // called for each file and link
	Unread       []string                                                     // paths that could not be read

	ctx         context.Context
	hardLinks   map[[2]uint64]string // the copy of a file with hard links, by device and inode
	depth       int                  // number of folders above the current one
	cannotClone bool                 // the file systems cannot share content, so data is copied
	buffer      []byte               // reused for small files
}

// listedAtOnce is the number of entries read from a folder before the context is checked again.
const listedAtOnce = 4096

// smallFile is the size in bytes below which a file is copied with one buffer.
const smallFile = 64 << 10

// Path copies one path of from and makes its parent folders.
func (c *Copier) Path(ctx context.Context, from *os.Root, name string) error {
	c.ctx = ctx
	info, err := from.Lstat(name)
	if err != nil {
		return c.recordUnreadable(name, err)
	}
	if dir := path.Dir(name); dir != "." {
		if err := c.To.MkdirAll(dir, 0o777); err != nil {
			return ignoreExisting(err)
		}
	}
	return c.copyEntry(from, c.To, name, name, info)
}

// Content copies everything in from.
func (c *Copier) Content(ctx context.Context, from *os.Root) error {
	c.ctx = ctx
	return c.copyContent(from, c.To, "")
}

// copyContent copies a folder's content. prefix is its path with a final slash, or "".
func (c *Copier) copyContent(from, to *os.Root, prefix string) error {
	list, err := from.Open(".")
	if err != nil {
		return c.recordUnreadable(prefix, err)
	}
	defer list.Close()
	for {
		entries, err := list.ReadDir(listedAtOnce)
		for _, e := range entries {
			full := prefix + e.Name()
			info, failed := e.Info()
			if failed != nil {
				failed = c.recordUnreadable(full, failed)
			} else {
				failed = c.copyEntry(from, to, e.Name(), full, info)
			}
			if failed != nil {
				return failed
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.recordUnreadable(prefix, err)
		}
	}
}

// copyEntry copies a file, link or folder. name is its name in the folders from and to, full its
// path. It skips devices, pipes and existing files, and records unreadable ones.
func (c *Copier) copyEntry(from, to *os.Root, name, full string, info fs.FileInfo) (err error) {
	content, replaced := c.Replacements[full]
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case c.Omit != nil && c.Omit(full):
		return nil
	case info.IsDir():
		return c.copyFolder(from, to, name, full, info)
	case info.Mode()&fs.ModeSymlink != 0:
		err = c.copyLink(from, to, name, info)
	case !info.Mode().IsRegular() || replaced && content == "":
		return nil
	case replaced:
		return to.WriteFile(name, []byte(content), 0o666)
	default:
		err = c.copyFile(from, to, name, full, info)
	}
	if err == nil && c.OnCopied != nil {
		err = c.OnCopied(from, to, full, info)
	}
	return c.recordUnreadable(full, ignoreExisting(err))
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
func (c *Copier) copyFolder(from, to *os.Root, name, full string, info fs.FileInfo) error {
	if c.depth++; c.depth > objects.DeepestPath {
		c.depth--
		c.Unread = append(c.Unread, full)
		return nil
	}
	defer func() { c.depth-- }()
	below, err := regularfile.OpenFolder(from, name)
	if err != nil {
		return c.recordUnreadable(full, err)
	}
	defer below.Close()
	mkdirErr := to.Mkdir(name, 0o700)
	if ignoreExisting(mkdirErr) != nil {
		return mkdirErr
	}
	isNew := mkdirErr == nil
	if target, err := to.Lstat(name); err != nil || !target.IsDir() { // a link, which may point anywhere in the tree
		return ignoreExisting(err)
	}
	into, err := regularfile.OpenFolder(to, name)
	if err != nil {
		return ignoreExisting(err)
	}
	defer into.Close()
	if err := c.copyContent(below, into, full+"/"); err != nil {
		return err
	}
	if !isNew {
		return nil
	}
	return errors.Join(to.Chtimes(name, info.ModTime(), info.ModTime()), to.Chmod(name, info.Mode().Perm()))
}

// copyLink copies a symbolic link with its modification time.
func (c *Copier) copyLink(from, to *os.Root, name string, info fs.FileInfo) error {
	target, err := from.Readlink(name)
	if err != nil {
		return err
	}
	if err := to.Symlink(target, name); err != nil {
		return err
	}
	dir, err := to.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	at := unix.NsecToTimespec(info.ModTime().UnixNano())
	return unix.UtimesNanoAt(int(dir.Fd()), path.Base(name), []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

// copyFile copies a regular file. If another name of the same file was copied before, it makes a
// hard link to that copy.
func (c *Copier) copyFile(from, to *os.Root, name, full string, info fs.FileInfo) (err error) {
	if stat := info.Sys().(*syscall.Stat_t); stat.Nlink > 1 {
		id := [2]uint64{uint64(stat.Dev), stat.Ino}
		if first, is := c.hardLinks[id]; is {
			return c.To.Link(first, full)
		}
		defer func() {
			if err == nil {
				if c.hardLinks == nil {
					c.hardLinks = map[[2]uint64]string{}
				}
				c.hardLinks[id] = full
			}
		}()
	}
	in, err := regularfile.OpenIn(from, name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(c.copyData(out, in, info), out.Chmod(info.Mode().Perm()), out.Close(), to.Chtimes(name, info.ModTime(), info.ModTime()))
	if err != nil {
		return fmt.Errorf("%q: %w", full, err)
	}
	return nil
}

// copyData copies a file's content. It clones the content if the file system can. Otherwise it
// copies only the data between holes, so a sparse file stays sparse.
func (c *Copier) copyData(out, in *os.File, info fs.FileInfo) error {
	if !c.cannotClone {
		err := clone(out, in)
		if err == nil {
			return nil
		}
		c.cannotClone = errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EXDEV)
	}
	if size := info.Size(); size < smallFile && info.Sys().(*syscall.Stat_t).Blocks*blockSize >= size {
		return c.copySmall(out, in, size)
	}
	info, err := in.Stat()
	if err != nil {
		return err
	}
	for at, size := int64(0), info.Size(); at < size; {
		data, end, err := nextData(in, at, size)
		if err != nil {
			return err
		}
		if _, err := in.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(out, regularfile.Until(c.ctx, io.LimitReader(in, end-data))); err != nil {
			return err
		}
		at = end
	}
	return out.Truncate(info.Size())
}

// blockSize is the unit of Stat_t.Blocks.
const blockSize = 512

// copySmall copies a file without holes. size is its size before; it may have grown since. Some
// file systems return short reads before the end, so a short read counts as the last one only after
// size bytes.
func (c *Copier) copySmall(out, in *os.File, size int64) error {
	if c.buffer == nil {
		c.buffer = make([]byte, smallFile)
	}
	for copied := int64(0); ; {
		n, err := in.Read(c.buffer)
		copied += int64(n)
		if n > 0 {
			if _, err := out.Write(c.buffer[:n]); err != nil {
				return err
			}
		}
		isLastRead := err == nil && n < len(c.buffer) && copied >= size
		switch {
		case errors.Is(err, io.EOF) || isLastRead:
			return nil
		case err != nil:
			return err
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		}
	}
}

// nextData returns the bounds of the next data at or after offset at. If the file system does not
// know its holes, it returns everything up to size.
func nextData(f *os.File, at, size int64) (start, end int64, err error) {
	start, err = f.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return size, size, nil
	case errors.Is(err, syscall.EINVAL), errors.Is(err, errors.ErrUnsupported):
		return at, size, nil
	case err != nil:
		return 0, 0, err
	}
	end, err = f.Seek(start, unix.SEEK_HOLE)
	return start, min(end, size), err
}
