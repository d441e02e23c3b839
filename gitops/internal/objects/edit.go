package objects

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Edit is what becomes of one path of a tree: mode 0 takes it away.
type Edit struct {
	Path string
	Mode uint32
	ID   plumbing.Hash
}

// Apply writes the tree that edits, one for each path, make of tree. Only the
// folders on the way to the edited paths are read and written.
func (s *Store) Apply(tree plumbing.Hash, edits []Edit) (plumbing.Hash, error) {
	edited, err := s.applyEdits(tree, edits)
	if err == nil && edited.IsZero() {
		return s.WriteBytes(plumbing.TreeObject, nil)
	}
	return edited, err
}

// applyEdits is Apply, but its result is zero when nothing is left.
func (s *Store) applyEdits(tree plumbing.Hash, edits []Edit) (plumbing.Hash, error) {
	entries, err := s.Tree(tree)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	byName := map[string]Entry{}
	for _, e := range entries {
		byName[e.Name] = e
	}
	for name, group := range groups(edits) {
		e, err := s.editEntry(byName[name], name, group)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		byName[name] = e
	}
	return s.writeTree(byName)
}

// groups sorts edits by the first part of their path and takes it off. A group
// may hold an edit of the name itself, with an empty path.
func groups(edits []Edit) map[string][]Edit {
	byName := map[string][]Edit{}
	for _, e := range edits {
		name, rest, _ := strings.Cut(e.Path, "/")
		byName[name] = append(byName[name], Edit{rest, e.Mode, e.ID})
	}
	return byName
}

// editEntry applies the edits below name, then the one of name itself: a file
// may take the place of a folder and the other way round.
func (s *Store) editEntry(e Entry, name string, group []Edit) (Entry, error) {
	var below []Edit
	self := Edit{Path: "?"}
	for _, g := range group {
		if g.Path == "" {
			self = g
			continue
		}
		below = append(below, g)
	}
	if self.Path == "" && self.Mode != 0 {
		return Entry{name, self.Mode, self.ID}, nil
	}
	if self.Path == "" && !e.IsTree() {
		e = Entry{}
	}
	if len(below) == 0 {
		return e, nil
	}
	old := plumbing.ZeroHash
	if e.IsTree() {
		old = e.ID
	}
	id, err := s.applyEdits(old, below)
	if err != nil || id.IsZero() {
		return Entry{}, err
	}
	return Entry{name, TreeMode, id}, nil
}

func (s *Store) writeTree(byName map[string]Entry) (plumbing.Hash, error) {
	entries := make([]Entry, 0, len(byName))
	for _, e := range byName {
		if e.Mode != 0 {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Key(), b.Key()) })
	return s.WriteBytes(plumbing.TreeObject, encodeTree(entries))
}
