package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/merge"
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

// Rebase makes the change set that cs is on another base, by merging each file
// that cs touches three ways. It returns a *MergeError when that cannot be done.
// The objects of base must be here. The work tree is not touched, and does not
// hold the new change set.
func (c *Checkout) Rebase(ctx context.Context, cs *ChangeSet, base Base) (*ChangeSet, error) {
	moved, err := c.merge(ctx, cs.Base.Tree, cs.Tree, base, "the new base")
	if err != nil {
		return nil, fmt.Errorf("rebase the change: %w", err)
	}
	moved.keepProblems(cs.Problems)
	return moved, nil
}

// RebaseMarked is Rebase that goes on where the two conflict: lines of both stand between
// marks then, which labels name, and a file that has no lines, or is on one side alone, is
// as on the new base.
func (c *Checkout) RebaseMarked(ctx context.Context, cs *ChangeSet, base Base, labels merge.Labels) (*ChangeSet, []MergeConflict, error) {
	m, err := c.takeAll(ctx, cs.Base.Tree, cs.Tree, base, "the new base", &labels)
	if err != nil {
		return nil, nil, fmt.Errorf("rebase the change: %w", err)
	}
	m.leaveBlocked()
	moved, err := m.changeSet(ctx, base)
	if err != nil {
		return nil, nil, fmt.Errorf("rebase the change: %w", err)
	}
	moved.keepProblems(cs.Problems)
	return moved, m.conflicts, nil
}

// Merge makes the change set that a parent takes over from its fork: from the parent's
// tree to one that also has what the fork changed of base, the tree that it began with.
// Each file that the fork touched is merged three ways. Where one conflicts the error is a
// *MergeError, and nothing is to be taken over. The objects of the trees must be here.
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
			edits = append(edits, objects.Edit{Path: d.Path, Mode: d.New.Mode, ID: d.New.ID})
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
	m, err := c.takeAll(ctx, old, now, onto, name, nil)
	if err != nil {
		return nil, err
	}
	if len(m.conflicts) > 0 {
		return nil, &MergeError{With: name, Conflicts: m.conflicts}
	}
	return m.changeSet(ctx, onto)
}

// takeAll decides on each path that differs between two trees.
func (c *Checkout) takeAll(ctx context.Context, old, now Tree, onto Base, name string, labels *merge.Labels) (*treeMerge, error) {
	changes, err := c.objects.Differences(ctx, old.hash(), now.hash())
	if err != nil {
		return nil, err
	}
	m := &treeMerge{Checkout: c, old: old.hash(), onto: onto.Tree.hash(), name: name, labels: labels, gone: map[string]bool{}}
	for _, d := range changes {
		m.gone[d.Path] = d.New.Mode == 0
	}
	for _, d := range changes {
		if err := m.take(ctx, d); err != nil {
			return nil, fmt.Errorf("%q: %w", d.Path, err)
		}
	}
	m.sortConflicts()
	return m, nil
}

