package gitops

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
)

// Snapshot is what stands in the work tree before the first turn: what is not
// tracked there, and the stat data by which a tracked file is known to be the
// base commit's.
type Snapshot struct {
	index     *index.File           // exactly the base tree, with stat data
	untracked map[string]bool       // paths; true for what all below it belongs to
	stats     map[string]index.Stat // of files and links among them that stand in the checkout
	before    []string              // those that were neither tracked nor ignored before setup commands
}

// After has a snapshot tell what was not tracked before the first one of the run.
func (s *Snapshot) After(first *Snapshot) { s.before = first.before }

// Covering is the snapshot with what another one has besides that was not tracked.
func (s *Snapshot) Covering(more *Snapshot) *Snapshot {
	both := *s
	both.untracked = maps.Clone(s.untracked)
	maps.Copy(both.untracked, more.untracked)
	return &both
}

// At is the snapshot for a copy of the checkout, with the stat data of the files there.
func (s *Snapshot) At(copied *Snapshot) *Snapshot {
	at := *s
	at.index = copied.index
	return &at
}

// mostExcluded bounds the paths that a tree's info/exclude names one by one: git compares each
// untracked file with all of them.
const mostExcluded = 1000

// excluded lists what the info/exclude of a tree names. Beyond the bound it is whole folders in
// which nothing is tracked.
func (s *Snapshot) excluded() []string {
	if len(s.before) <= mostExcluded {
		return s.before
	}
	var all []string
	for _, name := range s.before {
		for i, letter := range name {
			if lo, hi := s.index.Folder(name[:i+1], 0, s.index.Len()); letter == '/' && lo == hi {
				name = name[:i+1]
				break
			}
		}
		if len(all) == 0 || all[len(all)-1] != name {
			all = append(all, name)
		}
	}
	return all
}

// covers says whether path, or a folder that it lies in, stood there before.
func (s *Snapshot) covers(path string) bool {
	if _, there := s.untracked[path]; there || len(s.untracked) == 0 {
		return there
	}
	for at := strings.LastIndexByte(path, '/'); at >= 0; at = strings.LastIndexByte(path, '/') {
		path = path[:at]
		if s.untracked[path] {
			return true
		}
	}
	return false
}

// Snapshot records the work tree. A folder that is ignored as a whole is one
// entry of it: whatever is in it later counts as having been there.
func (c *Checkout) Snapshot(ctx context.Context) (snap *Snapshot, err error) {
	ix, err := c.baseIndex(ctx)
	if err == nil {
		snap, err = c.snapshot(ctx, ix)
	}
	if err != nil {
		return nil, fmt.Errorf("record the work tree: %w", err)
	}
	return snap, nil
}

// snapshot is Snapshot with an index of what is tracked.
func (c *Checkout) snapshot(ctx context.Context, ix *index.File) (*Snapshot, error) {
	began, err := c.clock()
	if err != nil {
		return nil, err
	}
	snap := &Snapshot{index: ix, untracked: map[string]bool{}, stats: map[string]index.Stat{}}
	s := c.work.Scan(ix, worktree.WithIgnored, func(f worktree.Found) {
		snap.note(f)
		if f.Kind == worktree.Untracked || f.Kind == worktree.Repository {
			snap.before = append(snap.before, f.Path)
		}
		if _, noted := snap.untracked[f.Path]; noted && !f.Dir {
			snap.stats[f.Path] = f.Stat()
		}
	})
	if err := s.Run(ctx); err != nil {
		return nil, err
	}
	slices.Sort(snap.before)
	snap.index, err = c.refreshed(ctx, ix, s, began)
	return snap, err
}

// note takes down what is not tracked.
func (s *Snapshot) note(f worktree.Found) {
	switch f.Kind {
	case worktree.Untracked, worktree.Ignored, worktree.Repository, worktree.InvalidName, worktree.TooDeep:
		s.untracked[f.Path] = f.Dir
	}
}

