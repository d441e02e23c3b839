package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// Unswitch undoes what a landing on a branch and a commit did to HEAD, the index and the
// branch that was checked out, or began to do, in this process or an earlier one. The
// files stay, and so does another branch.
func (c *Checkout) Unswitch(ctx context.Context, branch, commit string) error {
	ix, err := c.baseIndex(ctx)
	if err == nil {
		err = c.unmove(branch, commit)
	}
	if err == nil {
		err = c.leaveHead(headOn(branch, commit))
	}
	if err == nil {
		err = c.putIndexBack(ctx, ix)
	}
	if err != nil {
		return fmt.Errorf("put the checkout back: %w", err)
	}
	c.moved = false
	return nil
}

// leaveHead puts HEAD back to where it was where it is what this or an earlier process made
// it. Anything else others made it.
func (c *Checkout) leaveHead(ours string) error {
	if now, _, err := c.repo.Head(); err == nil && now == ours && now != c.start.head {
		commit := c.start.commit.String()
		return c.repo.MoveHead(ours, c.start.head, commit, cmp.Or(c.start.branch, commit))
	}
	return nil // a HEAD that can't be read is not ours
}

// unmove moves the checked out branch back if it points to commit.
func (c *Checkout) unmove(branch, commit string) error {
	if branch == "" || branch != c.start.branch {
		return nil
	}
	now, err := c.repo.ReadRef("refs/heads/" + branch)
	if err != nil || now.String() != commit {
		return err
	}
	return c.repo.SetBranch(branch, now, c.start.commit, "agent-ci: back to where it was before the run")
}

// putIndexBack makes ix the index, if it is not.
func (c *Checkout) putIndexBack(ctx context.Context, ix *index.File) error {
	if live, err := c.repo.Index(ctx); err == nil && live.Equal(ix) {
		return nil
	}
	return c.repo.WriteIndex(ix, nil)
}

// DropHeld removes an index lock with the mark of this Checkout, whose owner died, and what else a
// landing on branch locks. The index lock kept every git from leaving another one, so it goes last.
func (c *Checkout) DropHeld(branch string) error {
	if !c.repo.Held(c.mark) {
		return nil
	}
	locked := []string{filepath.Join(c.repo.GitDir, "HEAD")}
	for _, branch := range []string{c.start.branch, branch} {
		if name := plumbing.NewBranchReferenceName(branch); name.Validate() == nil {
			locked = append(locked, filepath.Join(c.repo.CommonDir, filepath.FromSlash(name.String())))
		}
	}
	for _, path := range append(locked, filepath.Join(c.repo.GitDir, "index")) {
		if err := os.Remove(path + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