// leaveBlocked leaves out edits in whose way stands what is as on the new base: a file where
// the edit needs a folder, or a folder with a file that is kept where it needs a file.
func (m *treeMerge) leaveBlocked() {
	kept := slices.DeleteFunc(slices.Clone(m.conflicts), func(c MergeConflict) bool { return c.Marked })
	m.edits = slices.DeleteFunc(m.edits, func(e objects.Edit) bool {
		i := slices.IndexFunc(kept, func(c MergeConflict) bool {
			return strings.HasPrefix(e.Path, c.Path+"/") || strings.HasPrefix(c.Path, e.Path+"/")
		})
		if i < 0 || e.Mode == 0 {
			return false
		}
		m.conflict(e.Path, "%q is in its way on %s", kept[i].Path, m.name)
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

// treeMerge gathers what changes become on another tree.
type treeMerge struct {
	*Checkout
	old, onto plumbing.Hash
	name      string          // of onto
	labels    *merge.Labels   // of marks in conflicts; nil for none
	gone      map[string]bool // paths of the change; true where it deletes them
	edits     []objects.Edit
	conflicts []MergeConflict
	moves     map[plumbing.Hash]string // what the new base added, by content; nil until it is needed
}

func (m *treeMerge) conflict(path, format string, args ...any) {
	m.conflicts = append(m.conflicts, MergeConflict{Path: path, Why: fmt.Sprintf(format, args...)})
}

func (m *treeMerge) edit(path string, e objects.Entry) {
	m.edits = append(m.edits, objects.Edit{Path: path, Mode: e.Mode, ID: e.ID})
}

func same(a, b objects.Entry) bool { return a.Mode == b.Mode && a.ID == b.ID }

// take decides on one path, which is d.old in the old base, d.new in the change
// and there in the new base.
func (m *treeMerge) take(ctx context.Context, d objects.Difference) error {
	there, err := m.objects.Find(m.onto, d.Path)
	if err != nil {
		return err
	}
	blocker := ""
	if there.Mode == 0 {
		blocker, err = m.fileAbove(d.Path)
	}
	if err != nil {
		return err
	}
	switch {
	case there.IsTree():
		return m.overFolder(ctx, d, there)
	case blocker != "" && d.New.Mode != 0 && !m.gone[blocker]:
		m.conflict(d.Path, "%q is a file on %s", blocker, m.name)
	case same(there, d.Old):
		m.edit(d.Path, d.New)
	case same(there, d.New): // the base has it already
	case there.Mode == 0:
		return m.missing(ctx, d)
	case d.New.Mode == 0:
		m.conflict(d.Path, "deleted here and changed on %s", m.name)
	case d.Old.Mode == 0 && m.labels == nil:
		m.conflict(d.Path, addedTwice, m.name)
	default:
		return m.both(d, there)
	}
	return nil
}

const addedTwice = "added here and on %s, each in another way"

// fileAbove is the file of the new base, if any, that stands where a folder on the
// way to a path would be.
func (m *treeMerge) fileAbove(path string) (string, error) {
	for at, letter := range path {
		if letter != '/' {
			continue
		}
		e, err := m.objects.Find(m.onto, path[:at])
		if err != nil {
			return "", err
		}
		if e.Mode != 0 && !e.IsTree() {
			return path[:at], nil
		}
	}
	return "", nil
}

// overFolder is for a path that is a folder on the new base.
func (m *treeMerge) overFolder(ctx context.Context, d objects.Difference, there objects.Entry) error {
	if d.New.Mode == 0 {
		if d.Old.Mode != 0 {
			m.conflict(d.Path, "deleted here and a folder on %s", m.name)
		}
		return nil
	}
	inFolder, err := m.objects.Differences(ctx, plumbing.ZeroHash, there.ID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(inFolder, func(below objects.Difference) bool { return !m.gone[d.Path+"/"+below.Path] }) {
		m.conflict(d.Path, "it is a folder on %s", m.name)
		return nil
	}
	m.edit(d.Path, d.New)
	return nil
}

// missing is for a path that the new base deleted and the change did not.
func (m *treeMerge) missing(ctx context.Context, d objects.Difference) error {
	to, err := m.movedTo(ctx, d.Old.ID)
	if err != nil {
		return err
	}
	if to != "" {
		m.conflict(d.Path, "changed here and renamed to %q on %s", to, m.name)
		return nil
	}
	m.conflict(d.Path, "changed here and deleted on %s", m.name)
	return nil
}

// movedTo is where the new base has a content that the old one had elsewhere.
func (m *treeMerge) movedTo(ctx context.Context, id plumbing.Hash) (string, error) {
	if m.moves == nil {
		changes, err := m.objects.Differences(ctx, m.old, m.onto)
		if err != nil {
			return "", err
		}
		m.moves = map[plumbing.Hash]string{}
		for _, d := range changes {
			if d.Old.Mode == 0 {
				m.moves[d.New.ID] = d.Path
			}
		}
	}
	return m.moves[id], nil
}

// both is for a path that all three have, changed on both sides, or that both sides added.
func (m *treeMerge) both(d objects.Difference, there objects.Entry) error {
	for _, e := range []objects.Entry{d.Old, d.New, there} {
		if e.Mode != 0 && e.Mode != index.Regular && e.Mode != index.Executable {
			m.conflict(d.Path, "both changed it, and it is a link or a submodule on one side")
			return nil
		}
	}
	merged := objects.Entry{Mode: threeWay(d.Old.Mode, d.New.Mode, there.Mode), ID: threeWay(d.Old.ID, d.New.ID, there.ID)}
	if d.Old.ID != d.New.ID && d.Old.ID != there.ID && d.New.ID != there.ID {
		id, why, err := m.text(d.Old.ID, d.New.ID, there.ID)
		if err != nil {
			return err
		}
		if why != "" && d.Old.Mode == 0 {
			why = fmt.Sprintf(addedTwice, m.name)
		}
		if why != "" {
			m.conflicts = append(m.conflicts, MergeConflict{Path: d.Path, Why: why, Marked: !id.IsZero()})
		}
		if id.IsZero() {
			return nil
		}
		merged.ID = id
	}
	m.edit(d.Path, merged)
	return nil
}

// threeWay is the value of the side that changed it.
func threeWay[T comparable](base, ours, theirs T) T {
	if ours == base {
		return theirs
	}
	return ours
}

// mergedFile is how large a file may be whose lines are merged.
const mergedFile = 4 << 20

// text merges the lines of three blobs, of which the base may not be there; why says what
// keeps it from doing so. The id is of a text with marks then, or none.
func (m *treeMerge) text(base, ours, theirs plumbing.Hash) (id plumbing.Hash, why string, err error) {
	var texts [3]string
	for i, blob := range []plumbing.Hash{base, ours, theirs} {
		if blob.IsZero() {
			continue
		}
		data, err := m.objects.BlobBytes(blob, mergedFile)
		switch {
		case errors.As(err, new(*objects.TooLargeError)):
			return id, "both changed it, and it is too large to be merged", nil
		case err != nil:
			return id, "", err
		case bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0:
			return id, "both changed it, and it is binary", nil
		}
		texts[i] = string(data)
	}
	merged, ok := merge.Lines(texts[0], texts[1], texts[2])
	if !ok {
		why = "both changed the same lines"
		if m.labels == nil {
			return id, why, nil
		}
		merged = merge.Marked(texts[0], texts[1], texts[2], *m.labels)
	}
	id, err = m.objects.WriteBytes(plumbing.BlobObject, []byte(merged))
	return id, why, err
}
