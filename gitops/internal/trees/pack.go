package trees

import (
	"context"
	"fmt"
	"io"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// WritePack writes a packfile without deltas. It contains the objects of cs.Tree that the base
// lacks.
func (s *Store) WritePack(ctx context.Context, cs *ChangeSet, w io.Writer) error {
	ids, err := s.objects.AddedObjects(ctx, cs.Base.Tree.Hash(), cs.Tree.Hash())
	if err == nil {
		err = s.objects.WritePack(ctx, ids, w)
	}
	if err != nil {
		return fmt.Errorf("write the pack: %w", err)
	}
	return nil
}

// ReadPack reads a pack as WritePack writes it, from an untrusted sender. The pack must contain
// exactly the blobs and trees that tree needs beyond the base, with valid names and modes. After a
// *PackError, no object of the pack is stored. The work tree does not change.
func (s *Store) ReadPack(ctx context.Context, r io.Reader, tree Tree) (*ChangeSet, error) {
	if _, err := repository.ParseID(string(tree)); err != nil {
		return nil, &objects.PackError{Reason: fmt.Sprintf("the tree %.60q is no object id", tree)}
	}
	if err := s.objects.Receive(ctx, r, s.base.Tree.Hash(), tree.Hash()); err != nil {
		return nil, err
	}
	cs, err := s.Compare(ctx, s.base, tree)
	if err != nil {
		return nil, fmt.Errorf("read the pack: %w", err)
	}
	return cs, nil
}

// HasCommit reports whether the checkout has a commit and its root tree. It does not check the tree's
// entries.
func (s *Store) HasCommit(sha string) bool {
	id, err := repository.ParseID(sha)
	if err != nil {
		return false
	}
	commit, err := s.objects.Commit(id)
	return err == nil && s.objects.Has(commit.TreeHash)
}
