package gitops

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
)

// ChangeSet is the content of a future commit: a tree, its base, and the differences.
type ChangeSet struct {
	Base       Base
	Tree       Tree
	Files      []changeset.File // sorted by path
	Insertions int              // changed lines; binary files count as none
	Deletions  int
	Problems   []Problem

	stats map[string]index.Stat // of the files in the work tree that were read for this change set
}

// Empty reports whether there is nothing to commit. A nil ChangeSet is empty.
func (cs *ChangeSet) Empty() bool { return cs == nil || len(cs.Files) == 0 }

// newContent returns the regular files whose content is new to the base. It omits links, and files
// that were only moved or copied.
func (cs *ChangeSet) newContent() (files []changeset.File) {
	had := map[string]bool{}
	for _, f := range cs.Files {
		had[f.OldID] = true
	}
	regular, executable := fmt.Sprintf("%06o", index.Regular), fmt.Sprintf("%06o", index.Executable)
	for _, f := range cs.Files {
		if f.NewID != "" && !had[f.NewID] && (f.NewMode == regular || f.NewMode == executable) {
			files = append(files, f)
		}
	}
	return files
}

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
	w := changeCollector{snap: snap, landed: landed, cs: &ChangeSet{Base: c.currentBase(), stats: map[string]index.Stat{}}}
	w.scan = scan.New(c.work.ScanTree(), snap.index, scan.WithUntracked, w.addFound)
	if err := w.scan.Run(ctx); err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(landed)) {
		w.scan.SuspectAt(path)
	}
	if err := c.work.Clean(ctx, w.scan, true); err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	w.addSuspects()
	slices.SortFunc(w.cs.Problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	tree, err := c.objects.Apply(w.cs.Base.Tree.hash(), w.edits)
	if err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	w.cs.Tree = Tree(tree.String())
	if err := c.describe(ctx, w.cs); err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	return w.cs, nil
}

// changeCollector collects a change set from a scan.
type changeCollector struct {
	snap   *Snapshot
	landed map[string]bool // untracked files that belong to the change even if git ignores them
	scan   *scan.Scan
	cs     *ChangeSet
	edits  []objects.Edit
}

// addFound adds a finding of the scan to the change. It skips files that were untracked in the snapshot.
func (w *changeCollector) addFound(f scan.Found) {
	switch f.Kind {
	case scan.Deleted:
		w.edits = append(w.edits, objects.Edit{Path: f.Path})
	case scan.Submodule:
		w.problem(ProblemSubmodule, f.Path, "it is on another commit, which nobody else has")
	case scan.Unreadable:
		w.problem(ProblemUnreadable, f.Path, "the folder may not be read")
	default:
		if !w.landed[f.Path] && !w.snap.covers(f.Path) {
			w.addUntracked(f)
		}
	}
}

// addUntracked adds a new file to the suspects. For an entry that no change can contain, it adds a
// problem instead.
func (w *changeCollector) addUntracked(f scan.Found) {
	switch f.Kind {
	case scan.Untracked:
		w.scan.Suspect(f)
	case scan.Repository:
		w.problem(ProblemRepository, f.Path, "a repository of its own was made there")
	case scan.InvalidName:
		w.problem(ProblemName, f.Path, "some systems take the name for .git")
	case scan.TooDeep:
		w.problem(ProblemTooDeep, f.Path, fmt.Sprintf("its path is longer than %d bytes or %d parts", scan.MaxPath, objects.DeepestPath))
	}
}

// problem adds a problem to the change set.
func (w *changeCollector) problem(kind ProblemKind, path, detail string) {
	w.cs.Problems = append(w.cs.Problems, Problem{kind, path, detail})
}

// addSuspects adds the cleaned suspects that differ from the index to the change.
func (w *changeCollector) addSuspects() {
	for i := range w.scan.Suspects {
		s := &w.scan.Suspects[i]
		switch {
		case s.TooLarge:
			w.problem(ProblemLarge, s.Path, s.Why)
			continue
		case s.Why != "":
			w.problem(ProblemUnreadable, s.Path, s.Why)
			continue
		}
		w.cs.stats[s.Path] = index.StatOf(s.Info)
		if w.scan.AsIndexed(s) {
			continue
		}
		w.edits = append(w.edits, objects.Edit{Path: s.Path, Mode: s.Mode, ID: s.ID})
	}
}

