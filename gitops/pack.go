package gitops

import (
	"math"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Shallow reports whether the checkout was cloned without older commits.
func (c *Checkout) Shallow() bool {
	cut, err := regularfile.Read(filepath.Join(c.repo.CommonDir, "shallow"), regularfile.Small)
	return err == nil && len(cut) > 0
}

// Private returns the git folder for new and fetched objects, with the configuration read by Open,
// and the object folders that it borrows. Call ReloadObjects after adding objects.
func (c *Checkout) Private() (dir string, borrowed []string, err error) {
	_, err = c.repo.PrivateGit()
	return c.repo.PrivateDir, c.repo.ObjectFolders, err
}

// ReloadObjects makes objects visible that git added to the private folder.
func (c *Checkout) ReloadObjects() { c.objects.Reindex() }

// copyFetchedPacks copies fetched packs to another git folder, where checks may write.
func (c *Checkout) copyFetchedPacks(gitDir string) error {
	packs, err := filepath.Glob(filepath.Join(c.repo.PrivateDir, "objects", "pack", "pack-*"))
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
	return regularfile.CopyIfThere(filepath.Join(c.repo.PrivateDir, "shallow"), filepath.Join(gitDir, "shallow"), regularfile.Small)
}
