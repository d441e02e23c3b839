package gitops

import (
	"fmt"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// Swap returns tree with the given paths as they are in other. A path that other does not have as a
// file is removed.
func (c *Checkout) Swap(tree, other Tree, paths []string) (Tree, error) {
	edits := make([]objects.Edit, 0, len(paths))
	for _, path := range paths {
		e, err := c.objects.Find(other.hash(), path)
		if err != nil {
			return "", fmt.Errorf("take %q from tree %s: %w", path, other, err)
		}
		edit := objects.Edit{Path: path}
		if e.Mode != 0 && !e.IsTree() {
			edit.Mode, edit.ID = e.Mode, e.ID
		}
		edits = append(edits, edit)
	}
	swapped, err := c.objects.Apply(tree.hash(), edits)
	if err != nil {
		return "", fmt.Errorf("take %d files from tree %s: %w", len(paths), other, err)
	}
	return Tree(swapped.String()), nil
}
