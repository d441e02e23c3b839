package gitops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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

// Settle makes an uncommitted change of what the agent left: HEAD, the branch
// that was checked out and the index are put back to the base, the files stay.
func (c *Checkout) Settle(ctx context.Context, snap *Snapshot) error {
	if err := c.putBranchBack(""); err != nil {
		return fmt.Errorf("put the checkout back on its base: %w", err)
	}
	head := c.start.head
	if c.base.SHA != c.start.commit.String() {
		head = c.base.SHA
	}
	if now, _, err := c.repo.Head(); err != nil || now != head {
		if err := c.repo.SetHead(head, c.base.SHA, c.base.SHA); err != nil {
			return fmt.Errorf("put the checkout back on its base: %w", err)
		}
	}
	live, err := c.repo.Index(ctx)
	if err == nil && live.Equal(snap.index) {
		return nil
	}
	if err := c.repo.WriteIndex(snap.index, nil); err != nil {
		return fmt.Errorf("put the checkout back on its base: %w", err)
	}
	return nil
}

// DropLocks removes the lock files that a git which died left in the course of
// the run: nothing of the run is alive any more when it is called. A lock that
// was there when the checkout was opened belongs to somebody else and stays.
func (c *Checkout) DropLocks() error {
	var failed error
	for _, path := range c.lockPaths() {
		if c.locked[path] {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

func (c *Checkout) lockPaths() []string {
	paths := []string{filepath.Join(c.repo.GitDir, "index.lock"), filepath.Join(c.repo.GitDir, "HEAD.lock")}
	if c.start.branch != "" {
		paths = append(paths, filepath.Join(c.repo.CommonDir, "refs", "heads", filepath.FromSlash(c.start.branch)+".lock"))
	}
	return paths
}

// noteLocks remembers the locks that are there before the run.
func (c *Checkout) noteLocks() {
	c.locked = map[string]bool{}
	for _, path := range c.lockPaths() {
		if _, err := os.Lstat(path); err == nil {
			c.locked[path] = true
		}
	}
}

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
