package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Layer is the tree where commands work instead of the checkout: a Linux overlay above it (the
// kernel's Documentation/filesystems/overlayfs.rst), or a copy.
type Layer struct {
	Tree   *os.Root // what commands see
	Upper  *os.Root // what commands made: each name that is other than below has one here; nil for a copy
	GitDir string   // the folder that commands see as .git, if that is not in Tree; it may be missing
}

// Close closes both.
func (l Layer) Close() error {
	err := l.Tree.Close()
	if l.Upper != nil {
		err = errors.Join(err, l.Upper.Close())
	}
	return err
}

// In returns the work tree in a layer with w's current hidden paths. Do not close it, nor use it
// after w or the layer is closed.
func (w *Worktree) In(l Layer) *Worktree {
	in := *w
	in.dir, in.upper, in.git, in.inLayer = l.Tree, l.Upper, l.GitDir, true
	return &in
}

// ScanningAll returns the work tree for scans of all its files, beyond those in the layer.
func (w *Worktree) ScanningAll() *Worktree {
	all := *w
	all.scansAll = true
	return &all
}

// InLayer says whether this is the work tree as a layer shows it.
func (w *Worktree) InLayer() bool { return w.inLayer }

// changedFolder returns a folder whose names alone may differ from the index in the top folder, or nil
// if all must be examined. If git treats two names as one, a changed name does not identify an
// index entry.
func (s *Scan) changedFolder() *os.Root {
	if s.work.scansAll || s.settings.IgnoreCase || s.settings.Precompose {
		return nil
	}
	return mergedUpper(s.work.upper)
}

// enterUpper opens a folder's upper layer, or returns nil if the whole folder must be examined. The
// caller closes it.
func enterUpper(upper *os.Root, name string) *os.Root {
	if upper == nil {
		return nil
	}
	below, err := regularfile.OpenFolder(upper, name)
	if err != nil {
		return nil
	}
	if mergedUpper(below) == nil {
		below.Close()
		return nil
	}
	return below
}

func closeUpper(upper *os.Root) {
	if upper != nil {
		upper.Close()
	}
}

// mergedUpper returns an upper folder if its names are exactly the differences from the lower one, or
// nil, such as for an opaque one.
func mergedUpper(upper *os.Root) *os.Root {
	if upper == nil {
		return nil
	}
	f, err := upper.Open(".")
	if err != nil {
		return nil
	}
	defer f.Close()
	if !plainMarks(int(f.Fd())) {
		return nil
	}
	return upper
}

// harmlessMarks lists overlayfs attributes without influence on a folder's names.
var harmlessMarks = map[string]bool{"origin": true, "impure": true, "uuid": true, "nlink": true, "upper": true, "protattr": true}

// plainMarks reports whether a folder has harmless overlayfs attributes only: "opaque" hides
// everything below, unknown ones may do anything.
func plainMarks(fd int) bool {
	size, err := unix.Flistxattr(fd, nil)
	if err != nil {
		return false
	}
	list := make([]byte, size)
	if size > 0 {
		if size, err = unix.Flistxattr(fd, list); err != nil {
			return false
		}
	}
	for name := range strings.SplitSeq(string(list[:size]), "\x00") {
		_, mark, ours := strings.Cut(name, ".overlay.")
		if ours && !(strings.HasPrefix(name, "user.overlay.") && harmlessMarks[mark]) {
			return false
		}
	}
	return true
}

// listChanged is list restricted to a layer's names: changed has all of them, names those in the
// merged folder.
func (s *Scan) listChanged(ctx context.Context, dir *os.Root, at place) (names []name, changed []string, err error) {
	upper, err := s.listAll(ctx, at.upper, at)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range upper {
		changed = append(changed, n.git)
		info, err := dir.Lstat(n.disk)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // a whiteout
		case err != nil:
			return nil, nil, fmt.Errorf("look at %q: %w", at.path+n.git, err)
		}
		n.lstat = lstatOf(info)
		names = append(names, n)
	}
	return names, changed, nil
}

// span is a part of the index.
type span struct{ lo, hi int }

// spans returns the parts of a folder's index range that may have changed.
func (s *Scan) spans(at place, changed []string) []span {
	if at.upper == nil {
		return []span{{at.lo, at.hi}}
	}
	var list []span
	for _, name := range changed {
		if lo, hi := s.index.Named(at.path+name, at.lo, at.hi); lo < hi {
			list = append(list, span{lo, hi})
		}
		if lo, hi := s.index.Folder(at.path+name+"/", at.lo, at.hi); lo < hi {
			list = append(list, span{lo, hi})
		}
	}
	return list
}

// path returns the work tree's current path for this process. A layer may be mounted where others
// cannot see it.
func (w *Worktree) path() (string, func() error, error) {
	if w.upper == nil {
		return w.dir.Name(), func() error { return nil }, nil
	}
	f, err := w.dir.Open(".")
	if err != nil {
		return "", nil, err
	}
	return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())), f.Close, nil
}

// Overwrite makes changes in a layer without anybody's work: it removes tracked and untracked
// obstacles. tree has the new sides. It returns the written files' stat data.
func (w *Worktree) Overwrite(ctx context.Context, tree plumbing.Hash, changes []objects.Difference) (map[string]index.Stat, error) {
	for _, d := range changes {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if d.New.Mode == 0 || d.New.Mode == index.Gitlink {
			continue
		}
		if err := w.makeRoom(d.Path); err != nil {
			return nil, fmt.Errorf("make room for %q: %w", d.Path, err)
		}
	}
	return w.CheckOut(ctx, tree, changes)
}

// makeRoom removes anything but folders on the way to a path, and a folder at the path.
func (w *Worktree) makeRoom(file string) error {
	for at, letter := range file {
		if letter != '/' {
			continue
		}
		info, err := w.dir.Lstat(file[:at])
		switch {
		case absent(err):
			return nil
		case err != nil:
			return err
		case !info.IsDir():
			return w.dir.Remove(file[:at])
		}
	}
	if info, err := w.dir.Lstat(file); err != nil || !info.IsDir() {
		return nil // a file goes where the change is made
	}
	return w.dir.RemoveAll(file)
}
