package gitops

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// Dirty lists the tracked files that are modified or staged against the commit
// that the work tree stands on, submodules on another commit included. Files
// are read only where their stat data does not settle it.
func (c *Checkout) Dirty(ctx context.Context) ([]string, error) {
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return nil, err
	}
	dirty := map[string]bool{}
	err = c.compareIndex(ctx, ix, c.base.Tree.hash(), func(path string, _ objects.Entry) { dirty[path] = true })
	if err != nil {
		return nil, fmt.Errorf("compare the index with HEAD: %w", err)
	}
	var suspects []suspect
	s := c.scan(ix, nil)
	s.tracked = true
	s.report = func(f found) error {
		switch f.what {
		case foundSuspect:
			suspects = append(suspects, suspectOf(ix, f))
		case foundSubmodule:
			if c.submoduleMoved(ix, f) {
				dirty[f.path] = true
			}
		default:
			dirty[f.path] = true
		}
		return nil
	}
	if err := s.run(ctx); err != nil {
		return nil, fmt.Errorf("look for modified files: %w", err)
	}
	modified, err := c.modified(ctx, ix, suspects, s)
	if err != nil {
		return nil, err
	}
	for _, m := range modified {
		dirty[m.path] = true
	}
	return slices.Sorted(maps.Keys(dirty)), nil
}

// scan is a scan of the work tree against ix.
func (c *Checkout) scan(ix *index.File, report func(found) error) *scan {
	return &scan{
		settings: &c.repo.Settings, index: ix, root: c.dir, outer: c.ignores, skip: c.leftOut(), report: report,
	}
}

// leftOut are what is hidden and folders of ours that lie in the work tree.
func (c *Checkout) leftOut() map[string]bool {
	rel, err := filepath.Rel(c.repo.Root, c.state)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return c.hidden
	}
	all := map[string]bool{c.repo.Settings.SameName(filepath.ToSlash(rel)): true}
	maps.Copy(all, c.hidden)
	return all
}

func suspectOf(ix *index.File, f found) suspect {
	s := suspect{path: f.path, info: f.info}
	if f.entry >= 0 {
		s.old = ix.Entry(f.entry).ID
	}
	return s
}

// modified returns those suspects whose content or mode is not what ix has.
func (c *Checkout) modified(ctx context.Context, ix *index.File, suspects []suspect, s *scan) ([]suspect, error) {
	cl := cleaner{Checkout: c, attributes: c.workAttributes(s)}
	c.modes(ix, suspects)
	if err := cl.clean(ctx, suspects); err != nil {
		return nil, fmt.Errorf("look for modified files: %w", err)
	}
	return slices.DeleteFunc(suspects, func(s suspect) bool { return isAsIndexed(ix, s) }), nil
}

// modes fills in the modes that git would record for suspects.
func (c *Checkout) modes(ix *index.File, suspects []suspect) {
	for i := range suspects {
		s := &suspects[i]
		known := uint32(0)
		if at, ok := ix.Search(s.path); ok {
			known = ix.Mode(at)
		}
		s.mode = modeOf(&c.repo.Settings, s.info, known)
	}
}

func isAsIndexed(ix *index.File, s suspect) bool {
	i, ok := ix.Search(s.path)
	if !ok || s.why != "" {
		return false
	}
	e := ix.Entry(i)
	return e.Stage == 0 && !e.IntentToAdd && e.Mode == s.mode && e.ID == s.id
}

// submoduleMoved says whether a submodule is on another commit than the index
// has.
func (c *Checkout) submoduleMoved(ix *index.File, f found) bool {
	dir, ok := repository.GitDirOf(filepath.Join(c.repo.Root, filepath.FromSlash(f.path)))
	if !ok {
		return true
	}
	_, id, err := repository.Layout{GitDir: dir, CommonDir: dir}.Head()
	return err != nil || id != ix.Entry(f.entry).ID
}

// compareIndex reports every path where ix has not what tree has; the entry is
// tree's, with mode 0 where tree has nothing. Folders that the index knows the
// tree of are not gone into.
func (c *Checkout) compareIndex(ctx context.Context, ix *index.File, tree plumbing.Hash, report func(path string, e objects.Entry)) error {
	cmp := indexComparison{ctx, c.objects, ix, report}
	return cmp.folder(ix.CachedTree(), tree, "", 0, ix.Len())
}

type indexComparison struct {
	ctx     context.Context
	objects *objects.Store
	index   *index.File
	report  func(path string, e objects.Entry)
}

func (c *indexComparison) folder(cached index.CachedTree, tree plumbing.Hash, prefix string, lo, hi int) error {
	if cached.Valid && cached.ID == tree {
		return nil
	}
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	entries, err := c.objects.Tree(tree)
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
		var same objects.Entry
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

// child is a file or folder of the index: its name, with a slash when it is a
// folder, and its range.
type child struct {
	key    string
	lo, hi int
}

func (c *indexComparison) child(prefix string, lo, hi int) child {
	path := string(c.index.Path(lo))
	name, _, deeper := strings.Cut(path[len(prefix):], "/")
	if !deeper {
		end := lo + 1
		for end < hi && string(c.index.Path(end)) == path {
			end++ // the sides of an unresolved merge
		}
		return child{name, lo, end}
	}
	_, end := c.index.Folder(prefix+name+"/", lo, hi)
	return child{name + "/", lo, end}
}

func (c *indexComparison) compare(ch child, same objects.Entry, cached index.CachedTree, prefix string) error {
	if name, isFolder := strings.CutSuffix(ch.key, "/"); isFolder {
		return c.folder(cached.Folder(name), same.ID, prefix+ch.key, ch.lo, ch.hi)
	}
	e := c.index.Entry(ch.lo)
	if e.Stage != 0 || e.IntentToAdd || e.Mode != same.Mode || e.ID != same.ID {
		c.report(e.Path, same)
	}
	return nil
}

// missing reports what the tree has and the index has not.
func (c *indexComparison) missing(e objects.Entry, prefix string) error {
	if !e.IsTree() {
		c.report(prefix+e.Name, e)
		return nil
	}
	entries, err := c.objects.Tree(e.ID)
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
