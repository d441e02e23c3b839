package trees

import (
	"fmt"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// Swap returns tree with the given paths as they are in other. A path that other does not have as a
// file is removed.
func (s *Store) Swap(tree, other Tree, paths []string) (Tree, error) {
	edits := make([]objects.Edit, 0, len(paths))
	for _, path := range paths {
		e, err := s.objects.Find(other.Hash(), path)
		if err != nil {
			return "", fmt.Errorf("take %q from tree %s: %w", path, other, err)
		}
		edit := objects.Edit{Path: path} // without a mode, it removes the path
		if e.Mode != 0 && !e.IsTree() {
			edit.Mode, edit.ID = e.Mode, e.ID
		}
		edits = append(edits, edit)
	}
	swapped, err := s.objects.Apply(tree.Hash(), edits)
	if err != nil {
		return "", fmt.Errorf("take %d files from tree %s: %w", len(paths), other, err)
	}
	return IDOf(swapped), nil
}
