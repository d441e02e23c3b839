package gitops

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// Switch checks out branch at commit sha, with the tree of cs: it adds the objects to the
// repository, moves branch and HEAD, and updates the index, so `git status` is clean. The branch
// checked out before stays, and is moved back if the agent moved it.
//
// An existing branch moves only if nobody else's work is lost: its tip is the base, an ancestor of it,
// or a commit of ours. Otherwise Switch returns a *ForeignCommitError. It writes missing changes to
// the work tree like ApplyChange.
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

// MoveBranch is Switch without HEAD, index and files, for a checkout in use by others. It returns
// an *InUseError for the checked out branch.
func (c *Checkout) MoveBranch(ctx context.Context, branch, sha string, cs *ChangeSet) error {
	head, _, err := c.repo.Head()
	if err != nil {
		return fmt.Errorf("move branch %s: %w", branch, err)
	}
	if branch == c.opened.branch || head == "ref: refs/heads/"+branch {
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

// prepareBranchMove checks that a branch may move to a commit, and copies the commit to the repository.
func (c *Checkout) prepareBranchMove(ctx context.Context, branch string, id plumbing.Hash, cs *ChangeSet) (from plumbing.Hash, err error) {
	name := plumbing.NewBranchReferenceName(branch)
	if err := name.Validate(); err != nil {
		return from, fmt.Errorf("switch to branch %q: %w", branch, err)
	}
	if err := c.repo.CheckFree(branch); err != nil {
		return from, fmt.Errorf("switch to branch %s: %w", branch, err)
	}
	from, err = c.repo.ReadRef(name.String())
	if err != nil && !errors.Is(err, repository.ErrNoRef) {
		return from, fmt.Errorf("switch to branch %s: %w", branch, err)
	}
	if err := c.mayMove(ctx, branch, id, cs); err != nil {
		return from, err
	}
	if err := c.copyCommitObjects(ctx, id, cs); err != nil {
		return from, fmt.Errorf("switch to branch %s: %w", branch, err)
	}
	return from, nil
}

func (c *Checkout) switchTo(ctx context.Context, branch string, from, id plumbing.Hash, cs *ChangeSet) error {
	c.switched = true
	if err := c.switchIndex(ctx, cs); err != nil {
		return err
	}
	if err := c.moveBranch(ctx, branch, from, id); err != nil {
		return err
	}
	return c.repo.MoveHead(c.opened.head, headContent(branch, ""), id.String(), branch)
}

// moveBranch moves the branch, or returns a *ForeignCommitError if somebody else just moved it.
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
		return &ForeignCommitError{Branch: branch, SHA: tip.SHA, Author: tip.By()}
	}
	return err
}

// mayMove returns a *ForeignCommitError if a branch cannot move to the commit id without the loss of
// somebody's commit. Commits of agent-ci and those in the history of the base may go.
func (c *Checkout) mayMove(ctx context.Context, branch string, id plumbing.Hash, cs *ChangeSet) error {
	tip, err := c.Tip(ctx, branch)
	if err != nil || tip == nil || tip.SHA == id.String() || tip.Ours() {
		return err
	}
	old := plumbing.NewHash(tip.SHA)
	ancestor, err := c.objects.IsAncestor(ctx, old, plumbing.NewHash(cs.Base.SHA))
	if err != nil || ancestor {
		return err
	}
	return &ForeignCommitError{Branch: branch, SHA: tip.SHA, Author: tip.By()}
}

// copyCommitObjects copies the objects of a commit into the repository.
func (c *Checkout) copyCommitObjects(ctx context.Context, id plumbing.Hash, cs *ChangeSet) error {
	ids, err := c.objects.Added(ctx, cs.Base.Tree.hash(), cs.Tree.hash())
	if err != nil {
		return err
	}
	if err := c.adoptLFS(ctx, cs); err != nil {
		return err
	}
	repository := objects.Open(c.repo.CommonDir)
	if err = repository.CheckOwn(append(ids, id)); err == nil {
		err = c.objects.CopyTo(repository, append(ids, id))
	}
	return errors.Join(err, repository.Close())
}

// switchIndex writes an index for the tree of cs and checks it out.
func (c *Checkout) switchIndex(ctx context.Context, cs *ChangeSet) error {
	ix, _, err := c.baseIndex(ctx)
	if err != nil {
		return err
	}
	changes, err := c.objects.Differences(ctx, c.opened.tree, cs.Tree.hash())
	if err != nil {
		return err
	}
	stats, err := c.work.CheckOutOver(ctx, ix, c.opened.tree, cs.Tree.hash(), changes)
	if err != nil {
		return err
	}
	return c.repo.WriteIndex(ix, updatesOf(changes, stats))
}