// clock is the time by the clock of the file system, which is coarser than the
// program's: what is written after this cannot have an earlier time.
func (c *Checkout) clock() (time.Time, error) {
	path := filepath.Join(c.repo.Private, "clock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return time.Time{}, err
	}
	if err := os.WriteFile(path, []byte{'\n'}, 0o600); err != nil {
		return time.Time{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// baseIndex is the index of the checkout, made to hold what the work tree stands on and
// nothing else: what is staged besides is a modification of the work tree.
func (c *Checkout) baseIndex(ctx context.Context) (*index.File, error) {
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return nil, err
	}
	var changes []objects.Difference
	err = c.work.CompareIndex(ctx, ix, c.stands().Tree.hash(), func(path string, e objects.Entry) {
		changes = append(changes, objects.Difference{Path: path, New: e})
	})
	if err != nil || len(changes) == 0 {
		return ix, err
	}
	return c.rewritten(ix, updatesOf(changes, nil), ix.Modified)
}

// refreshed puts the present stat data of those suspects that are as the index
// has them into it, so that they need not be read again.
func (c *Checkout) refreshed(ctx context.Context, ix *index.File, s *worktree.Scan, began time.Time) (*index.File, error) {
	if err := s.Clean(ctx, false); err != nil {
		return nil, err
	}
	var updates []index.Update
	for i := range s.Suspects {
		one := &s.Suspects[i]
		if s.AsIndexed(one) {
			e := index.Entry{Path: one.Path, Mode: one.Mode, ID: one.ID, Stat: index.StatOf(one.Info)}
			updates = append(updates, index.Update{Path: one.Path, Entry: &e})
		}
	}
	if len(updates) == 0 {
		return ix, nil
	}
	return c.rewritten(ix, updates, began)
}

// rewritten is ix with updates, by way of a file of ours.
func (c *Checkout) rewritten(ix *index.File, updates []index.Update, modified time.Time) (*index.File, error) {
	path := filepath.Join(c.repo.Private, "base-index")
	if err := index.WriteFile(path, ix, updates); err != nil {
		return nil, err
	}
	f, err := index.Read(path)
	if err != nil {
		return nil, err
	}
	f.Modified = modified
	return f, nil
}

// KeepUntracked copies what snap has found untracked or ignored to the folder
// dir, and what is in submodules that are checked out, so that it can be put into
// fresh trees as it was before the first turn, with what commands left of .git. Sockets, devices, pipes, what may not be read and what lies very deep are left
// out.
func (c *Checkout) KeepUntracked(ctx context.Context, snap *Snapshot, dir string) error {
	return c.work.Keep(ctx, slices.Sorted(maps.Keys(snap.untracked)), snap.index, dir)
}

// Dirty lists the tracked files that are modified or staged against the commit
// that the work tree stands on, submodules on another commit included. Files
// are read only where their stat data does not settle it.
func (c *Checkout) Dirty(ctx context.Context) ([]string, error) {
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return nil, err
	}
	dirty := map[string]bool{}
	err = c.work.CompareIndex(ctx, ix, c.stands().Tree.hash(), func(path string, _ objects.Entry) { dirty[path] = true })
	if err != nil {
		return nil, fmt.Errorf("compare the index with HEAD: %w", err)
	}
	return c.addDirty(ctx, ix, dirty)
}

// DirtySince lists the tracked files that are other than a snapshot has them.
func (c *Checkout) DirtySince(ctx context.Context, snap *Snapshot) ([]string, error) {
	return c.addDirty(ctx, snap.index, map[string]bool{})
}

func (c *Checkout) addDirty(ctx context.Context, ix *index.File, dirty map[string]bool) ([]string, error) {
	s := c.work.Scan(ix, worktree.OnlyTracked, func(f worktree.Found) { dirty[f.Path] = true })
	if err := s.Run(ctx); err != nil {
		return nil, fmt.Errorf("look for modified files: %w", err)
	}
	if err := s.Clean(ctx, false); err != nil {
		return nil, fmt.Errorf("look for modified files: %w", err)
	}
	for i := range s.Suspects {
		if !s.AsIndexed(&s.Suspects[i]) {
			dirty[s.Suspects[i].Path] = true
		}
	}
	return slices.Sorted(maps.Keys(dirty)), nil
}