// changeSet returns the change set from a base to a tree.
func (c *Checkout) changeSet(ctx context.Context, base Base, tree Tree) (*ChangeSet, error) {
	cs := &ChangeSet{Base: base, Tree: tree}
	return cs, c.describe(ctx, cs)
}

// describe adds the files and problems to a change set.
func (c *Checkout) describe(ctx context.Context, cs *ChangeSet) error {
	changes, err := c.objects.Differences(ctx, cs.Base.Tree.hash(), cs.Tree.hash())
	if err != nil {
		return err
	}
	slices.SortFunc(changes, func(a, b objects.Difference) int { return strings.Compare(a.Path, b.Path) })
	for _, d := range changes {
		cs.Files = append(cs.Files, fileOf(d))
		if err := c.judge(cs, d); err != nil {
			return err
		}
	}
	return c.countLines(ctx, cs)
}

// fileOf describes a difference between two trees.
func fileOf(d objects.Difference) changeset.File {
	f := changeset.File{Path: d.Path, Status: changeset.Modified}
	if d.Old.Mode != 0 {
		f.OldMode, f.OldID = fmt.Sprintf("%06o", d.Old.Mode), d.Old.ID.String()
	}
	if d.New.Mode != 0 {
		f.NewMode, f.NewID = fmt.Sprintf("%06o", d.New.Mode), d.New.ID.String()
	}
	switch {
	case d.Old.Mode == 0:
		f.Status = changeset.Added
	case d.New.Mode == 0:
		f.Status = changeset.Deleted
	case d.ChangesType():
		f.Status = changeset.TypeChanged
	}
	return f
}

// Problem is something doubtful in a change. The caller decides whether it prevents publication.
type Problem struct {
	Kind   ProblemKind
	Path   string
	Detail string
}

type ProblemKind string

const (
	ProblemRepository ProblemKind = "nested_repository" // a new .git: the files below it are not part of the change
	ProblemName       ProblemKind = "dangerous_name"    // some file system treats the name as .git
	ProblemSubmodule  ProblemKind = "submodule"         // a submodule was moved to another commit
	ProblemLink       ProblemKind = "link_leads_out"    // a symbolic link out of the repository
	ProblemUnreadable ProblemKind = "unreadable"        // a file that may not be read, or whose filter cannot run: left out
	ProblemLarge      ProblemKind = "large"             // over the size limit of a change: left out, unread
	ProblemTooDeep    ProblemKind = "too_deep"          // a path that git could not check out: left out, with everything below it
)

func (p Problem) String() string {
	return fmt.Sprintf("%q: %s", p.Path, p.Detail)
}

// judge adds the problems of one changed path: a name like .git, a submodule, or a link out of the
// repository.
func (c *Checkout) judge(cs *ChangeSet, d objects.Difference) error {
	if d.New.Mode == 0 {
		return nil
	}
	if !objects.ValidPath(d.Path) {
		cs.Problems = append(cs.Problems, Problem{ProblemName, d.Path, "some systems take the name for .git"})
	}
	switch d.New.Mode {
	case index.Gitlink:
		cs.Problems = append(cs.Problems, Problem{ProblemSubmodule, d.Path, "it points to another commit"})
	case index.Symlink:
		const longest = 1 << 16
		target, err := c.objects.BlobBytes(d.New.ID, longest)
		if err != nil {
			return err
		}
		if pointsOutside(d.Path, string(target)) {
			cs.Problems = append(cs.Problems, Problem{ProblemLink, d.Path, fmt.Sprintf("it leads out of the repository, to %q", target)})
		}
	}
	return nil
}

// pointsOutside reports whether a link's target is outside the checkout or in .git. It also returns
// true for ".." after a name: the name may be another link, so the result is unknown.
func pointsOutside(link, target string) bool {
	if strings.HasPrefix(target, "/") {
		return true
	}
	named := false
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." && named {
			return true
		}
		named = named || part != ".." && part != "." && part != ""
	}
	to := path.Join(path.Dir(link), target)
	return to == ".." || strings.HasPrefix(to, "../") || !objects.ValidPath(to) && to != "."
}
