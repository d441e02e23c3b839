package gitops

import (
	"fmt"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// BaseFiles are the names of the files that lie in a folder of the base commit
// itself, in git's order; none when there is no such folder. "" is the root.
func (c *Checkout) BaseFiles(folder string) ([]string, error) {
	tree := c.base.Tree.hash()
	if folder != "" {
		e, err := c.objects.Find(tree, folder)
		if err != nil {
			return nil, fmt.Errorf("list %q of the base commit: %w", folder, err)
		}
		if !e.IsTree() {
			return nil, nil
		}
		tree = e.ID
	}
	entries, err := c.objects.Tree(tree)
	if err != nil {
		return nil, fmt.Errorf("list %q of the base commit: %w", folder, err)
	}
	var names []string
	for _, e := range entries {
		if e.Mode == index.Regular || e.Mode == index.Executable {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

// Short is the id of a commit for people.
func Short(sha string) string { return sha[:min(len(sha), 12)] }
