package gitops

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

const treeMode uint32 = 0o040000

// treeEntry is one line of a tree object.
type treeEntry struct {
	name string
	mode uint32
	id   plumbing.Hash
}

func (e treeEntry) isTree() bool { return e.mode == treeMode }

// key is what entries of a tree are sorted by: a folder as if it ended with a
// slash.
func (e treeEntry) key() string {
	if e.isTree() {
		return e.name + "/"
	}
	return e.name
}

const largestTree = 16 << 20 // bytes of one tree object

// tree reads a tree object. The zero id is the tree of nothing.
func (s *store) tree(id plumbing.Hash) ([]treeEntry, error) {
	if id.IsZero() {
		return nil, nil
	}
	o, err := s.object(plumbing.TreeObject, id)
	if err != nil {
		return nil, fmt.Errorf("read a tree: %w", err)
	}
	if o.Size() > largestTree {
		return nil, fmt.Errorf("read tree %s: %d bytes are too many", id, o.Size())
	}
	r, err := o.Reader()
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", id, err)
	}
	defer r.Close()
	var buf bytes.Buffer
	buf.Grow(int(o.Size()))
	if _, err := buf.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("read tree %s: %w", id, err)
	}
	entries, err := decodeTree(buf.Bytes())
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", id, err)
	}
	return entries, nil
}

func decodeTree(data []byte) ([]treeEntry, error) {
	var entries []treeEntry
	for len(data) > 0 {
		mode, rest, ok := bytes.Cut(data, []byte{' '})
		name, tail, named := bytes.Cut(rest, []byte{0})
		if !ok || !named || len(tail) < len(plumbing.ZeroHash) {
			return nil, fmt.Errorf("entry %d is cut", len(entries))
		}
		value, err := strconv.ParseUint(string(mode), 8, 32)
		if err != nil {
			return nil, fmt.Errorf("entry %d has no mode", len(entries))
		}
		e := treeEntry{name: string(name), mode: canonicalMode(uint32(value))}
		data = tail[copy(e.id[:], tail):]
		entries = append(entries, e)
	}
	return entries, nil
}

// canonicalMode is what git takes the modes of old trees (100664) for.
func canonicalMode(mode uint32) uint32 {
	if mode&^0o777 != 0o100000 {
		return mode
	}
	if mode&0o100 != 0 {
		return index.Executable
	}
	return index.Regular
}

func encodeTree(entries []treeEntry) []byte {
	var b []byte
	for _, e := range entries {
		b = strconv.AppendUint(b, uint64(e.mode), 8)
		b = append(b, ' ')
		b = append(b, e.name...)
		b = append(b, 0)
		b = append(b, e.id[:]...)
	}
	return b
}

// find looks a path up in a tree.
func (s *store) find(tree plumbing.Hash, path string) (treeEntry, bool, error) {
	name, rest, deeper := strings.Cut(path, "/")
	entries, err := s.tree(tree)
	if err != nil {
		return treeEntry{}, false, err
	}
	i := slices.IndexFunc(entries, func(e treeEntry) bool { return e.name == name })
	switch {
	case i < 0:
		return treeEntry{}, false, nil
	case !deeper:
		return entries[i], true, nil
	case !entries[i].isTree():
		return treeEntry{}, false, nil
	}
	return s.find(entries[i].id, rest)
}

// edit is what becomes of one path of a tree: mode 0 takes it away.
type edit struct {
	path string
	mode uint32
	id   plumbing.Hash
}

