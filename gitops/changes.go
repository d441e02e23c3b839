package gitops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
	"github.com/agent-ci/agent-ci/gitops/internal/trees"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Changes returns the changes of the work tree since the snapshot: tracked files, and new files
// that are not ignored. It compares with the base, or in the checkout with the commit it was opened
// on. Files that were untracked in the snapshot do not count. Neither do the repository's own index
// and HEAD, because the agent may have changed them. New objects stay in the private git folder
// until Switch.
func (c *Checkout) Changes(ctx context.Context, snap *Snapshot) (*ChangeSet, error) {
	return c.changes(ctx, snap, nil)
}

// ChangesWith is Changes plus the untracked files at paths, even if git ignores them. ApplyChange
// on another base may have written such files: they are tracked there, but ignored by the
// checkout's own commit.
func (c *Checkout) ChangesWith(ctx context.Context, snap *Snapshot, paths []string) (*ChangeSet, error) {
	landed := make(map[string]bool, len(paths))
	for _, path := range paths {
		if _, before := snap.untracked[path]; !before && !snap.index.Tracks(path) {
			landed[path] = true
		}
	}
	return c.changes(ctx, snap, landed)
}

// changes compares the work tree with the snapshot. landed are paths whose untracked files belong to the
// change.
func (c *Checkout) changes(ctx context.Context, snap *Snapshot, landed map[string]bool) (*ChangeSet, error) {
	base := c.currentBase()
	collected := changeCollector{snap: snap, landed: landed, stats: map[string]index.Stat{}}
	tree, err := c.changedTree(ctx, base.Tree, &collected)
	if err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	cs, err := c.Compare(ctx, base, tree)
	if err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	cs.Problems = append(collected.problems, cs.Problems...)
	cs.FileStats = collected.stats
	return cs, nil
}

// changedTree collects the changes of the work tree and returns its tree: base with the changes.
func (c *Checkout) changedTree(ctx context.Context, base Tree, to *changeCollector) (Tree, error) {
	to.scan = scan.New(c.work.ScanTree(), to.snap.index, to.addFound)
	if err := to.scan.Run(ctx); err != nil {
		return "", err
	}
	for _, path := range slices.Sorted(maps.Keys(to.landed)) {
		to.scan.SuspectAt(path)
	}
	if err := c.work.StoreSuspects(ctx, to.scan); err != nil {
		return "", err
	}
	to.addSuspects()
	sort.Slice(to.problems, func(a, b int) bool { return to.problems[a].Path < to.problems[b].Path })
	tree, err := c.objects.Apply(base.Hash(), to.edits)
	return trees.IDOf(tree), err
}

// changeCollector collects the changes that a scan finds.
type changeCollector struct {
	snap   *Snapshot
	landed map[string]bool // untracked files that belong to the change even if git ignores them
	scan   *scan.Scan

	edits    []index.Entry
	problems []Problem
	stats    map[string]index.Stat // of the files that were read
}

// addFound adds a finding of the scan to the change. It skips files that were untracked in the snapshot.
func (c *changeCollector) addFound(f scan.Found) {
	switch f.Kind {
	case scan.Deleted:
		c.edits = append(c.edits, index.Entry{Path: f.Path})
	case scan.Submodule:
		c.problem(ProblemSubmodule, f.Path, "it is on another commit, which nobody else has")
	case scan.Unreadable:
		c.problem(ProblemUnreadable, f.Path, "the folder may not be read")
	default:
		if !c.landed[f.Path] && !c.snap.wasUntracked(f.Path) {
			c.addUntracked(f)
		}
	}
}

// addUntracked adds a new file to the suspects. For an entry that no change can contain, it adds a
// problem instead. It skips ignored files.
func (c *changeCollector) addUntracked(f scan.Found) {
	switch f.Kind {
	case scan.Untracked:
		c.scan.Suspect(f)
	case scan.Repository:
		c.problem(ProblemRepository, f.Path, "a repository of its own was made there")
	case scan.InvalidName:
		c.problem(ProblemName, f.Path, "some systems take the name for .git")
	case scan.TooDeep:
		c.problem(ProblemTooDeep, f.Path, fmt.Sprintf("its path is longer than %d bytes or %d parts", pathname.Longest, pathname.Deepest))
	}
}

// problem adds a problem to the change.
func (c *changeCollector) problem(kind ProblemKind, path, detail string) {
	c.problems = append(c.problems, Problem{Kind: kind, Path: path, Detail: detail})
}

// addSuspects adds the cleaned suspects that differ from the index to the change.
func (c *changeCollector) addSuspects() {
	for i := range c.scan.Suspects {
		s := &c.scan.Suspects[i]
		switch {
		case s.TooLarge:
			c.problem(ProblemLarge, s.Path, s.Why)
			continue
		case s.Why != "":
			c.problem(ProblemUnreadable, s.Path, s.Why)
			continue
		}
		c.stats[s.Path] = index.StatOf(s.Info)
		if c.scan.AsIndexed(s) {
			continue
		}
		c.edits = append(c.edits, index.Entry{Path: s.Path, Mode: s.Mode, ID: s.ID})
	}
}
