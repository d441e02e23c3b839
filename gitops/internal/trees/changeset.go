package trees

import (
	"context"
	"fmt"
	"path"
	"sort"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// ChangeSet is the content of a future commit: a tree, its base, and the differences.
type ChangeSet struct {
	Base       Base
	Tree       Tree
	Files      []changeset.File // sorted by path
	Insertions int              // changed lines; binary files count as none
	Deletions  int
	Problems   []Problem

	FileStats map[string]index.Stat // of the files in the work tree that were read for this change set

	patch string // of a small change, from the comparison that counted its lines
}

// Empty reports whether there is nothing to commit. A nil ChangeSet is empty.
func (cs *ChangeSet) Empty() bool { return cs == nil || len(cs.Files) == 0 }

// Paths returns the paths of the changed files.
func (cs *ChangeSet) Paths() []string { return changeset.Paths(cs.Files) }

// NewContent returns the regular files whose content is new to the base. It omits links, and files
// that were only moved or copied.
func (cs *ChangeSet) NewContent() (files []changeset.File) {
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

// ChangeBetween returns the change set from a base to a tree. The objects of both must exist. It fails
// for a path that no checkout can have.
func (s *Store) ChangeBetween(ctx context.Context, base Base, tree Tree) (*ChangeSet, error) {
	cs, err := s.Compare(ctx, base, tree)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", tree, base.SHA, err)
	}
	for _, f := range cs.Files {
		if !objects.ValidPath(f.Path) {
			return nil, fmt.Errorf("compare %s with %s: %q is no path of a checkout", tree, base.SHA, f.Path)
		}
	}
	return cs, nil
}

// Compare returns the change set from a base to a tree.
func (s *Store) Compare(ctx context.Context, base Base, tree Tree) (*ChangeSet, error) {
	cs := &ChangeSet{Base: base, Tree: tree}
	return cs, s.describe(ctx, cs)
}

// describe adds the files and problems to a change set.
func (s *Store) describe(ctx context.Context, cs *ChangeSet) error {
	changes, err := s.objects.Differences(ctx, cs.Base.Tree.Hash(), cs.Tree.Hash())
	if err != nil {
		return err
	}
	sort.Slice(changes, func(a, b int) bool { return changes[a].Path < changes[b].Path })
	for _, d := range changes {
		cs.Files = append(cs.Files, fileOf(d))
		if err := s.addProblems(cs, d); err != nil {
			return err
		}
	}
	return s.countLines(ctx, cs, changes)
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
	ProblemTooDeep    ProblemKind = "too_deep"          // a path that is too long or too deep: left out, with everything below it
)

func (p Problem) String() string {
	return fmt.Sprintf("%q: %s", p.Path, p.Detail)
}

// addProblems adds the problems of one changed path: a name like .git, a submodule, or a link out of the
// repository.
func (s *Store) addProblems(cs *ChangeSet, d objects.Difference) error {
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
		target, err := s.objects.BlobBytes(d.New.ID, longest)
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
	afterName := false
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." && afterName {
			return true
		}
		isName := part != ".." && part != "." && part != ""
		afterName = afterName || isName
	}
	to := path.Join(path.Dir(link), target)
	return to != "." && !objects.ValidPath(to)
}
