package objects

import (
	"context"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// CompareIndex calls report for each path at which ix and tree differ, with the tree's entry. The
// entry has mode 0 if the path is not in the tree. It skips folders whose cached tree in the index
// is the same.
func (s *Store) CompareIndex(ctx context.Context, ix *index.File, tree plumbing.Hash, report func(path string, e Entry)) error {
	cmp := indexComparison{ctx, s, ix, report}
	return cmp.compareFolder(ix.CachedTree(), tree, "", 0, ix.Len())
}

type indexComparison struct {
	ctx    context.Context
	store  *Store
	index  *index.File
	report func(path string, e Entry)
}

// compareFolder compares the index entries lo to hi, all below prefix, with a tree object. It skips a
// folder that the index caches as the same tree.
func (c *indexComparison) compareFolder(cached index.CachedTree, tree plumbing.Hash, prefix string, lo, hi int) error {
	if cached.Valid && cached.ID == tree {
		return nil
	}
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	entries, err := c.store.Tree(tree)
	if err != nil {
		return err
	}
	for lo < hi {
		child := c.child(prefix, lo, hi)
		for len(entries) > 0 && entries[0].Key() < child.key {
			if err := c.missing(entries[0], prefix); err != nil {
				return err
			}
			entries = entries[1:]
		}
		var same Entry
		if len(entries) > 0 && entries[0].Key() == child.key {
			same, entries = entries[0], entries[1:]
		}
		if err := c.compare(child, same, cached, prefix); err != nil {
			return err
		}
		lo = child.hi
	}
	for _, e := range entries {
		if err := c.missing(e, prefix); err != nil {
			return err
		}
	}
	return nil
}

// child is a file or folder of the index: its name, with a final slash for a folder, and its range
// of entries.
type child struct {
	key    string
	lo, hi int
}

// child returns the file or folder that the entry lo belongs to, below prefix.
func (c *indexComparison) child(prefix string, lo, hi int) child {
	path := string(c.index.Path(lo))
	name, _, deeper := strings.Cut(path[len(prefix):], "/")
	if !deeper {
		end := lo + 1
		for end < hi && string(c.index.Path(end)) == path {
			end++ // the other stages of an unresolved merge
		}
		return child{name, lo, end}
	}
	_, end := c.index.Folder(prefix+name+"/", lo, hi)
	return child{name + "/", lo, end}
}

// compare compares a file or folder of the index with the tree's entry of the same name.
func (c *indexComparison) compare(ch child, same Entry, cached index.CachedTree, prefix string) error {
	if name, isFolder := strings.CutSuffix(ch.key, "/"); isFolder {
		return c.compareFolder(cached.Folder(name), same.ID, prefix+ch.key, ch.lo, ch.hi)
	}
	e := c.index.Entry(ch.lo)
	if e.Stage != 0 || e.IntentToAdd || e.Mode != same.Mode || e.ID != same.ID {
		c.report(e.Path, same)
	}
	return nil
}

// missing reports entries of the tree that are missing in the index, recursively.
func (c *indexComparison) missing(e Entry, prefix string) error {
	if !e.IsTree() {
		c.report(prefix+e.Name, e)
		return nil
	}
	entries, err := c.store.Tree(e.ID)
	if err != nil {
		return err
	}
	for _, below := range entries {
		if err := c.missing(below, prefix+e.Name+"/"); err != nil {
			return err
		}
	}
	return nil
}
