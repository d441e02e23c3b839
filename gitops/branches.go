package gitops

import (
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
)

// DefaultBranch is the branch that origin's HEAD was on when it was cloned; ""
// when that is not known.
func (c *Checkout) DefaultBranch() string { return c.repo.DefaultBranch() }

// BranchesAt lists the local branches that point to a commit, sorted.
func (c *Checkout) BranchesAt(sha string) ([]string, error) { return c.repo.BranchesAt(sha) }

// BranchFits says whether a branch may be called name here: "a" and "a/b"
// cannot both be.
func (c *Checkout) BranchFits(name string) error { return c.repo.BranchFits(name) }

// Holds says whether a repository on this machine has a commit. It reads files
// only and runs nothing that is configured there.
func Holds(path, sha string) (_ bool, err error) {
	_, store, err := openElsewhere(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, err = store.Commit(plumbing.NewHash(sha))
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, err
}
