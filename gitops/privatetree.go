package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// SpaceError reports a copy of the checkout too large for the disk.
type SpaceError struct {
	Dir     string   // where the copy was to be made
	Bytes   int64    // the size of the checkout
	Largest []string // its largest folders, with their sizes
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("the disk of %s is too small for a copy of the checkout (%d MiB; the largest folders are %s)",
		e.Dir, e.Bytes>>20, strings.Join(e.Largest, ", "))
}

func (e *SpaceError) Unwrap() error { return syscall.ENOSPC }

// UnreadableError lists unreadable tracked files, which a copy of the checkout would lack.
type UnreadableError struct{ Paths []string }

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("tracked files may not be read (%s)", strings.Join(e.Paths, ", "))
}

// MakePrivateTree copies the files of the checkout, without hidden ones, to dir. Then it checks out
// the base in the copy, and makes a .git for it. It fetches nothing. now is a snapshot of the checkout in
// its current state. MakePrivateTree returns the snapshot for Changes and Dirty of the copy, and the
// unreadable paths, which are missing in the copy. It returns a *SpaceError if the disk is too small, and
// an *UnreadableError if a tracked path is unreadable.
func (c *Checkout) MakePrivateTree(ctx context.Context, dir string, now *Snapshot) (snap *Snapshot, unreadable []string, err error) {
	snap, unreadable, err = c.makePrivateTree(ctx, dir, now)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = c.spaceError(dir)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make a private work tree: %w", err)
	}
	return snap, unreadable, nil
}

// makePrivateTree copies the files, moves the copy to the base, and makes its git folder and index.
func (c *Checkout) makePrivateTree(ctx context.Context, dir string, now *Snapshot) (snap *Snapshot, unread []string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	links, err := c.moduleLinks(ctx)
	if err != nil {
		return nil, nil, err
	}
	copied, err := c.work.DuplicateInto(ctx, root, now.index, links)
	if err != nil {
		return nil, nil, err
	}
	if tracked := trackedOf(now.index, copied.Unread); len(tracked) > 0 {
		return nil, nil, &UnreadableError{tracked}
	}
	if snap, err = c.copiedSnapshot(now, copied.Stats); err != nil {
		return nil, nil, err
	}
	if c.currentBase().Tree != c.Base().Tree {
		if snap, err = c.WriteBase(ctx, Layer{Tree: root}, snap); err != nil {
			return nil, nil, err
		}
	}
	folder := GitFolder{Dir: filepath.Join(dir, ".git"), TreeForCommands: TreeForCommands{Tree: c.Base().Tree, Base: c.Base(), Head: &Head{}, Snapshot: snap}}
	if err := c.newGitDir(ctx, folder.Dir, folder.TreeForCommands); err != nil {
		return nil, nil, err
	}
	return snap, copied.Unread, c.WriteIndex(ctx, folder)
}

// trackedOf returns the paths that an index contains, or that have tracked files below them.
func trackedOf(ix *index.File, paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(name string) bool { return !ix.Tracks(strings.TrimSuffix(name, "/")) })
}

// moduleLinks returns the .git files of submodules in a copy, by path. Each points to the git
// folder of the copy. The content is "" for a submodule without a repository: its .git is omitted.
func (c *Checkout) moduleLinks(ctx context.Context) (map[string]string, error) {
	paths, err := c.Submodules(ctx)
	if err != nil {
		return nil, err
	}
	links := map[string]string{}
	for _, submodule := range paths {
		links[path.Join(submodule, ".git")] = ""
	}
	for _, m := range c.repo.Modules() {
		links[path.Join(m.Path, ".git")] = moduleLink(m)
	}
	return links, nil
}

// copiedSnapshot returns a snapshot for a copy of the checkout. stats has the stat data of the
// copied files.
func (c *Checkout) copiedSnapshot(original *Snapshot, stats []index.StatUpdate) (*Snapshot, error) {
	began, err := c.fileSystemTime()
	if err != nil {
		return nil, err
	}
	copied := *original
	copied.index = original.index.WithStats(stats, began)
	return &copied, nil
}

// ChangedFolders returns the folders in which something changed after the time then.
func (c *Checkout) ChangedFolders(folders []string, then time.Time) []string {
	return slices.DeleteFunc(slices.Clone(folders), func(folder string) bool { return !c.work.WrittenSince(folder, then) })
}

// spaceError returns a *SpaceError about a full disk at dir, with the three largest folders of the
// checkout.
func (c *Checkout) spaceError(dir string) error {
	sizes, short := map[string]int64{}, &SpaceError{Dir: dir}
	_ = filepath.WalkDir(c.Root(), func(at string, e fs.DirEntry, err error) error {
		rel, inside := pathname.Below(c.Root(), at)
		if err != nil || !inside || !e.Type().IsRegular() {
			if rel == ".git" {
				return fs.SkipDir
			}
			return nil // what can't be read is not copied either
		}
		if info, err := e.Info(); err == nil {
			top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
			sizes[top] += info.Size()
			short.Bytes += info.Size()
		}
		return nil
	})
	names := slices.Sorted(maps.Keys(sizes))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(sizes[b], sizes[a]) })
	const named = 3
	for _, name := range names[:min(named, len(names))] {
		short.Largest = append(short.Largest, fmt.Sprintf("%s with %d MiB", name, sizes[name]>>20))
	}
	return short
}
