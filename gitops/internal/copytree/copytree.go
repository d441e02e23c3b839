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
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Into copies the content of the folder from into a tree. An empty or missing from copies
// nothing.
func Into(ctx context.Context, to *os.Root, from string) error {
	if from == "" {
		return nil
	}
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
// an existing file. It skips sockets, pipes and devices, and records unreadable paths. It copies
// several folders in parallel.
type Copier struct {
	To           *os.Root // the root of the copy
	Omit         func(name string) bool
	Replacements map[string]string // other content for files, by path; "" means that the file is omitted
	// OnCopied is called for each file and link, by several goroutines at once. Both arguments are
	// metadata from after the copy.
	OnCopied func(full string, original, copied *unix.Stat_t)
	Unread   []string // paths that could not be read, sorted

	ctx         context.Context
	own         *worker      // of the caller's goroutine
	idle        chan *worker // the workers of further goroutines
	cannotClone atomic.Bool  // the file systems cannot share content, so data is copied

	mu        sync.Mutex           // guards Unread and failure
	failure   error                // the first error of any goroutine
	linking   sync.Mutex           // held while a file with hard links is copied
	hardLinks map[[2]uint64]string // the copy of a file with hard links, by device and inode
}

// listedAtOnce is the number of entries read from a folder before the context is checked again.
const listedAtOnce = 4096

// worker is what a goroutine needs to copy.
type worker struct {
	buffer []byte // nil before it is used
}

// bufferSize is the size in bytes of a buffer.
const bufferSize = 64 << 10

// folder is an open folder. Its descriptor is for calls on names in it.
type folder struct {
	*os.Root
	list *os.File
}

// open opens a folder of root. It follows no link at the end of the name.
func open(root *os.Root, name string) (folder, error) {
	below, err := regularfile.OpenFolder(root, name)
	if err != nil {
		return folder{}, err
	}
	list, err := below.Open(".")
	if err != nil {
		return folder{}, errors.Join(err, below.Close())
	}
	return folder{below, list}, nil
}

func (f folder) fd() int { return int(f.list.Fd()) }

func (f folder) close() { _ = errors.Join(f.list.Close(), f.Close()) }

// entry is an entry of a folder that is copied.
type entry struct {
	from, to folder // the folders of the original and of the copy
	name     string // in both folders
	full     string // its path in the tree
	depth    int    // number of folders above
	unix.Stat_t
}

func (e *entry) is(kind uint32) bool { return uint32(e.Mode)&unix.S_IFMT == kind }

// perm returns the permissions.
func (e *entry) perm() uint32 { return uint32(e.Mode) & 0o777 }

// times returns the modification time, as the times of the copy.
func (e *entry) times() []unix.Timespec { return []unix.Timespec{e.Mtim, e.Mtim} }

// Path copies one path of from and makes its parent folders.
func (c *Copier) Path(ctx context.Context, from *os.Root, name string) error {
	parent := path.Dir(name)
	if parent != "." {
		if _, err := from.Lstat(name); err != nil {
			return c.RecordUnreadable(name, err)
		}
		if err := c.To.MkdirAll(parent, 0o777); err != nil {
			return ignoreExisting(err)
		}
	}
	return c.between(ctx, from, parent, func(from, to folder) error {
		var folders sync.WaitGroup
		defer folders.Wait()
		return c.copyEntry(&entry{from: from, to: to, name: path.Base(name), full: name}, &folders, c.own)
	})
}

// Content copies everything in from.
func (c *Copier) Content(ctx context.Context, from *os.Root) error {
	return c.between(ctx, from, ".", func(from, to folder) error { return c.copyContent(from, to, "", 0, c.own) })
}

// between runs do with a folder of from and the same folder of the copy.
func (c *Copier) between(ctx context.Context, from *os.Root, name string, do func(from, to folder) error) error {
	c.ctx = ctx
	if c.own == nil {
		c.own, c.idle = &worker{}, make(chan *worker, runtime.GOMAXPROCS(0)) // one more than the processors are busy with, because workers wait for each other
		for range cap(c.idle) {
			c.idle <- &worker{}
		}
	}
	source, err := open(from, name)
	if err != nil {
		return c.RecordUnreadable(name, err)
	}
	defer source.close()
	target, err := open(c.To, name)
	if err != nil {
		return ignoreExisting(err)
	}
	defer target.close()
	err = c.firstError(do(source, target))
	slices.Sort(c.Unread)
	return err
}

// firstError records an error, and returns the first one of any goroutine.
func (c *Copier) firstError(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = err
	}
	return c.failure
}

