package gitops

import (
	"context"
	"maps"

	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
)

// These types describe how the commands of filters (gitattributes(5)) run.
type (
	Filter        = worktree.Filter
	OpenFilter    = worktree.OpenFilter
	FilterSandbox = worktree.FilterSandbox
	CommandError  = worktree.CommandError
)

// AllowFilters permits filters of the repository's own configuration. listed maps a filter's name
// to the paths that its commands may read. Git LFS is always permitted.
func (c *Checkout) AllowFilters(listed map[string][]string) {
	c.work.Filters.Listed = maps.Clone(listed)
}

// SetFilterOpener sets the function that opens sandboxes for filters.
func (c *Checkout) SetFilterOpener(open OpenFilter) { c.work.Filters.Open = open }

// CheckFilters returns a *FilterError if the repository's own configuration has a filter that
// AllowFilters did not permit, used or not. It also checks that every filter named in the
// attributes of the index can run.
func (c *Checkout) CheckFilters(ctx context.Context) error {
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return err
	}
	return c.work.CheckFilters(ctx, ix)
}
