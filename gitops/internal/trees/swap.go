package trees

import (
	"fmt"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// Swap returns tree with the given paths as they are in other. A path that other does not have as a
// file is removed.
func (s *Store) Swap(tree, other Tree, paths []string) (Tree, error) {
	edits := make([]index.Entry, 0, len(paths))
	for _, path := range paths {
		e, err := s.objects.Find(other.Hash(), path)
		if err != nil {
			return "", fmt.Errorf("take %q from tree %s: %w", path, other, err)
		}
		if e.IsTree() {
			e = objects.Entry{}
		}
		edits = append(edits, e.At(path))
	}
	swapped, err := s.objects.Apply(tree.Hash(), edits)
	if err != nil {
		return "", fmt.Errorf("take %d files from tree %s: %w", len(paths), other, err)
	}
	return IDOf(swapped), nil
}
