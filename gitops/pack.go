package gitops

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// WritePack writes a packfile without deltas. It contains the objects in the tree of cs that are
// not in its base.
func (c *Checkout) WritePack(ctx context.Context, cs *ChangeSet, w io.Writer) error {
	ids, err := c.objects.Added(ctx, cs.Base.Tree.hash(), cs.Tree.hash())
	if err != nil {
		return fmt.Errorf("write the pack: %w", err)
	}
	if err := c.objects.WritePack(ctx, ids, w); err != nil {
		return fmt.Errorf("write the pack: %w", err)
	}
	return nil
}

// ReadPack reads a pack as WritePack writes it, from an untrusted sender. The pack must contain
// exactly the blobs and trees that tree needs beyond the base, with valid names and modes. After a
// *PackError, no object of the pack is stored. The work tree does not change.
func (c *Checkout) ReadPack(ctx context.Context, r io.Reader, tree Tree) (*ChangeSet, error) {
	if _, err := repository.ParseID(string(tree)); err != nil {
		return nil, &objects.PackError{Reason: fmt.Sprintf("the tree %.60q is no object id", tree)}
	}
	if err := c.objects.Receive(ctx, r, c.base.Tree.hash(), tree.hash()); err != nil {
		return nil, err
	}
	cs, err := c.changeSet(ctx, c.base, tree)
	if err != nil {
		return nil, fmt.Errorf("read the pack: %w", err)
	}
	return cs, nil
}

// HasCommit reports whether the checkout has a commit and its root tree. It does not check the tree's
// entries.
func (c *Checkout) HasCommit(sha string) bool {
	id, err := repository.ParseID(sha)
	if err != nil {
		return false
	}
	commit, err := c.objects.Commit(id)
	return err == nil && c.objects.Has(commit.TreeHash)
}

// Shallow reports whether the checkout was cloned without older commits.
func (c *Checkout) Shallow() bool {
	cut, err := regularfile.Read(filepath.Join(c.repo.CommonDir, "shallow"), regularfile.Small)
	return err == nil && len(cut) > 0
}

// Private returns the git folder for new and fetched objects, with the configuration read by Open,
// and the object folders that it borrows. Call ReloadObjects after adding objects.
func (c *Checkout) Private() (dir string, borrowed []string, err error) {
	_, err = c.repo.PrivateGit()
	return c.repo.Private, c.repo.Folders, err
}

// ReloadObjects makes objects visible that git added to the private folder.
func (c *Checkout) ReloadObjects() { c.objects.Reindex() }

// copyFetchedPacks copies fetched packs to another git folder, where checks may write.
func (c *Checkout) copyFetchedPacks(gitDir string) error {
	packs, err := filepath.Glob(filepath.Join(c.repo.Private, "objects", "pack", "pack-*"))
	if err != nil {
		return err
	}
	for _, from := range packs {
		to := filepath.Join(gitDir, "objects", "pack", filepath.Base(from))
		if err := regularfile.CopyIfThere(from, to, math.MaxInt64); err != nil {
			return err
		}
	}
	if len(packs) == 0 {
		return nil
	}
	return regularfile.CopyIfThere(filepath.Join(c.repo.Private, "shallow"), filepath.Join(gitDir, "shallow"), regularfile.Small)
}
