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
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Duplicate is a copy of all files of the work tree as they lie.
type Duplicate struct {
	// Stats are those of the copies of files and links that an index knows.
	Stats map[string]index.Stat
	// Unread are paths that could not be copied since they may not be read.
	Unread []string
}

// DuplicateInto copies the files of the work tree into the empty folder to, with times, modes, symbolic and
// hard links, but for its .git and what is hidden. Sockets, pipes and devices are passed over. It notes the
// copies of files that ix knows with the stat data that they have here. Of the files in links it writes these
// contents instead; none for an empty one.
func (w *Worktree) DuplicateInto(ctx context.Context, to *os.Root, ix *index.File, links map[string]string) (*Duplicate, error) {
	d := &duplicator{
		ctx: ctx, work: w, top: to, index: ix, done: &Duplicate{Stats: map[string]index.Stat{}}, linked: map[[2]uint64]string{}, leftOut: w.leftOut(), links: links,
	}
	if err := d.folder(w.dir, to, ""); err != nil {
		return nil, fmt.Errorf("copy the files: %w", err)
	}
	return d.done, nil
}

type duplicator struct {
	ctx     context.Context
	work    *Worktree
	top     *os.Root // of the copy
	index   *index.File
	done    *Duplicate
	linked  map[[2]uint64]string // where a file with several names was copied to, by device and inode
	leftOut map[string]bool
	links   map[string]string
	depth   int
}

// folder copies what is in a folder; prefix is its path, with a slash at its end, or empty.
func (d *duplicator) folder(from, to *os.Root, prefix string) error {
	list, err := from.Open(".")
	if err != nil {
		return d.unread(prefix, err)
	}
	defer list.Close()
	for {
		entries, err := list.ReadDir(listedAtOnce)
		for _, e := range entries {
			if d.ctx.Err() != nil {
				return context.Cause(d.ctx)
			}
			if failed := d.entry(from, to, prefix, e); failed != nil {
				return failed
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return d.unread(prefix, err)
		}
	}
}

func (d *duplicator) entry(from, to *os.Root, prefix string, e fs.DirEntry) error {
	name := e.Name()
	full := prefix + name
	if full == ".git" || d.work.repo.Settings.Covers(d.leftOut, full) {
		return nil
	}
	info, err := e.Info()
	switch {
	case absent(err): // removed meanwhile
		return nil
	case err != nil:
		return d.unread(full, err)
	case info.IsDir():
		return d.subfolder(from, to, full, info)
	case info.Mode()&fs.ModeSymlink != 0:
		err = d.link(from, to, name, info)
	case info.Mode().IsRegular():
		if content, is := d.links[full]; is {
			return writeLink(to, name, content)
		}
		err = d.file(from, to, full, info)
	default:
		return nil
	}
	if err != nil {
		return d.unread(full, err)
	}
	return d.note(from, to, full, info)
}

func writeLink(to *os.Root, name, content string) error {
	if content == "" {
		return nil
	}
	return to.WriteFile(name, []byte(content), 0o666)
}

// unread notes a path that may not be read or vanished; other errors end the copy.
func (d *duplicator) unread(name string, err error) error {
	if absent(err) {
		return nil
	}
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	d.done.Unread = append(d.done.Unread, name)
	return nil
}

func (d *duplicator) subfolder(from, to *os.Root, full string, info fs.FileInfo) error {
	if d.depth++; d.depth > objects.DeepestPath {
		d.depth--
		d.done.Unread = append(d.done.Unread, full)
		return nil
	}
	defer func() { d.depth-- }()
	name := path.Base(full)
	below, err := regularfile.OpenFolder(from, name)
	if err != nil {
		return d.unread(full, err)
	}
	defer below.Close()
	if err := to.Mkdir(name, 0o700); err != nil {
		return err
	}
	into, err := regularfile.OpenFolder(to, name)
	if err != nil {
		return err
	}
	defer into.Close()
	if err := d.folder(below, into, full+"/"); err != nil {
		return err
	}
	return errors.Join(to.Chtimes(name, info.ModTime(), info.ModTime()), to.Chmod(name, info.Mode().Perm()))
}

func (d *duplicator) link(from, to *os.Root, name string, info fs.FileInfo) error {
	target, err := from.Readlink(name)
	if err != nil {
		return err
	}
	if err := to.Symlink(target, name); err != nil {
		return err
	}
	dir, err := to.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	at := unix.NsecToTimespec(info.ModTime().UnixNano())
	return unix.UtimesNanoAt(int(dir.Fd()), name, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

func (d *duplicator) file(from, to *os.Root, full string, info fs.FileInfo) error {
	name, stat := path.Base(full), info.Sys().(*syscall.Stat_t)
	id := [2]uint64{uint64(stat.Dev), stat.Ino}
	if stat.Nlink > 1 {
		if first, is := d.linked[id]; is {
			return d.top.Link(first, full)
		}
		d.linked[id] = full
	}
	in, err := regularfile.OpenIn(from, name)
	if err != nil {
		delete(d.linked, id)
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	cp := copier{ctx: d.ctx}
	err = errors.Join(cp.content(out, in), out.Chmod(info.Mode().Perm()), out.Close(), to.Chtimes(name, info.ModTime(), info.ModTime()))
	if err != nil {
		return fmt.Errorf("%q: %w", full, err)
	}
	return nil
}

// note keeps the stat data of the copy of a file that the index knows as it lies, and that nobody changed
// while it was copied. Others are compared by their content.
func (d *duplicator) note(from, to *os.Root, full string, info fs.FileInfo) error {
	i, known := d.index.Search(full)
	if !known || !unchanged(&d.work.repo.Settings, d.index.Entry(i).Stat, info, d.index.Modified) {
		return nil
	}
	if now, err := from.Lstat(path.Base(full)); err != nil || index.StatOf(now) != index.StatOf(info) {
		return nil //nolint:nilerr // it is another file by now
	}
	copied, err := to.Lstat(path.Base(full))
	if err != nil {
		return d.unread(full, err)
	}
	d.done.Stats[full] = index.StatOf(copied)
	return nil
}

// WrittenSince says whether the status of anything in a folder changed after a time.
func (w *Worktree) WrittenSince(folder string, then time.Time) bool {
	err := fs.WalkDir(w.dir.FS(), folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what can't be read was not copied
		}
		info, err := e.Info()
		switch {
		case absent(err):
			return nil
		case err != nil:
			return errWritten // nobody can tell
		}
		stat := index.StatOf(info)
		if changed := time.Unix(int64(stat.CtimeSec), int64(stat.CtimeNsec)); changed.After(then) {
			return errWritten
		}
		return nil
	})
	return errors.Is(err, errWritten)
}

var errWritten = errors.New("written")