// applyEdits writes the tree that edits make of tree. Only the folders on the
// way to the edited paths are read and written. The paths are unique and
// sorted. The result is zero when nothing is left.
func (s *store) applyEdits(tree plumbing.Hash, edits []edit) (plumbing.Hash, error) {
	entries, err := s.tree(tree)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	byName := map[string]treeEntry{}
	for _, e := range entries {
		byName[e.name] = e
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
func groups(edits []edit) map[string][]edit {
	byName := map[string][]edit{}
	for _, e := range edits {
		name, rest, _ := strings.Cut(e.path, "/")
		byName[name] = append(byName[name], edit{rest, e.mode, e.id})
	}
	return byName
}

// editEntry applies the edits below name, then the one of name itself: a file
// may take the place of a folder and the other way round.
func (s *store) editEntry(e treeEntry, name string, group []edit) (treeEntry, error) {
	var below []edit
	self := edit{path: "?"}
	for _, g := range group {
		if g.path == "" {
			self = g
			continue
		}
		below = append(below, g)
	}
	if self.path == "" && self.mode != 0 {
		return treeEntry{name, self.mode, self.id}, nil
	}
	if self.path == "" && !e.isTree() {
		e = treeEntry{}
	}
	if len(below) == 0 {
		return e, nil
	}
	old := plumbing.ZeroHash
	if e.isTree() {
		old = e.id
	}
	id, err := s.applyEdits(old, below)
	if err != nil || id.IsZero() {
		return treeEntry{}, err
	}
	return treeEntry{name, treeMode, id}, nil
}

func (s *store) writeTree(byName map[string]treeEntry) (plumbing.Hash, error) {
	entries := make([]treeEntry, 0, len(byName))
	for _, e := range byName {
		if e.mode != 0 {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	slices.SortFunc(entries, func(a, b treeEntry) int { return strings.Compare(a.key(), b.key()) })
	return s.writeBytes(plumbing.TreeObject, encodeTree(entries))
}

// difference is one path that two trees do not have alike. Folders are never
// reported, only what is in them.
type difference struct {
	path     string
	old, new treeEntry // mode 0: not there
}

// diff reports how tree b differs from tree a, sorted by path as git sorts
// trees. folder is called for every tree of b that a has not at its place.
func (s *store) diff(ctx context.Context, a, b plumbing.Hash, report func(difference) error, folder func(path string, id plumbing.Hash) error) error {
	d := differ{s, report, folder}
	return d.trees(ctx, a, b, "")
}

type differ struct {
	store  *store
	report func(difference) error
	folder func(path string, id plumbing.Hash) error
}

const deepestPath = 1 << 10 // parts of a path

func (d *differ) trees(ctx context.Context, a, b plumbing.Hash, prefix string) error {
	if a == b {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if strings.Count(prefix, "/") > deepestPath {
		return fmt.Errorf("compare trees: %.80q… is too deep", prefix)
	}
	if d.folder != nil && !b.IsZero() {
		if err := d.folder(prefix, b); err != nil {
			return err
		}
	}
	old, err := d.store.tree(a)
	if err != nil {
		return err
	}
	now, err := d.store.tree(b)
	if err != nil {
		return err
	}
	return d.merge(ctx, old, now, prefix)
}

func (d *differ) merge(ctx context.Context, old, now []treeEntry, prefix string) error {
	for len(old) > 0 || len(now) > 0 {
		var a, b treeEntry
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].key() < now[0].key():
			a, old = old[0], old[1:]
		case len(old) == 0 || now[0].key() < old[0].key():
			b, now = now[0], now[1:]
		default:
			a, b, old, now = old[0], now[0], old[1:], now[1:]
		}
		if err := d.entry(ctx, a, b, prefix); err != nil {
			return err
		}
	}
	return nil
}

// entry compares two entries of one key, so both are folders or neither is.
func (d *differ) entry(ctx context.Context, a, b treeEntry, prefix string) error {
	if a.isTree() || b.isTree() {
		return d.trees(ctx, a.id, b.id, prefix+nameOf(a, b)+"/")
	}
	if a.mode == b.mode && a.id == b.id {
		return nil
	}
	return d.report(difference{path: prefix + nameOf(a, b), old: a, new: b})
}

// nameOf is the name of whichever of the two is there.
func nameOf(a, b treeEntry) string {
	if a.name != "" {
		return a.name
	}
	return b.name
}
