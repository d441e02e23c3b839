package gitops

import (
	"context"
	"maps"

	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
)

// How the commands of filters (gitattributes(5)) run.
type (
	Filter       = worktree.Filter
	OpenFilter   = worktree.OpenFilter
	FilterPlace  = worktree.FilterPlace
	CommandError = worktree.CommandError
)

// AllowFilters has filters of the repository's own configuration run, by their names, each with the
// paths that it may read. All others of it stay refused, but for Git LFS.
func (c *Checkout) AllowFilters(listed map[string][]string) {
	c.filters.Listed = maps.Clone(listed)
	c.work.SetFilters(c.filters)
}

// OpenFiltersBy says who opens places for filters from here on.
func (c *Checkout) OpenFiltersBy(open OpenFilter) {
	c.filters.Open = open
	c.work.SetFilters(c.filters)
}

// CheckFilters refuses filters of the repository's own configuration that are not allowed. It also
// checks that all filters named by attributes of the index can run. The error is a *FilterError.
func (c *Checkout) CheckFilters(ctx context.Context) error {
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return err
	}
	return c.work.CheckFilters(ctx, ix)
}
