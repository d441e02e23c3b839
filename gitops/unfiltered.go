package gitops

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// Unfiltered is a filter that the attributes of a change ask for and that git's configuration does not
// have. Git commits its files as they are.
type Unfiltered struct {
	Filter string
	Paths  []string // of the change
}

// Unfiltered returns the filters that are missing for the files that a change adds or modifies, by name.
// Files that only move are left out, and so are pointers of Git LFS, which are what is to be committed.
func (c *Checkout) Unfiltered(cs *ChangeSet) ([]Unfiltered, error) {
	missing := c.work.MissingFilters(cs.Tree.hash())
	had, paths := map[string]bool{}, map[string][]string{}
	for _, f := range cs.Files {
		had[f.OldID] = true
	}
	for _, f := range cs.Files {
		regular := f.NewMode == fmt.Sprintf("%06o", index.Regular) || f.NewMode == fmt.Sprintf("%06o", index.Executable)
		name := ""
		if regular && !had[f.NewID] {
			name = missing(f.Path)
		}
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
