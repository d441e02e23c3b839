package gitops

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/changeset"
)

// Unfiltered names a filter that a change's attributes use but git's configuration does not have.
// git commits the files unchanged.
type Unfiltered struct {
	Filter string
	Paths  []string // files of the change with this filter
}

// Unfiltered returns the filters without configuration of the files that a change adds or modifies,
// sorted by name. It omits files that were only moved, and Git LFS pointers, which belong in a
// commit.
func (c *Checkout) Unfiltered(ctx context.Context, cs *ChangeSet) ([]Unfiltered, error) {
	brought := cs.NewContent()
	names, err := c.work.FiltersByPath(ctx, cs.Tree.Hash(), changeset.Paths(brought))
	if err != nil {
		return nil, fmt.Errorf("look for filters: %w", err)
	}
	paths := map[string][]string{}
	for _, f := range brought {
		name := names[f.Path]
		if name == "" || c.repo.Settings.Filters[name].Active() {
			continue
		}
		_, pointer, err := c.lfsFile(f.NewID)
		if err != nil {
			return nil, err
		}
		if !pointer {
			paths[name] = append(paths[name], f.Path)
		}
	}
	var all []Unfiltered
	for name, files := range paths {
		all = append(all, Unfiltered{name, files})
	}
	slices.SortFunc(all, func(a, b Unfiltered) int { return cmp.Compare(a.Filter, b.Filter) })
	return all, nil
}
