package worktree

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

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Keep copies paths of the work tree to the folder dir, and what is in the
// submodules of ix that are checked out. Sockets, devices, pipes, what may not be
// read, what is hidden and what lies more than DeepestPath folders deep are left
// out.
func (w *Worktree) Keep(ctx context.Context, paths []string, ix *index.File, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep untracked files: %w", err)
	}
	to, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("keep untracked files: %w", err)
	}
	defer to.Close()
	cp := copier{ctx: ctx, from: w.dir, to: to, leaveOut: w.Hides}
	for _, name := range paths {
		if err := cp.entry(name); err != nil {
			return fmt.Errorf("keep untracked files: %w", err)
		}
	}
	cp.filesAlone = true // a submodule's .git says where its repository is from here
	for i := range ix.Len() {
		if ix.Mode(i) != index.Gitlink {
			continue
		}
		if err := cp.entry(string(ix.Path(i))); err != nil {
			return fmt.Errorf("keep the files of submodules: %w", err)
		}
	}
	return nil
}

// CopyInto puts copies of what is in the folder from into a tree.
func CopyInto(ctx context.Context, to *os.Root, from string) error {
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
	cp := copier{ctx: ctx, from: source, to: to}
	return cp.all()
}

// CopyFolder copies a folder to the same place below another one.
func CopyFolder(ctx context.Context, to, from *os.Root, name string) error {
	return (&copier{ctx: ctx, from: from, to: to}).entry(name)
}

// copier copies files, links and folders from one folder to another, and
// never over what is there.
type copier struct {
	ctx        context.Context
	from, to   *os.Root
	filesAlone bool // without any .git
	depth      int  // folders above that are open
	leaveOut   func(name string) bool
}

func (c *copier) entry(name string) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if c.filesAlone && path.Base(name) == ".git" || c.leaveOut != nil && c.leaveOut(name) {
		return nil
	}
	info, err := c.from.Lstat(name)
	if absent(err) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	if dir := path.Dir(name); dir != "." {
		if err := c.to.MkdirAll(dir, 0o777); err != nil {
			return there(err)
		}
	}
	switch {
	case info.IsDir():
		return c.folder(name)
	case info.Mode()&fs.ModeSymlink != 0:
		return c.link(name)
	case info.Mode().IsRegular():
		return c.file(name, info)
	}
	return nil
}

// there passes over what stands in the way already.
func there(err error) error {
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

func (c *copier) folder(name string) error {
	if err := c.to.Mkdir(name, 0o777); there(err) != nil {
		return err
	}
	if info, err := c.to.Lstat(name); err != nil || !info.IsDir() { // a link, which may lead anywhere in the tree
		return there(err)
	}
	from, err := regularfile.OpenFolder(c.from, name)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := regularfile.OpenFolder(c.to, name)
	if err != nil {
		return there(err)
	}
	defer to.Close()
	below := copier{c.ctx, from, to, c.filesAlone, c.depth + 1, c.leavesOutBelow(name)}
	if below.depth > objects.DeepestPath {
		return nil
	}
	return below.all()
}

// leavesOutBelow is leaveOut for the paths in a folder.
func (c *copier) leavesOutBelow(folder string) func(name string) bool {
	if c.leaveOut == nil {
		return nil
	}
	return func(name string) bool { return c.leaveOut(path.Join(folder, name)) }
}

func (c *copier) all() error {
	f, err := c.from.Open(".")
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(listedAtOnce)
		for _, e := range entries {
			if err := c.entry(e.Name()); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *copier) link(name string) error {
	target, err := c.from.Readlink(name)
	if err != nil {
		return err
	}
	return there(c.to.Symlink(target, name))
}

func (c *copier) file(name string, info fs.FileInfo) error {
	in, err := regularfile.OpenIn(c.from, name)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := c.to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, info.Mode().Perm()|0o200)
	if err != nil {
		return there(err)
	}
	if err = errors.Join(c.content(out, in), out.Close()); err != nil {
		return err
	}
	return c.to.Chtimes(name, info.ModTime(), info.ModTime())
}

// content copies what a file holds, by sharing it where the file system can. Holes stay holes, so that a file takes the
// room and the time that its data does, whatever its length.
func (c *copier) content(out, in *os.File) error {
	if clone(out, in) == nil {
		return nil
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

// nextData is where in a file the next data begins and ends, all of it where the
// file system does not tell.
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
