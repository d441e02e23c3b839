package gitops

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
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
	err = c.work.CompareIndex(ctx, ix, c.base.Tree.hash(), func(path string, _ objects.Entry) { dirty[path] = true })
	if err != nil {
		return nil, fmt.Errorf("compare the index with HEAD: %w", err)
	}
	s := c.work.Scan(ix, worktree.OnlyTracked, func(f worktree.Found) { dirty[f.Path] = true })
	if err := s.Run(ctx); err != nil {
		return nil, fmt.Errorf("look for modified files: %w", err)
	}
	if err := s.Clean(ctx, false); err != nil {
		return nil, fmt.Errorf("look for modified files: %w", err)
	}
	for i := range s.Suspects {
		if !s.AsIndexed(&s.Suspects[i]) {
			dirty[s.Suspects[i].Path] = true
		}
	}
	return slices.Sorted(maps.Keys(dirty)), nil
}
