package trees

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// WritePack writes a packfile without deltas. It contains the objects of cs.Tree that the base
// lacks.
func (s *Store) WritePack(ctx context.Context, cs *ChangeSet, w io.Writer) error {
	if err := s.writePack(ctx, cs, w); err != nil {
		return fmt.Errorf("write the pack: %w", err)
	}
	return nil
}

// emptyPack is the pack without objects, as git writes it (gitformat-pack(5)).
const emptyPack = "PACK\x00\x00\x00\x02\x00\x00\x00\x00" +
	"\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e"

// writePack lets git pack verified copies of the objects.
func (s *Store) writePack(ctx context.Context, cs *ChangeSet, w io.Writer) error {
	ids, err := s.objects.Added(ctx, cs.Base.Tree.Hash(), cs.Tree.Hash())
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		_, err := io.WriteString(w, emptyPack)
		return err
	}
	if err := s.objects.CopyTo(ctx, s.objects, ids); err != nil {
		return err
	}
	var list strings.Builder
	for _, id := range ids {
		fmt.Fprintln(&list, id)
	}
	return s.streamGit(ctx, strings.NewReader(list.String()), w, "pack-objects", "-q", "--stdout", "--window=0", "--no-reuse-delta")
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
