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
	Tree   *os.Root // the tree that commands see
	Upper  *os.Root // the changes of commands: every changed name is here; nil for a copy
	GitDir string   // the folder that commands see as .git, or "" if it is in Tree; it may be missing
}

// Close closes Tree and Upper.
func (l Layer) Close() error {
	err := l.Tree.Close()
	if l.Upper != nil {
		err = errors.Join(err, l.Upper.Close())
	}
	return err
}

// In returns the work tree in a layer, with the current hidden paths of w. Do not close the result,
// and do not use it after w or the layer is closed.
func (w *Worktree) In(l Layer) *Worktree {
	in := *w
	in.dir, in.upper, in.git, in.inLayer = l.Tree, l.Upper, l.GitDir, true
	return &in
}

// ScanningAll returns the work tree for scans of all files, not only of those changed in the layer.
func (w *Worktree) ScanningAll() *Worktree {
	all := *w
	all.scansAll = true
	return &all
}

// InLayer reports whether the work tree is shown by a layer, instead of the checkout itself.
func (w *Worktree) InLayer() bool { return w.inLayer }

// changedFolder returns the upper folder of a layer, if only the names in it may differ from the
// index. It returns nil if all names must be scanned. That includes a repository in which git
// treats two spellings of a name as one: a changed name does not identify an index entry then.
func (s *Scan) changedFolder() *os.Root {
	if s.work.scansAll || s.settings.IgnoreCase || s.settings.Precompose {
		return nil
	}
	return mergedUpper(s.work.upper)
}

// enterUpper opens the upper layer's folder called name. It returns nil if the whole folder must be
// scanned. The caller closes the result.
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

// mergedUpper returns upper if its names are exactly the differences from the lower folder.
// Otherwise it returns nil, for example for an opaque folder.
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

// harmlessMarks lists the overlayfs attributes that do not affect which names a folder shows.
var harmlessMarks = map[string]bool{"origin": true, "impure": true, "uuid": true, "nlink": true, "upper": true, "protattr": true}

// plainMarks reports whether all overlayfs attributes of a folder are harmless. The attribute
// "opaque" hides the whole lower folder, and unknown ones may do anything.
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

// listChanged lists a folder of a layer like list. changed has all names in the upper folder, names
// only those that the merged folder still shows.
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
			continue // overlayfs marks a deletion with it
		case err != nil:
			return nil, nil, fmt.Errorf("look at %q: %w", at.path+n.git, err)
		}
		n.lstat = lstatOf(info)
		names = append(names, n)
	}
	return names, changed, nil
}

// span is a range of index entries, from lo up to but without hi.
type span struct{ lo, hi int }

// spans returns the ranges of a folder's index entries that may have changed. changed lists the
// changed names of a layer.
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

// path returns a path of the work tree that is valid in this process, and a function that releases
// it. A layer may be mounted where this process cannot reach it by name, so the path goes through
// an open file.
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

// Overwrite writes changes into a layer that contains no work worth keeping: it removes tracked and
// untracked files in the way. tree contains the new sides. It returns the stat data of the written
// files.
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

// makeRoom removes a non-folder in the place of a parent folder of file, and a folder in the place
// of file.
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
		return nil // CheckOut replaces a file that is already there
	}
	return w.dir.RemoveAll(file)
}
