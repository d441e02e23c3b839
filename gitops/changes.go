package gitops

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// ChangeSet is what is to become a commit: a tree on a base, and how it
// differs.
type ChangeSet struct {
	Base       Base
	Tree       Tree
	Files      []File // sorted by path
	Insertions int    // lines, without those of binary files
	Deletions  int
	Problems   []Problem

	snapshot *Snapshot             // nil: the work tree does not hold the change
	stats    map[string]index.Stat // of the files in the work tree that were read
	alike    []difference          // files that were written and are to git as before
}

// Empty says that there is nothing to commit. A nil ChangeSet is empty.
func (cs *ChangeSet) Empty() bool { return cs == nil || len(cs.Files) == 0 }

// Status is what happened to a file, in git's letters.
type Status string

// The statuses. A rename is a deletion and an addition.
const (
	Added       Status = "A"
	Modified    Status = "M"
	Deleted     Status = "D"
	TypeChanged Status = "T" // file, link and submodule became one another
)

// File is one changed path. Modes are octal as git writes them, ids hex; both
// are empty for a side that is not there.
type File struct {
	Path       string
	Status     Status
	OldMode    string
	NewMode    string
	OldID      string
	NewID      string
	Binary     bool
	Insertions int
	Deletions  int
}

// Changes finds what changed in the work tree since the snapshot, against the
// base: tracked files, and files that are new and not ignored. What was not
// tracked before the snapshot never is part of it. The repository's own index
// and HEAD do not count: the agent may have done anything to them. New objects
// are kept aside until Switch.
func (c *Checkout) Changes(ctx context.Context, snap *Snapshot) (*ChangeSet, error) {
	w := work{Checkout: c, snap: snap, cs: &ChangeSet{Base: c.base, snapshot: snap, stats: map[string]index.Stat{}}}
	s := c.scan(snap.index, w.take)
	if err := s.run(ctx); err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	if err := w.clean(ctx, s); err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	slices.SortFunc(w.cs.Problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	if err := w.makeTree(); err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	if err := c.describe(ctx, w.cs); err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	return w.cs, nil
}

// work gathers a change set from what a scan finds.
type work struct {
	*Checkout
	snap     *Snapshot
	cs       *ChangeSet
	suspects []suspect
	edits    []edit
}

func (w *work) take(f found) error {
	switch f.what {
	case foundDeleted:
		w.edits = append(w.edits, edit{path: f.path})
	case foundSuspect:
		w.suspects = append(w.suspects, suspectOf(w.snap.index, f))
	case foundSubmodule:
		if w.submoduleMoved(w.snap.index, f) {
			w.problem(ProblemSubmodule, f.path, "it is on another commit, which nobody else has")
		}
	case foundUntracked:
		if !w.snap.covers(f.path) {
			w.suspects = append(w.suspects, suspectOf(w.snap.index, f))
		}
	case foundRepository:
		if !w.snap.covers(f.path) {
			w.problem(ProblemRepository, f.path, "a repository of its own was made there")
		}
	case foundInvalid:
		if !w.snap.covers(f.path) {
			w.problem(ProblemName, f.path, "some systems take the name for .git")
		}
	case foundUnreadable:
		w.problem(ProblemUnreadable, f.path, "the folder may not be read")
	case foundTooDeep:
		if !w.snap.covers(f.path) {
			w.problem(ProblemTooDeep, f.path, fmt.Sprintf("its path is longer than %d bytes or %d parts", longestPath, deepestPath))
		}
	}
	return nil
}

func (w *work) problem(kind ProblemKind, path, detail string) {
	w.cs.Problems = append(w.cs.Problems, Problem{kind, path, detail})
}

func (w *work) clean(ctx context.Context, s *scan) error {
	w.modes(w.snap.index, w.suspects)
	cl := cleaner{Checkout: w.Checkout, attributes: w.workAttributes(s), keep: true}
	if err := cl.clean(ctx, w.suspects); err != nil {
		return err
	}
	for _, s := range w.suspects {
		if s.why != "" {
			w.problem(s.kind, s.path, s.why)
			continue
		}
		w.cs.stats[s.path] = index.StatOf(s.info)
		if isAsIndexed(w.snap.index, s) {
			e := treeEntry{mode: s.mode, id: s.id}
			w.cs.alike = append(w.cs.alike, difference{s.path, e, e})
			continue
		}
		w.edits = append(w.edits, edit{s.path, s.mode, s.id})
	}
	return nil
}

func (w *work) makeTree() error {
	tree, err := w.objects.applyEdits(w.base.Tree.hash(), w.edits)
	if err != nil {
		return err
	}
	if tree.IsZero() {
		tree, err = w.objects.writeBytes(plumbing.TreeObject, nil)
	}
	w.cs.Tree = Tree(tree.String())
	return err
}

// describe fills in the files and what is doubtful about them.
func (c *Checkout) describe(ctx context.Context, cs *ChangeSet) error {
	changes, err := c.differences(ctx, cs.Base.Tree.hash(), cs.Tree.hash())
	if err != nil {
		return err
	}
	slices.SortFunc(changes, func(a, b difference) int { return strings.Compare(a.path, b.path) })
	for _, d := range changes {
		cs.Files = append(cs.Files, fileOf(d))
		if err := c.judge(cs, d); err != nil {
			return err
		}
	}
	return c.countLines(ctx, cs, changes)
}

func fileOf(d difference) File {
	f := File{Path: d.path, Status: Modified}
	if d.old.mode != 0 {
		f.OldMode, f.OldID = fmt.Sprintf("%06o", d.old.mode), d.old.id.String()
	}
	if d.new.mode != 0 {
		f.NewMode, f.NewID = fmt.Sprintf("%06o", d.new.mode), d.new.id.String()
	}
	switch {
	case d.old.mode == 0:
		f.Status = Added
	case d.new.mode == 0:
		f.Status = Deleted
	case d.old.mode&^0o777 != d.new.mode&^0o777:
		f.Status = TypeChanged
	}
	return f
}

// judge names what is doubtful about one changed path.
func (c *Checkout) judge(cs *ChangeSet, d difference) error {
	if d.new.mode == 0 {
		return nil
	}
	if !validPath(d.path) {
		cs.Problems = append(cs.Problems, Problem{ProblemName, d.path, "some systems take the name for .git"})
	}
	switch d.new.mode {
	case index.Gitlink:
		cs.Problems = append(cs.Problems, Problem{ProblemSubmodule, d.path, "it points to another commit"})
	case index.Symlink:
		const longest = 1 << 16
		target, err := c.objects.blobBytes(d.new.id, longest)
		if err != nil {
			return err
		}
		if leadsOut(d.path, string(target)) {
			cs.Problems = append(cs.Problems, Problem{ProblemLink, d.path, fmt.Sprintf("it leads out of the repository, to %q", target)})
		}
	}
	return nil
}

// leadsOut says whether a link's target lies outside of the checkout by its
// text, or within .git. One that goes up behind a name may do so too: what the
// name is may be another link.
func leadsOut(link, target string) bool {
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
	return to == ".." || strings.HasPrefix(to, "../") || !validPath(to) && to != "."
}