// copyContent copies a folder's content. prefix is its path with a final slash, or "".
func (c *Copier) copyContent(from, to folder, prefix string, depth int, w *worker) error {
	var folders sync.WaitGroup
	defer folders.Wait()
	for {
		names, err := from.list.Readdirnames(listedAtOnce)
		for _, name := range names {
			e := &entry{from: from, to: to, name: name, full: prefix + name, depth: depth}
			if err := c.copyEntry(e, &folders, w); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.RecordUnreadable(prefix, err)
		}
	}
}

// copyEntry copies a file, link or folder. It skips devices, pipes and existing files, and records
// unreadable ones. If a goroutine is free, it copies a folder there, and folders waits for it.
func (c *Copier) copyEntry(e *entry, folders *sync.WaitGroup, w *worker) (err error) {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if c.Omit != nil && c.Omit(e.full) {
		return nil
	}
	if err := lstat(e.from, e.name, &e.Stat_t); err != nil {
		return c.RecordUnreadable(e.full, err)
	}
	content, replaced := c.Replacements[e.full]
	switch {
	case e.is(unix.S_IFDIR):
		select {
		case another := <-c.idle:
			folders.Go(func() {
				_ = c.firstError(c.copyFolder(e, another))
				c.idle <- another
			})
			return nil
		default:
			return c.copyFolder(e, w)
		}
	case e.is(unix.S_IFLNK):
		err = c.copyLink(e)
	case !e.is(unix.S_IFREG) || replaced && content == "":
		return nil
	case replaced:
		return e.to.WriteFile(e.name, []byte(content), 0o666)
	default:
		err = c.copyFile(e, w)
	}
	if err != nil {
		return c.RecordUnreadable(e.full, ignoreExisting(err))
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

// RecordUnreadable records an unreadable path and returns nil. It also returns nil for a path that
// was deleted meanwhile. Any other error is returned, and stops the copy.
func (c *Copier) RecordUnreadable(name string, err error) error {
	if regularfile.Absent(err) {
		return nil
	}
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Unread = append(c.Unread, name)
	return nil
}

// copyFolder copies a folder into a new or existing one, but never through a link. It sets the mode
// and time only of a folder that it made.
func (c *Copier) copyFolder(e *entry, w *worker) error {
	if e.depth++; e.depth > objects.DeepestPath {
		return c.RecordUnreadable(e.full, fs.ErrPermission)
	}
	below, err := open(e.from.Root, e.name)
	if err != nil {
		return c.RecordUnreadable(e.full, err)
	}
	defer below.close()
	mkdirErr := e.to.Mkdir(e.name, 0o700)
	if ignoreExisting(mkdirErr) != nil {
		return mkdirErr
	}
	isNew := mkdirErr == nil
	if target, err := e.to.Lstat(e.name); err != nil || !target.IsDir() { // a link, which may point anywhere in the tree
		return ignoreExisting(err)
	}
	into, err := open(e.to.Root, e.name)
	if err != nil {
		return ignoreExisting(err)
	}
	defer into.close()
	if err := c.copyContent(below, into, e.full+"/", e.depth, w); err != nil || !isNew {
		return err
	}
	modified := time.Unix(e.Mtim.Unix())
	return errors.Join(e.to.Chtimes(e.name, modified, modified), e.to.Chmod(e.name, fs.FileMode(e.perm())))
}

// copyLink copies a symbolic link with its modification time.
func (c *Copier) copyLink(e *entry) error {
	target, err := e.from.Readlink(e.name)
	if err != nil {
		return err
	}
	if err := e.to.Symlink(target, e.name); err != nil {
		return err
	}
	if err := unix.UtimesNanoAt(e.to.fd(), e.name, e.times(), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return c.reportNames(e)
}

// reportNames reports a copy by the names of both.
func (c *Copier) reportNames(e *entry) error {
	if c.OnCopied == nil {
		return nil
	}
	var original, copied unix.Stat_t
	if err := lstat(e.from, e.name, &original); err != nil {
		return nil //nolint:nilerr // it was removed meanwhile
	}
	if err := lstat(e.to, e.name, &copied); err != nil {
		return err
	}
	c.OnCopied(e.full, &original, &copied)
	return nil
}

// copyFile copies a regular file. If another name of the same file was copied before, it makes a
// hard link to that copy.
func (c *Copier) copyFile(e *entry, w *worker) error {
	if e.Nlink <= 1 {
		return c.copyContentOf(e, w)
	}
	c.linking.Lock()
	defer c.linking.Unlock()
	id := [2]uint64{uint64(e.Dev), e.Ino}
	if first, is := c.hardLinks[id]; is {
		if err := c.To.Link(first, e.full); err != nil {
			return err
		}
		return c.reportNames(e)
	}
	if err := c.copyContentOf(e, w); err != nil {
		return err
	}
	if c.hardLinks == nil {
		c.hardLinks = map[[2]uint64]string{}
	}
	c.hardLinks[id] = e.full
	return nil
}

// copyContentOf copies a regular file with its content.
func (c *Copier) copyContentOf(e *entry, w *worker) error {
	in, err := openFile(e.from, e, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.close()
	if err := in.stat(&e.Stat_t); err != nil || !e.is(unix.S_IFREG) {
		return errors.Join(err, fmt.Errorf("%q is not a regular file", e.full))
	}
	out, err := openFile(e.to, e, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, e.perm())
	if err != nil {
		return err
	}
	if err := errors.Join(c.finishCopy(out, in, e, w), out.close()); err != nil {
		return fmt.Errorf("%q: %w", e.full, err)
	}
	return nil
}

// finishCopy gives a new file the content, mode and time of another, and reports it.
func (c *Copier) finishCopy(out, in file, e *entry, w *worker) error {
	err := c.copyData(out, in, e, w)
	if err == nil {
		err = unix.UtimesNanoAt(e.to.fd(), e.name, e.times(), unix.AT_SYMLINK_NOFOLLOW)
	}
	var original, copied unix.Stat_t
	if err == nil {
		err = errors.Join(in.stat(&original), out.stat(&copied))
	}
	if err == nil && copied.Mode != e.Mode { // the umask has changed it
		err = errors.Join(unix.Fchmod(int(out), e.perm()), out.stat(&copied))
	}
	if err == nil && c.OnCopied != nil {
		c.OnCopied(e.full, &original, &copied)
	}
	return err
}

// file is an open file. Unlike an os.File, it is never asked whether one can wait for it.
type file int

// openFile opens an entry in a folder. It follows no link.
func openFile(in folder, e *entry, flags int, perm uint32) (file, error) {
	fd := 0
	err := retry(func() (err error) {
		fd, err = unix.Openat(in.fd(), e.name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
		return err
	})
	if err != nil {
		return 0, &fs.PathError{Op: "openat", Path: e.full, Err: err}
	}
	return file(fd), nil
}

func (f file) stat(st *unix.Stat_t) error {
	return retry(func() error { return unix.Fstat(int(f), st) })
}

func (f file) close() error { return unix.Close(int(f)) }

func (f file) Read(p []byte) (n int, err error) {
	err = retry(func() (err error) {
		n, err = unix.Read(int(f), p)
		return err
	})
	if err == nil && n == 0 && len(p) > 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

func (f file) Write(p []byte) (written int, err error) {
	for written < len(p) {
		err := retry(func() error {
			n, err := unix.Write(int(f), p[written:])
			written += max(n, 0)
			return err
		})
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func lstat(in folder, name string, st *unix.Stat_t) error {
	return retry(func() error { return unix.Fstatat(in.fd(), name, st, unix.AT_SYMLINK_NOFOLLOW) })
}

// retry calls do again while a signal interrupts it, as package os does.
func retry(do func() error) error {
	for {
		if err := do(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// copyData copies a file's content. It clones the content if the file system can. Otherwise it
// copies only the data between holes, so a sparse file stays sparse.
func (c *Copier) copyData(out, in file, e *entry, w *worker) error {
	if !c.cannotClone.Load() {
		err := clone(out, in)
		if err == nil {
			return nil
		}
		c.cannotClone.Store(errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EXDEV))
	}
	if w.buffer == nil {
		w.buffer = make([]byte, bufferSize)
	}
	content := regularfile.Until(c.ctx, in)
	if e.Blocks*blockSize >= e.Size { // it has no holes
		_, err := io.CopyBuffer(out, content, w.buffer)
		return err
	}
	for at := int64(0); at < e.Size; {
		data, end, err := nextData(in, at, e.Size)
		if err != nil {
			return err
		}
		for _, f := range []file{in, out} {
			if _, err := unix.Seek(int(f), data, io.SeekStart); err != nil {
				return err
			}
		}
		if _, err := io.CopyBuffer(out, io.LimitReader(content, end-data), w.buffer); err != nil {
			return err
		}
		at = end
	}
	return unix.Ftruncate(int(out), e.Size)
}

// blockSize is the unit of Stat_t.Blocks.
const blockSize = 512

// nextData returns the bounds of the next data at or after offset at. If the file system does not
// know its holes, it returns everything up to size.
func nextData(f file, at, size int64) (start, end int64, err error) {
	start, err = unix.Seek(int(f), at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return size, size, nil
	case errors.Is(err, syscall.EINVAL), errors.Is(err, errors.ErrUnsupported):
		return at, size, nil
	case err != nil:
		return 0, 0, err
	}
	end, err = unix.Seek(int(f), start, unix.SEEK_HOLE)
	return start, min(end, size), err
}
