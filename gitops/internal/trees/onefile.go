package trees

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// IDAt returns the object id of a tree's entry at a path, or "" if there is none.
func (s *Store) IDAt(tree Tree, path string) (string, error) {
	e, err := s.objects.Find(tree.Hash(), path)
	if err != nil {
		return "", fmt.Errorf("find %q in tree %s: %w", path, tree, err)
	}
	if e.Mode == 0 {
		return "", nil
	}
	return e.ID.String(), nil
}

// WithFile returns a change set with new content for one file, without the conversions of attributes.
// The file keeps its executable bit. The work tree does not change.
func (s *Store) WithFile(ctx context.Context, cs *ChangeSet, path string, content []byte) (*ChangeSet, error) {
	if !objects.ValidPath(path) {
		return nil, fmt.Errorf("put %q into a change: it is no path of a checkout", path)
	}
	id, err := s.objects.WriteBytes(plumbing.BlobObject, content)
	if err != nil {
		return nil, fmt.Errorf("put %q into a change: %w", path, err)
	}
	was, err := s.objects.Find(cs.Tree.Hash(), path)
	if err != nil {
		return nil, fmt.Errorf("put %q into a change: %w", path, err)
	}
	edit := index.Entry{Path: path, Mode: index.Regular, ID: id}
	if was.Mode == index.Executable {
		edit.Mode = was.Mode
	}
	tree, err := s.objects.Apply(cs.Tree.Hash(), []index.Entry{edit})
	if err != nil {
		return nil, fmt.Errorf("put %q into a change: %w", path, err)
	}
	return s.withTree(ctx, cs, IDOf(tree))
}

// Without returns a change set without the change at a path.
func (s *Store) Without(ctx context.Context, cs *ChangeSet, path string) (*ChangeSet, error) {
	tree, err := s.Swap(cs.Tree, cs.Base.Tree, []string{path})
	if err != nil {
		return nil, err
	}
	return s.withTree(ctx, cs, tree)
}

// withTree returns the change set from the base of cs to another tree. It keeps the problems that
// only the work tree shows.
func (s *Store) withTree(ctx context.Context, cs *ChangeSet, tree Tree) (*ChangeSet, error) {
	other, err := s.Compare(ctx, cs.Base, tree)
	if err != nil {
		return nil, err
	}
	other.addMissingProblems(cs.Problems)
	return other, nil
}
