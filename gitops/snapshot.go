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
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Snapshot is the state of the work tree before the agent's first turn: its untracked files, and
// the stat data of unmodified tracked files.
type Snapshot struct {
	index           *index.File              // exactly the base tree, with stat data
	untracked       map[string]untrackedPath // by path
	movedSubmodules []string                 // submodules that are on another commit than in the base
	dirty           map[string]bool          // tracked paths that differ from the commit that the work tree is based on
	folders         scan.Folders             // of the checkout; nil if unknown
}

// untrackedPath is an untracked file, link or folder.
type untrackedPath struct {
	Dir  bool        `json:"dir,omitempty"`  // it covers everything below it
	Seen bool        `json:"seen,omitempty"` // git does not ignore it, and it existed before the setup commands
	Stat *index.Stat `json:"stat,omitempty"` // of a file or link in the checkout; missing in marks of version 1
}

// Dirty lists the tracked files that differ from the commit the work tree is based on, modified or
// staged. It includes submodules on another commit. After WithLayer, it lists what the layer changed.
func (s *Snapshot) Dirty() []string { return slices.Sorted(maps.Keys(s.dirty)) }

// DropHidden removes the paths that c hides now from a snapshot made before.
func (c *Checkout) DropHidden(s *Snapshot) {
	maps.DeleteFunc(s.untracked, func(path string, _ untrackedPath) bool { return c.work.Hides(path) })
}

// SubmodulesElsewhere lists the submodules that are on another commit than in the base. Only a
// snapshot of WriteBase has any.
func (s *Snapshot) SubmodulesElsewhere() []string { return s.movedSubmodules }

// Submodules lists the paths of the submodules that were tracked when the snapshot was made.
func (s *Snapshot) Submodules() []string {
	return pathsIn(s.index, func(ix *index.File, i int) bool { return ix.Mode(i) == index.Gitlink })
}

// WithUntrackedOf returns the snapshot with more's untracked files added.
func (s *Snapshot) WithUntrackedOf(more *Snapshot) *Snapshot {
	both := *s
	both.untracked = maps.Clone(s.untracked)
	for path, u := range more.untracked {
		both.setUntracked(path, u.Dir)
	}
	return &both
}

// ForCopy returns the snapshot with the index of copied, which has the stat data of a copy of the
// checkout.
func (s *Snapshot) ForCopy(copied *Snapshot) *Snapshot {
	at := *s
	at.index = copied.index
	return &at
}

// maxExcluded is the largest number of paths in a tree's info/exclude. git compares every untracked
// file with each of them.
const maxExcluded = 1000

