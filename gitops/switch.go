package gitops

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// Switch checks out branch at commit sha, which has the tree of cs. It adds the objects to the
// repository, moves branch and HEAD, and updates the index, so that `git status` is clean. It does
// not move the branch that was checked out before.
//
// Switch moves an existing branch only if no work of other people is lost. The tip must be the
// base, an ancestor of the base, or a commit of agent-ci. Otherwise it returns a
// *ForeignCommitError. Like ApplyChange, it writes changes that the work tree does not have yet.
func (c *Checkout) Switch(ctx context.Context, branch, sha string, cs *ChangeSet) (err error) {
	release, err := c.LockIndex(ctx)
	if err != nil {
		return fmt.Errorf("switch to branch %s: %w", branch, err)
	}
	defer func() { err = errors.Join(err, release()) }()
	id := plumbing.NewHash(sha)
	from, err := c.prepareBranchMove(ctx, branch, id, cs)
	if err != nil {
		return err
	}
	if err := c.switchTo(ctx, branch, from, id, cs); err != nil {
		return fmt.Errorf("switch to branch %s: %w", branch, err)
	}
	return nil
}

// MoveBranch is Switch that does not touch HEAD, the index or files, for a checkout that others
// use. It returns an *InUseError if the branch is checked out.
func (c *Checkout) MoveBranch(ctx context.Context, branch, sha string, cs *ChangeSet) error {
	head, _, err := c.repo.Head()
	if err != nil && !errors.Is(err, repository.ErrNoRef) { // HEAD may be on a branch without commits
		return fmt.Errorf("move branch %s: %w", branch, err)
	}
	if branch == c.StartCommit().Branch || head == "ref: refs/heads/"+branch {
		return &InUseError{Root: c.Root(), Remedy: branch + " is checked out there, which is to move; switch to another branch"}
	}
	id := plumbing.NewHash(sha)
	from, err := c.prepareBranchMove(ctx, branch, id, cs)
	if err != nil {
		return err
	}
	if err := c.moveBranch(ctx, branch, from, id); err != nil {
		return fmt.Errorf("move branch %s: %w", branch, err)
	}
	return nil
}

// prepareBranchMove checks that a branch may move to a commit, and copies the commit to the
// repository. It returns the current commit of the branch, or zero if the branch does not exist.
func (c *Checkout) prepareBranchMove(ctx context.Context, branch string, id plumbing.Hash, cs *ChangeSet) (from plumbing.Hash, err error) {
	name := plumbing.NewBranchReferenceName(branch)
	if err := name.Validate(); err != nil {
		return from, fmt.Errorf("switch to branch %q: %w", branch, err)
	}
	if err := c.repo.CheckFree(ctx, branch); err != nil {
		return from, fmt.Errorf("switch to branch %s: %w", branch, err)
	}
	from, err = c.repo.ReadRef(name.String())
	if err != nil && !errors.Is(err, repository.ErrNoRef) {
		return from, fmt.Errorf("switch to branch %s: %w", branch, err)
	}
	if err := c.requireMovable(ctx, branch, id, cs); err != nil {
		return from, err
	}
	if err := c.copyCommitObjects(ctx, id, cs); err != nil {
		return from, fmt.Errorf("switch to branch %s: %w", branch, err)
	}
	return from, nil
}

// switchTo writes the files and the index, then moves the branch from one commit to another, then
// HEAD.
func (c *Checkout) switchTo(ctx context.Context, branch string, from, id plumbing.Hash, cs *ChangeSet) error {
	c.switched = true
	if err := c.switchIndex(ctx, cs); err != nil {
		return err
	}
	if err := c.moveBranch(ctx, branch, from, id); err != nil {
		return err
	}
	return c.repo.MoveHead(c.startHead, headContent(branch, ""), id.String(), branch)
}

// moveBranch moves a branch from one commit to another. It returns a *ForeignCommitError if
// somebody else moved the branch meanwhile.
func (c *Checkout) moveBranch(ctx context.Context, branch string, from, id plumbing.Hash) error {
	commit, err := c.objects.Commit(id)
	if err != nil {
		return err
	}
	subject, _, _ := strings.Cut(commit.Message, "\n")
	err = c.repo.SetBranch(branch, from, id, "commit: "+subject)
	if !errors.As(err, new(*repository.BranchMovedError)) {
		return err
	}
	if tip, tipErr := c.Tip(ctx, branch); tipErr == nil && tip != nil {
		return &ForeignCommitError{Branch: branch, SHA: tip.SHA, Author: tip.ContentAuthor()}
	}
	return err
}

// requireMovable returns a *ForeignCommitError if moving the branch to the commit id would lose somebody's
// commit. A tip that agent-ci made, or that is in the history of the base, may be left.
func (c *Checkout) requireMovable(ctx context.Context, branch string, id plumbing.Hash, cs *ChangeSet) error {
	tip, err := c.Tip(ctx, branch)
	if err != nil {
		return err
	}
	if tip == nil || tip.SHA == id.String() || tip.MadeByRun() {
		return nil
	}
	old := plumbing.NewHash(tip.SHA)
	ancestor, err := c.objects.IsAncestor(ctx, old, plumbing.NewHash(cs.Base.SHA))
	if err != nil {
		return err
	}
	if ancestor {
		return nil
	}
	return &ForeignCommitError{Branch: branch, SHA: tip.SHA, Author: tip.ContentAuthor()}
}

// copyCommitObjects copies a commit, its new trees and blobs, and its Git LFS contents into the
// repository.
func (c *Checkout) copyCommitObjects(ctx context.Context, id plumbing.Hash, cs *ChangeSet) error {
	ids, err := c.objects.AddedObjects(ctx, cs.Base.Tree.Hash(), cs.Tree.Hash())
	if err != nil {
		return err
	}
	if err := c.copyLFSToRepository(ctx, cs); err != nil {
		return err
	}
	repository := objects.Open(c.repo.CommonDir)
	if err = repository.CheckOwn(append(ids, id)); err == nil {
		err = c.objects.CopyTo(ctx, repository, append(ids, id))
	}
	return errors.Join(err, repository.Close())
}

// switchIndex writes the files of cs to the work tree, and an index for them.
func (c *Checkout) switchIndex(ctx context.Context, cs *ChangeSet) error {
	ix, _, err := c.baseIndex(ctx)
	if err != nil {
		return err
	}
	start := c.StartCommit().Tree.Hash()
	changes, err := c.objects.Differences(ctx, start, cs.Tree.Hash())
	if err != nil {
		return err
	}
	return c.checkOutOver(ctx, ix, start, cs.Tree.Hash(), changes)
}

// checkOutOver updates files of the work tree, whose index is ix, from one tree to another, and writes the new index.
func (c *Checkout) checkOutOver(ctx context.Context, ix *index.File, from, to plumbing.Hash, changes []objects.Difference) error {
	stats, err := c.work.CheckOutOver(ctx, ix, from, to, changes)
	if err != nil {
		return err
	}
	return c.repo.WriteIndex(ix, objects.Updates(changes, stats))
}
