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

// CheckFilters refuses a repository whose own configuration has a filter that is not allowed, and
// makes sure that the filters which the index asks for can run. It is a *FilterError.
func (c *Checkout) CheckFilters(ctx context.Context) error {
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return err
	}
	return c.work.CheckFilters(ctx, ix)
}
