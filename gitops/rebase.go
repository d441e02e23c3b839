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
	"github.com/agent-ci/agent-ci/gitops/merge"
)

// MergeConflict is a path that a change set and a newer base changed so that no
// merge of the two can be made without a person.
type MergeConflict struct {
	Path string
	Why  string // "both changed the same lines"
}

// MergeError is a change set that doesn't go onto another base.
type MergeError struct {
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
	return "the change conflicts with the new base: " + strings.Join(parts, ", ")
}

// Rebase makes the change set that cs is on another base, by merging each file
// that cs touches three ways. It returns a *MergeError when that cannot be done.
// The objects of base must be here. The work tree is not touched, and does not
// hold the new change set.
func (c *Checkout) Rebase(ctx context.Context, cs *ChangeSet, base Base) (*ChangeSet, error) {
	changes, err := c.differences(ctx, cs.Base.Tree.hash(), cs.Tree.hash())
	if err != nil {
		return nil, fmt.Errorf("rebase the change: %w", err)
	}
	m := treeMerge{Checkout: c, old: cs.Base.Tree.hash(), onto: base.Tree.hash(), gone: map[string]bool{}}
	for _, d := range changes {
		m.gone[d.path] = d.new.mode == 0
	}
	for _, d := range changes {
		if err := m.take(ctx, d); err != nil {
			return nil, fmt.Errorf("rebase the change of %q: %w", d.path, err)
		}
	}
	if len(m.conflicts) > 0 {
		slices.SortFunc(m.conflicts, func(a, b MergeConflict) int { return strings.Compare(a.Path, b.Path) })
		return nil, &MergeError{Conflicts: m.conflicts}
	}
	moved, err := c.changeSetOf(ctx, base, m.edits)
	if err != nil {
		return nil, fmt.Errorf("rebase the change: %w", err)
	}
	moved.keepProblems(cs.Problems)
	return moved, nil
}

// changeSetOf is the change set that edits make of a base.
func (c *Checkout) changeSetOf(ctx context.Context, base Base, edits []edit) (*ChangeSet, error) {
	tree, err := c.objects.applyEdits(base.Tree.hash(), edits)
	if err == nil && tree.IsZero() {
		tree, err = c.objects.writeBytes(plumbing.TreeObject, nil)
	}
	if err != nil {
		return nil, err
	}
	cs := &ChangeSet{Base: base, Tree: Tree(tree.String())}
	return cs, c.describe(ctx, cs)
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
	gone      map[string]bool // paths of the change; true where it deletes them
	edits     []edit
	conflicts []MergeConflict
	moves     map[plumbing.Hash]string // what the new base added, by content; nil until it is needed
}

func (m *treeMerge) conflict(path, format string, args ...any) {
	m.conflicts = append(m.conflicts, MergeConflict{path, fmt.Sprintf(format, args...)})
}

func (m *treeMerge) edit(path string, e treeEntry) {
	m.edits = append(m.edits, edit{path, e.mode, e.id})
}

func same(a, b treeEntry) bool { return a.mode == b.mode && a.id == b.id }

// take decides on one path, which is d.old in the old base, d.new in the change
// and there in the new base.
func (m *treeMerge) take(ctx context.Context, d difference) error {
	there, blocker, err := m.objects.place(m.onto, d.path)
	if err != nil {
		return err
	}
	switch {
	case there.isTree():
		return m.overFolder(ctx, d, there)
	case blocker != "" && d.new.mode != 0 && !m.gone[blocker]:
		m.conflict(d.path, "%q is a file on the new base", blocker)
	case same(there, d.old):
		m.edit(d.path, d.new)
	case same(there, d.new): // the base has it already
	case there.mode == 0:
		return m.missing(ctx, d)
	case d.new.mode == 0:
		m.conflict(d.path, "deleted here and changed on the new base")
	case d.old.mode == 0:
		m.conflict(d.path, "added here and on the new base, each in another way")
	default:
		return m.both(d, there)
	}
	return nil
}