// excludedPaths lists the paths for a tree's info/exclude. If there are more than maxExcluded, it
// replaces files by the topmost folder without tracked files.
func (s *Snapshot) excludedPaths() []string {
	visible := slices.DeleteFunc(slices.Sorted(maps.Keys(s.untracked)), func(path string) bool { return !s.untracked[path].Seen })
	if len(visible) <= maxExcluded {
		return visible
	}
	var all []string
	for _, name := range visible {
		for i, letter := range name {
			if letter != '/' {
				continue
			}
			if lo, hi := s.index.EntriesBelow(name[:i+1], 0, s.index.Len()); lo == hi { // no tracked file is in the folder
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

// wasUntracked reports whether path was untracked in the snapshot, or is in a folder that was untracked as a
// whole.
func (s *Snapshot) wasUntracked(path string) bool {
	if _, is := s.untracked[path]; is {
		return true
	}
	for at := strings.LastIndexByte(path, '/'); at >= 0; at = strings.LastIndexByte(path, '/') {
		path = path[:at]
		if s.untracked[path].Dir {
			return true
		}
	}
	return false
}

// Snapshot records the state of the work tree. A folder that is ignored as a whole is one entry:
// files that appear in it later do not count as changes. Snapshot reads a file only if its stat
// data does not show whether it changed.
func (c *Checkout) Snapshot(ctx context.Context) (snap *Snapshot, err error) {
	ix, staged, err := c.baseIndex(ctx)
	if err == nil {
		snap, err = c.snapshot(ctx, ix)
	}
	if err != nil {
		return nil, fmt.Errorf("record the work tree: %w", err)
	}
	for _, d := range staged {
		snap.dirty[d.Path] = true
	}
	return snap, nil
}

// snapshot records the work tree. ix lists the tracked files.
func (c *Checkout) snapshot(ctx context.Context, ix *index.File) (*Snapshot, error) {
	began, err := c.fileSystemTime()
	if err != nil {
		return nil, err
	}
	for i := range ix.Len() {
		if path := ix.Path(i); len(path) > pathname.Deepest && pathname.IsTooDeep(string(path)) {
			return nil, &objects.TooDeepError{Path: string(path)}
		}
	}
	snap := &Snapshot{untracked: map[string]untrackedPath{}}
	s, dirty, err := c.scanWithContent(ctx, ix, func(f scan.Found) {
		u := untrackedPath{Dir: f.Dir, Seen: f.Kind == scan.Untracked || f.Kind == scan.Repository}
		if stat := f.Stat(); !f.Dir {
			u.Stat = &stat
		}
		snap.untracked[f.Path] = u
	})
	if err == nil {
		err = c.work.RequireAttributeFiles(s.AttributeFolders)
	}
	if err != nil {
		return nil, err
	}
	snap.index, snap.dirty, snap.folders = withFreshStats(ix, s, began), dirty, s.Folders(began)
	return snap, nil
}

// scanWithContent compares the work tree with an index, including the content of files that may differ. It reports
// untracked paths, and returns the tracked ones that differ.
func (c *Checkout) scanWithContent(ctx context.Context, ix *index.File, report func(scan.Found)) (s *scan.Scan, dirty map[string]bool, err error) {
	dirty = map[string]bool{}
	s = scan.New(c.work.ScanTree(), ix, func(f scan.Found) {
		if f.Tracked() {
			dirty[f.Path] = true
			return
		}
		report(f)
	})
	if err = s.Run(ctx); err == nil {
		err = c.work.HashSuspects(ctx, s)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, path := range s.Differing() {
		dirty[path] = true
	}
	return s, dirty, nil
}

// setUntracked records that a path is untracked, and whether it is a folder.
func (s *Snapshot) setUntracked(path string, dir bool) {
	u := s.untracked[path]
	u.Dir = dir
	s.untracked[path] = u
}

// fileSystemTime returns the current time of the file system, which is coarser than the system
// clock. No later write gets an earlier time.
func (c *Checkout) fileSystemTime() (time.Time, error) {
	path := filepath.Join(c.repo.PrivateDir, "clock")
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

// baseIndex returns the checkout's index with the entries of the current base. It returns staged
// changes separately, or nil if there are none: they count as changes of the work tree.
func (c *Checkout) baseIndex(ctx context.Context) (_ *index.File, staged []objects.Difference, err error) {
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return nil, nil, err
	}
	err = c.objects.CompareIndex(ctx, ix, c.currentBase().Tree.Hash(), func(path string, e objects.Entry) {
		staged = append(staged, objects.Difference{Path: path, New: e})
	})
	if err != nil {
		return nil, nil, err
	}
	if len(staged) == 0 {
		return ix, nil, nil
	}
	ix, err = c.updatedIndex(ix, objects.Updates(staged, nil), ix.Modified)
	return ix, staged, err
}

// withFreshStats returns the index with the stat data of unchanged suspects, so that nothing reads them
// again.
func withFreshStats(ix *index.File, s *scan.Scan, began time.Time) *index.File {
	var stats []index.StatUpdate
	for i := range s.Suspects {
		if one := &s.Suspects[i]; s.AsIndexed(one) {
			stats = append(stats, index.StatUpdate{Entry: one.Entry, Stat: index.StatOf(one.Info)})
		}
	}
	if len(stats) == 0 {
		return ix
	}
	return ix.WithStats(stats, began)
}

// updatedIndex returns ix with updates and the given modification time. It writes a private index
// file and reads that.
func (c *Checkout) updatedIndex(ix *index.File, updates []index.Entry, modified time.Time) (*index.File, error) {
	path := filepath.Join(c.repo.PrivateDir, "base-index")
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

// CopyUntracked copies the untracked and ignored files of snap, and the files of submodules, to
// dir. Fresh trees get these files, in the state before the first turn. From a layer, it also
// copies what commands changed in .git. It omits sockets, devices, pipes, unreadable files and very
// deep folders.
func (c *Checkout) CopyUntracked(ctx context.Context, snap *Snapshot, dir string) error {
	return c.work.Keep(ctx, slices.Sorted(maps.Keys(snap.untracked)), snap.index, dir)
}
