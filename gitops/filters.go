package gitops

import (
	"context"
	"maps"

	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
)

// How the commands of filters (gitattributes(5)) run.
type (
	Filter        = worktree.Filter
	OpenFilter    = worktree.OpenFilter
	FilterSandbox = worktree.FilterSandbox
	CommandError  = worktree.CommandError
)

// AllowFilters permits filters of the repository's own configuration by name, each with readable
// paths. Git LFS is always permitted.
func (c *Checkout) AllowFilters(listed map[string][]string) {
	c.filters.Listed = maps.Clone(listed)
	c.work.SetFilters(c.filters)
}

// SetFilterOpener sets the function that opens sandboxes for filters.
func (c *Checkout) SetFilterOpener(open OpenFilter) {
	c.filters.Open = open
	c.work.SetFilters(c.filters)
}

// CheckFilters refuses filters of the repository's own configuration, used or not, without
// permission by AllowFilters. It also checks that every filter in attributes of the index can run.
// It returns a *FilterError.
func (c *Checkout) CheckFilters(ctx context.Context) error {
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return err
	}
	return c.work.CheckFilters(ctx, ix)
}
