package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Layer is the tree where commands work instead of the checkout: a Linux overlay above it (the
// kernel's Documentation/filesystems/overlayfs.rst), or a copy.
type Layer struct {
	Tree   *os.Root // the tree that commands see
	Upper  *os.Root // the changes of commands: every changed name is here; nil for a copy, or to look at all names
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
	in := w.at(l.Tree)
	in.layer = &l
	return in
}

// at returns w with its files in another folder.
func (w *Worktree) at(dir *os.Root) *Worktree {
	other := *w
	other.dir = dir
	return &other
}

// InLayer reports whether the work tree is shown by a layer, instead of the checkout itself.
func (w *Worktree) InLayer() bool { return w.layer != nil }

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
		case regularfile.Absent(err):
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
