package gitops

import (
	"cmp"
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// Unswitch undoes a finished or interrupted Switch or ApplyChange, even of an earlier process. It
// restores HEAD, the index and the branch that was checked out. It does not touch files and other
// branches. branch and commit are the arguments of the Switch; branch is "" for ApplyChange.
func (c *Checkout) Unswitch(ctx context.Context, branch, commit string) error {
	ix, _, err := c.baseIndex(ctx)
	if err == nil {
		err = c.restoreBranch(branch, commit)
	}
	if err == nil {
		err = c.restoreHead(headContent(branch, commit))
	}
	if err == nil {
		err = c.restoreIndex(ctx, ix)
	}
	if err != nil {
		return fmt.Errorf("put the checkout back: %w", err)
	}
	c.switched = false
	return nil
}

// restoreHead restores HEAD if it still has the content ours, which agent-ci wrote. It leaves any
// other content, because somebody else wrote it.
func (c *Checkout) restoreHead(ours string) error {
	if now, _, err := c.repo.Head(); err == nil && now == ours && now != c.startHead {
		start := c.StartCommit()
		return c.repo.MoveHead(ours, c.startHead, start.SHA, cmp.Or(start.Branch, start.SHA))
	}
	return nil // agent-ci did not write a HEAD that cannot be read
}

// restoreBranch moves the checked out branch back if it points to commit.
func (c *Checkout) restoreBranch(branch, commit string) error {
	if branch == "" || branch != c.StartCommit().Branch {
		return nil
	}
	now, err := c.repo.ReadRef("refs/heads/" + branch)
	if err != nil {
		return err
	}
	if now.String() != commit {
		return nil
	}
	return c.repo.SetBranch(branch, now, plumbing.NewHash(c.StartCommit().SHA), "agent-ci: back to where it was before the run")
}

// restoreIndex writes ix as the index, unless the index already equals it.
func (c *Checkout) restoreIndex(ctx context.Context, ix *index.File) error {
	if live, err := c.repo.Index(ctx); err == nil && live.Equal(ix) {
		return nil
	}
	return c.repo.WriteIndex(ix, nil)
}
