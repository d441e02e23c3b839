package gitops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Unfiltered is a filter that the attributes of a change ask for and that git's configuration does not
// have. Git commits its files as they are.
type Unfiltered struct {
	Filter string
	Paths  []string // of the change
}

// Unfiltered returns the filters that are missing for the files that a change adds or modifies, by name.
// Files that only move are left out, and so are pointers of Git LFS, which are what is to be committed.
func (c *Checkout) Unfiltered(ctx context.Context, cs *ChangeSet) ([]Unfiltered, error) {
	brought := cs.brought()
	missing, err := c.work.MissingFilters(ctx, cs.Tree.hash(), pathsOf(brought))
	if err != nil {
		return nil, fmt.Errorf("look for filters: %w", err)
	}
	paths := map[string][]string{}
	for _, f := range brought {
		name := missing[f.Path]
		if name == "" {
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
	for name, of := range paths {
		all = append(all, Unfiltered{name, of})
	}
	slices.SortFunc(all, func(a, b Unfiltered) int { return cmp.Compare(a.Filter, b.Filter) })
	return all, nil
}