// overFolder is for a path that is a folder on the new base.
func (m *treeMerge) overFolder(ctx context.Context, d difference, there treeEntry) error {
	if d.new.mode == 0 {
		if d.old.mode != 0 {
			m.conflict(d.path, "deleted here and a folder on the new base")
		}
		return nil
	}
	stays := false
	err := m.objects.diff(ctx, plumbing.ZeroHash, there.id, func(below difference) error {
		stays = stays || !m.gone[d.path+"/"+below.path]
		return nil
	}, nil)
	if err != nil {
		return err
	}
	if stays {
		m.conflict(d.path, "it is a folder on the new base")
		return nil
	}
	m.edit(d.path, d.new)
	return nil
}

// missing is for a path that the new base deleted and the change did not.
func (m *treeMerge) missing(ctx context.Context, d difference) error {
	to, err := m.movedTo(ctx, d.old.id)
	if err != nil {
		return err
	}
	if to != "" {
		m.conflict(d.path, "changed here and renamed to %q on the new base", to)
		return nil
	}
	m.conflict(d.path, "changed here and deleted on the new base")
	return nil
}

// movedTo is where the new base has a content that the old one had elsewhere.
func (m *treeMerge) movedTo(ctx context.Context, id plumbing.Hash) (string, error) {
	if m.moves == nil {
		m.moves = map[plumbing.Hash]string{}
		err := m.objects.diff(ctx, m.old, m.onto, func(d difference) error {
			if d.old.mode == 0 {
				m.moves[d.new.id] = d.path
			}
			return nil
		}, nil)
		if err != nil {
			return "", err
		}
	}
	return m.moves[id], nil
}

// both is for a path that all three have, changed on both sides.
func (m *treeMerge) both(d difference, there treeEntry) error {
	for _, e := range []treeEntry{d.old, d.new, there} {
		if e.mode != index.Regular && e.mode != index.Executable {
			m.conflict(d.path, "both changed it, and it is a link or a submodule on one side")
			return nil
		}
	}
	merged := treeEntry{mode: threeWay(d.old.mode, d.new.mode, there.mode), id: threeWay(d.old.id, d.new.id, there.id)}
	if d.old.id != d.new.id && d.old.id != there.id && d.new.id != there.id {
		id, why, err := m.text(d.old.id, d.new.id, there.id)
		if err != nil {
			return err
		}
		if why != "" {
			m.conflict(d.path, "%s", why)
			return nil
		}
		merged.id = id
	}
	m.edit(d.path, merged)
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

// text merges the lines of three blobs; why says what keeps it from doing so.
func (m *treeMerge) text(base, ours, theirs plumbing.Hash) (id plumbing.Hash, why string, err error) {
	var texts [3]string
	for i, blob := range []plumbing.Hash{base, ours, theirs} {
		data, err := m.objects.blobBytes(blob, mergedFile)
		var large *TooLargeError
		switch {
		case errors.As(err, &large):
			return id, "both changed it, and it is too large to be merged", nil
		case err != nil:
			return id, "", err
		case bytes.IndexByte(data[:min(len(data), binaryStart)], 0) >= 0:
			return id, "both changed it, and it is binary", nil
		}
		texts[i] = string(data)
	}
	merged, ok := merge.Lines(texts[0], texts[1], texts[2])
	if !ok {
		return id, "both changed the same lines", nil
	}
	id, err = m.objects.writeBytes(plumbing.BlobObject, []byte(merged))
	return id, "", err
}

// place is what a tree has at a path, and the file, if any, that stands where a
// folder on the way to it would be.
func (s *store) place(tree plumbing.Hash, path string) (e treeEntry, blocker string, err error) {
	for at := 0; ; {
		cut := strings.IndexByte(path[at:], '/')
		end := len(path)
		if cut >= 0 {
			end = at + cut
		}
		entries, err := s.tree(tree)
		if err != nil {
			return treeEntry{}, "", err
		}
		i := slices.IndexFunc(entries, func(e treeEntry) bool { return e.name == path[at:end] })
		switch {
		case i < 0:
			return treeEntry{}, "", nil
		case cut < 0:
			return entries[i], "", nil
		case !entries[i].isTree():
			return treeEntry{}, path[:end], nil
		}
		tree, at = entries[i].id, end+1
	}
}
