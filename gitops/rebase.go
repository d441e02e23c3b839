package gitops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// MergeConflict is a path changed by both sides without an automatic merge.
type MergeConflict struct {
	Path string
	Why  string // "both changed the same lines"
	// Marked reports conflict markers in the file. Otherwise it is the new base's version.
	Marked bool
}

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
		err = m.writeMarkers(labels)
	}
	var moved *ChangeSet
	if err == nil {
		m.dropBlocked()
		moved, err = m.changeSet(ctx, base)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("rebase the change: %w", err)
	}
	moved.keepProblems(cs.Problems)
	return moved, m.conflicts, nil
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
	if len(m.conflicts) > 0 {
		return nil, &MergeError{With: name, Conflicts: m.conflicts}
	}
	return m.changeSet(ctx, onto)
}

// dropBlocked drops edits blocked by entries of the new base: a file in place of a needed folder,
// or a folder with kept files in place of a file.
func (m *treeMerge) dropBlocked() {
	kept := slices.DeleteFunc(slices.Clone(m.conflicts), func(c MergeConflict) bool { return c.Marked })
	m.edits = slices.DeleteFunc(m.edits, func(e objects.Edit) bool {
		i := slices.IndexFunc(kept, func(c MergeConflict) bool {
			return e.Path != c.Path && pathname.Overlap(e.Path, c.Path)
		})
		if i < 0 || e.Mode == 0 {
			return false
		}
		m.conflicts = append(m.conflicts, MergeConflict{Path: e.Path, Why: fmt.Sprintf("%q is in its way on %s", kept[i].Path, m.name)})
		return true
	})
	m.sortConflicts()
}

func (m *treeMerge) sortConflicts() {
	slices.SortFunc(m.conflicts, func(a, b MergeConflict) int { return strings.Compare(a.Path, b.Path) })
}

// changeSet returns the merge result as a change set on onto.
func (m *treeMerge) changeSet(ctx context.Context, onto Base) (*ChangeSet, error) {
	tree, err := m.objects.Apply(m.onto, m.edits)
	if err != nil {
		return nil, err
	}
	return m.Checkout.changeSet(ctx, onto, Tree(tree.String()))
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
