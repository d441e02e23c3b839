package trees

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/merge"
	"github.com/agent-ci/agent-ci/policy/clip"
)

type (
	// MergeConflict is a path that both sides changed and that git could not merge.
	MergeConflict = merge.Conflict
	// Labels names the sides in conflict markers.
	Labels = merge.Labels
)

// MergeError reports a change set in conflict with another base or change.
type MergeError struct {
	With      string          // what it conflicts with: "the new base"
	Conflicts []MergeConflict // sorted by path
}

func (e *MergeError) Error() string {
	var files []string
	for _, c := range e.Conflicts {
		files = append(files, fmt.Sprintf("%q (%s)", c.Path, c.Why))
	}
	return "the change conflicts with " + e.With + ": " + clip.Some(files, 5)
}

// Rebase returns cs on another base, like `git merge` of its branch into that base, with the new
// base's attributes. It returns a *MergeError for a conflict. The objects of base must exist. The
// work tree does not change, so it no longer matches the result.
func (s *Store) Rebase(ctx context.Context, cs *ChangeSet, base Base) (*ChangeSet, error) {
	moved, err := s.merge(ctx, cs.Base.Tree, cs.Tree, base, newBase)
	if err != nil {
		return nil, fmt.Errorf("rebase the change: %w", err)
	}
	moved.addMissingProblems(cs.Problems)
	return moved, nil
}

const newBase = "the new base"

// RebaseMarked is Rebase that accepts conflicts: it writes markers with labels around the
// conflicting lines of both sides. A conflicting file without lines, or that only one side has,
// becomes the new base's version.
func (s *Store) RebaseMarked(ctx context.Context, cs *ChangeSet, base Base, labels Labels) (*ChangeSet, []MergeConflict, error) {
	m, err := s.mergeTrees(ctx, cs.Base.Tree, cs.Tree, base.Tree, newBase)
	if err == nil {
		err = m.MarkConflicts(labels)
	}
	var moved *ChangeSet
	if err == nil {
		moved, err = s.mergedChange(ctx, m, base)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("rebase the change: %w", err)
	}
	moved.addMissingProblems(cs.Problems)
	return moved, m.Conflicts, nil
}

// Merge applies a fork's changes since base to its parent. It returns a change set whose base is
// the parent's tree. It returns a *MergeError for a conflict. The objects of all trees must exist.
// Apply the result to the parent's layer with ApplyChange: its base has no commit.
func (s *Store) Merge(ctx context.Context, base, parent, fork Tree) (*ChangeSet, error) {
	merged, err := s.merge(ctx, base, fork, Base{Tree: parent}, "the parent's side")
	if err != nil {
		return nil, fmt.Errorf("merge a fork: %w", err)
	}
	return merged, nil
}

// PartialTree returns the tree from with some of its differences to the tree to: those whose path
// take accepts.
func (s *Store) PartialTree(ctx context.Context, from, to Tree, take func(path string) bool) (Tree, error) {
	changes, err := s.objects.Differences(ctx, from.Hash(), to.Hash())
	if err != nil {
		return "", fmt.Errorf("take a part of a change: %w", err)
	}
	var edits []index.Entry
	for _, d := range changes {
		if take(d.Path) {
			edits = append(edits, d.New.At(d.Path))
		}
	}
	tree, err := s.objects.Apply(from.Hash(), edits)
	if err != nil {
		return "", fmt.Errorf("take a part of a change: %w", err)
	}
	return IDOf(tree), nil
}

// merge applies the differences between the trees old and now to onto. It returns them as a change
// set on onto, or a *MergeError. name describes onto in errors.
func (s *Store) merge(ctx context.Context, old, now Tree, onto Base, name string) (*ChangeSet, error) {
	m, err := s.mergeTrees(ctx, old, now, onto.Tree, name)
	if err != nil {
		return nil, err
	}
	if len(m.Conflicts) > 0 {
		return nil, &MergeError{With: name, Conflicts: m.Conflicts}
	}
	return s.mergedChange(ctx, m, onto)
}

// mergeTrees merges the differences between the trees old and now into onto.
func (s *Store) mergeTrees(ctx context.Context, old, now, onto Tree, name string) (*merge.Merge, error) {
	return merge.Trees(ctx, merge.Place{Repo: s.repo, Objects: s.objects, Work: s.work}, old.Hash(), now.Hash(), onto.Hash(), name)
}

// mergedChange returns the result of a merge as a change set on onto.
func (s *Store) mergedChange(ctx context.Context, m *merge.Merge, onto Base) (*ChangeSet, error) {
	tree, err := m.Tree()
	if err != nil {
		return nil, err
	}
	return s.Compare(ctx, onto, IDOf(tree))
}

// addMissingProblems adds the problems that cs does not have yet. Some are only visible in the work tree,
// so describe cannot find them.
func (cs *ChangeSet) addMissingProblems(problems []Problem) {
	for _, p := range problems {
		same := func(q Problem) bool { return q.Kind == p.Kind && q.Path == p.Path }
		if !slices.ContainsFunc(cs.Problems, same) {
			cs.Problems = append(cs.Problems, p)
		}
	}
}
