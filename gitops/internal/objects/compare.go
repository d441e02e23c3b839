package objects

import (
	"cmp"
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Difference is a path with different entries in two trees. Folders are never reported themselves.
type Difference struct {
	Path     string
	Old, New Entry // mode 0 if missing in that tree
}

// Updates returns the updates that turn the old sides of changes into the new ones, in a tree or an index. stats
// has the stat data of written files. Files that are missing in it get zero stat data, so git reads them again.
func Updates(changes []Difference, stats map[string]index.Stat) []index.Entry {
	updates := make([]index.Entry, len(changes))
	for i, d := range changes {
		updates[i] = d.New.At(d.Path)
		updates[i].Stat = stats[d.Path]
	}
	return updates
}

// ChangesType reports whether the entry changes between file, link and submodule.
func (d Difference) ChangesType() bool {
	return d.Old.Mode != 0 && d.New.Mode != 0 && d.Old.Mode&^0o777 != d.New.Mode&^0o777
}

// Differences lists the differences between trees a and b, in git's order of paths.
func (s *Store) Differences(ctx context.Context, a, b plumbing.Hash) ([]Difference, error) {
	var list []Difference
	d := differ{s, s.treeAt, func(found Difference) { list = append(list, found) }, func(plumbing.Hash) {}}
	err := d.compareTrees(ctx, a, b, "")
	return list, err
}

// SizeOf returns the size of all files of a list of differences, before and after, in bytes.
func (s *Store) SizeOf(list []Difference) (total int64, err error) {
	for _, d := range list {
		for _, e := range [...]Entry{d.Old, d.New} {
			if !e.isFile() {
				continue
			}
			size, err := s.Size(e.ID)
			if err != nil {
				return 0, err
			}
			total += size
		}
	}
	return total, nil
}

// AddedObjects lists the trees and blobs of tree b that tree a does not have at the same path, each once.
func (s *Store) AddedObjects(ctx context.Context, a, b plumbing.Hash) ([]plumbing.Hash, error) {
	var ids []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	add := func(id plumbing.Hash) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	d := differ{s, s.treeAt, func(found Difference) {
		if found.New.isFile() && found.New.ID != found.Old.ID {
			add(found.New.ID)
		}
	}, add}
	err := d.compareTrees(ctx, a, b, "")
	return ids, err
}

// CopyDifferences copies the folders and files in which two trees differ to the store's own folder, where
// git can compare the trees.
func (s *Store) CopyDifferences(ctx context.Context, a, b plumbing.Hash) error {
	var ids []plumbing.Hash
	add := func(id plumbing.Hash) { ids = append(ids, id) }
	d := differ{s, s.treeAt, func(found Difference) {
		if found.New.isFile() { // also if just its mode differs: git reads a file that became a link
			add(found.New.ID)
		}
	}, add}
	err := d.compareTrees(ctx, a, b, "")
	if err == nil {
		err = d.compareTrees(ctx, b, a, "")
	}
	if err == nil {
		err = s.CopyTo(ctx, s, ids)
	}
	return err
}

func (s *Store) treeAt(id plumbing.Hash, _ string) ([]Entry, error) { return s.Tree(id) }

// differ compares two trees. It calls report for each difference, and folder for each tree object
// that is new in the second tree.
type differ struct {
	store  *Store
	old    func(id plumbing.Hash, prefix string) ([]Entry, error) // reads a folder of the first tree
	report func(Difference)
	folder func(id plumbing.Hash)
}

// TooDeepError reports a path in a tree or an index with more than pathname.Deepest parts.
type TooDeepError struct{ Path string }

func (e *TooDeepError) Error() string {
	return fmt.Sprintf("the path %.80q… has more than %d parts: not supported; move its files to a folder with fewer above it", e.Path, pathname.Deepest)
}

// compareTrees compares folder a with folder b, and everything below them. A zero hash stands for a missing
// folder. prefix is the path of both, with a slash at its end, or "" for the root.
func (d *differ) compareTrees(ctx context.Context, a, b plumbing.Hash, prefix string) error {
	if a == b {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if pathname.IsTooDeep(prefix) {
		return &TooDeepError{prefix}
	}
	if !b.IsZero() {
		d.folder(b)
	}
	old, err := d.old(a, prefix)
	if err != nil {
		return err
	}
	now, err := d.store.Tree(b)
	if err != nil {
		return err
	}
	return d.compareEntries(ctx, old, now, prefix)
}

// compareEntries compares the entries of two folders, both sorted as git sorts trees.
func (d *differ) compareEntries(ctx context.Context, old, now []Entry, prefix string) error {
	for len(old) > 0 || len(now) > 0 {
		var a, b Entry
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].Key() < now[0].Key():
			a, old = old[0], old[1:]
		case len(old) == 0 || now[0].Key() < old[0].Key():
			b, now = now[0], now[1:]
		default:
			a, b, old, now = old[0], now[0], old[1:], now[1:]
		}
		if err := d.compareEntry(ctx, a, b, prefix); err != nil {
			return err
		}
	}
	return nil
}

// compareEntry compares two entries of one key, so both are folders or neither is.
func (d *differ) compareEntry(ctx context.Context, a, b Entry, prefix string) error {
	if a.IsTree() || b.IsTree() {
		return d.compareTrees(ctx, a.ID, b.ID, prefix+nameOf(a, b)+"/")
	}
	if a.Mode != b.Mode || a.ID != b.ID {
		d.report(Difference{Path: prefix + nameOf(a, b), Old: a, New: b})
	}
	return nil
}

// nameOf returns the name of the entry that exists.
func nameOf(a, b Entry) string { return cmp.Or(a.Name, b.Name) }
