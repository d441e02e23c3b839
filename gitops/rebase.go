package gitops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/internal/pathname"
)

// MergeConflict is a path that a change set and a newer base, or two change sets, changed
// so that no merge of the two can be made without a person.
type MergeConflict struct {
	Path string
	Why  string // "both changed the same lines"
	// Marked says that the file has both sides between marks; else it is as on the new base.
	Marked bool
}

// MergeError is a change set that doesn't go onto another base, or another change.
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

// Rebase returns the change set that cs is on another base, as `git merge` makes it there of a branch
// with cs: attributes are those of the new base. It is a *MergeError where the two conflict.
// The objects of base must be here. The work tree is not touched, and does not
// hold the new change set.
func (c *Checkout) Rebase(ctx context.Context, cs *ChangeSet, base Base) (*ChangeSet, error) {
	moved, err := c.merge(ctx, cs.Base.Tree, cs.Tree, base, newBase)
	if err != nil {
		return nil, fmt.Errorf("rebase the change: %w", err)
	}
	moved.keepProblems(cs.Problems)
	return moved, nil
}

const newBase = "the new base"

// RebaseMarked is Rebase that goes on where the two conflict: lines of both stand between
// marks then, which labels name, and a file that has no lines, or is on one side alone, is
// as on the new base.
func (c *Checkout) RebaseMarked(ctx context.Context, cs *ChangeSet, base Base, labels Labels) (*ChangeSet, []MergeConflict, error) {
	m, err := c.mergeTrees(ctx, cs.Base.Tree, cs.Tree, base.Tree, newBase)
	if err == nil {
		err = m.mark(labels)
	}
	var moved *ChangeSet
	if err == nil {
		m.leaveBlocked()
		moved, err = m.changeSet(ctx, base)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("rebase the change: %w", err)
	}
	moved.keepProblems(cs.Problems)
	return moved, m.conflicts, nil
}

// Merge makes the change set that a parent takes over from its fork: from the parent's
// tree to one that also has what the fork changed of base, the tree that it began with.
// Where the two conflict the error is a *MergeError, and nothing is to be taken over. The
// objects of the trees must be here.
// LayOver puts the change set into the parent's layer; no commit has its base.
func (c *Checkout) Merge(ctx context.Context, base, parent, fork Tree) (*ChangeSet, error) {
	merged, err := c.merge(ctx, base, fork, Base{Tree: parent}, "the parent's side")
	if err != nil {
		return nil, fmt.Errorf("merge a fork: %w", err)
	}
	return merged, nil
}

// Part is a tree with what of the differences between two others is to be taken.
func (c *Checkout) Part(ctx context.Context, from, to Tree, take func(path string) bool) (Tree, error) {
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

// merge makes the change set from onto, which is told by a name, to a tree with what
// differs between two others.
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

// leaveBlocked leaves out edits in whose way stands what is as on the new base: a file where
// the edit needs a folder, or a folder with a file that is kept where it needs a file.
func (m *treeMerge) leaveBlocked() {
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

// changeSet is what the merge makes of the tree that it goes onto.
func (m *treeMerge) changeSet(ctx context.Context, onto Base) (*ChangeSet, error) {
	tree, err := m.objects.Apply(m.onto, m.edits)
	if err != nil {
		return nil, err
	}
	return m.Checkout.changeSet(ctx, onto, Tree(tree.String()))
}

// keepProblems adds what only a look at the work tree could find.
func (cs *ChangeSet) keepProblems(problems []Problem) {
	for _, p := range problems {
		same := func(q Problem) bool { return q.Kind == p.Kind && q.Path == p.Path }
		if !slices.ContainsFunc(cs.Problems, same) {
			cs.Problems = append(cs.Problems, p)
		}
	}
}
