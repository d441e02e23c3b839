package gitops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/merge"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

type (
	// MergeConflict is a path changed by both sides without an automatic merge.
	MergeConflict = merge.Conflict
	// Labels names the sides in conflict markers.
	Labels = merge.Labels
)

// IsMarker reports whether a line, without its end, is a conflict marker of any [Labels].
func IsMarker(line string) bool { return merge.IsMarker(line) }

// MergeError reports a change set in conflict with another base or change.
type MergeError struct {
	With      string          // what it conflicts with: "the new base"
	Conflicts []MergeConflict // sorted by path
}

func (e *MergeError) Error() string {
	const shown = 5
	var parts []string
	for _, c := range e.Conflicts[:min(shown, len(e.Conflicts))] {
		parts = append(parts, fmt.Sprintf("%q (%s)", c.Path, c.Why))
	}
	if more := len(e.Conflicts) - shown; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return "the change conflicts with " + e.With + ": " + strings.Join(parts, ", ")
}

// Rebase returns cs on another base, like a `git merge` of its branch there, with the new base's
// attributes. It returns a *MergeError for a conflict. The objects of base must exist. The work
// tree stays, and no longer matches the result.
func (c *Checkout) Rebase(ctx context.Context, cs *ChangeSet, base Base) (*ChangeSet, error) {
	moved, err := c.merge(ctx, cs.Base.Tree, cs.Tree, base, newBase)
	if err != nil {
		return nil, fmt.Errorf("rebase the change: %w", err)
	}
	moved.keepProblems(cs.Problems)
	return moved, nil
}

const newBase = "the new base"

// RebaseMarked is Rebase with conflicts: it puts markers with labels around the lines of both
// sides. A file without lines, or on one side only, becomes the new base's version.
func (c *Checkout) RebaseMarked(ctx context.Context, cs *ChangeSet, base Base, labels Labels) (*ChangeSet, []MergeConflict, error) {
	m, err := c.mergeTrees(ctx, cs.Base.Tree, cs.Tree, base.Tree, newBase)
	if err == nil {
		err = m.MarkConflicts(labels)
	}
	var moved *ChangeSet
	if err == nil {
		moved, err = c.mergedChange(ctx, m, base)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("rebase the change: %w", err)
	}
	moved.keepProblems(cs.Problems)
	return moved, m.Conflicts, nil
}

// Merge returns the change set from a parent's tree to one with the fork's changes since base. It
// returns a *MergeError for a conflict. The objects of all trees must exist. Apply the result to
// the parent's layer with ApplyChange; no commit has its base.
func (c *Checkout) Merge(ctx context.Context, base, parent, fork Tree) (*ChangeSet, error) {
	merged, err := c.merge(ctx, base, fork, Base{Tree: parent}, "the parent's side")
	if err != nil {
		return nil, fmt.Errorf("merge a fork: %w", err)
	}
	return merged, nil
}

// PartialTree returns a tree with the accepted differences between two others.
func (c *Checkout) PartialTree(ctx context.Context, from, to Tree, take func(path string) bool) (Tree, error) {
	changes, err := c.objects.Differences(ctx, from.hash(), to.hash())
	if err != nil {
		return "", fmt.Errorf("take a part of a change: %w", err)
	}
	var edits []objects.Edit
	for _, d := range changes {
		if take(d.Path) {
			edits = append(edits, d.Edit())
		}
	}
	tree, err := c.objects.Apply(from.hash(), edits)
	if err != nil {
		return "", fmt.Errorf("take a part of a change: %w", err)
	}
	return Tree(tree.String()), nil
}

// merge returns the change set from onto to onto with the differences of two trees. name describes
// onto.
func (c *Checkout) merge(ctx context.Context, old, now Tree, onto Base, name string) (*ChangeSet, error) {
	m, err := c.mergeTrees(ctx, old, now, onto.Tree, name)
	if err != nil {
		return nil, err
	}
	if len(m.Conflicts) > 0 {
		return nil, &MergeError{With: name, Conflicts: m.Conflicts}
	}
	return c.mergedChange(ctx, m, onto)
}

func (c *Checkout) mergeTrees(ctx context.Context, old, now, onto Tree, name string) (*merge.Merge, error) {
	return merge.Trees(ctx, merge.Place{Repo: c.repo, Objects: c.objects, Work: c.work}, old.hash(), now.hash(), onto.hash(), name)
}

// mergedChange returns the result of a merge as a change set on onto.
func (c *Checkout) mergedChange(ctx context.Context, m *merge.Merge, onto Base) (*ChangeSet, error) {
	tree, err := m.Tree()
	if err != nil {
		return nil, err
	}
	return c.changeSet(ctx, onto, Tree(tree.String()))
}

// keepProblems adds problems only visible in the work tree.
func (cs *ChangeSet) keepProblems(problems []Problem) {
	for _, p := range problems {
		same := func(q Problem) bool { return q.Kind == p.Kind && q.Path == p.Path }
		if !slices.ContainsFunc(cs.Problems, same) {
			cs.Problems = append(cs.Problems, p)
		}
	}
}
