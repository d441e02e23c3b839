package gitops

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// Switch puts the checkout on branch, at commit sha, which has the tree of cs:
// the objects go into the repository, the branch and HEAD move, and the index
// is made to fit, so that `git status` is clean. The branch that was checked
// out stays where it was, and is put back there when the agent moved it.
//
// A branch that is there already moves only when nothing of anybody else is
// lost: its tip is the base or an ancestor of it, or a commit of ours; else it
// is a *ForeignCommitError.
func (c *Checkout) Switch(ctx context.Context, branch, sha string, cs *ChangeSet) error {
	name := plumbing.NewBranchReferenceName(branch)
	if err := name.Validate(); err != nil {
		return fmt.Errorf("switch to branch %q: %w", branch, err)
	}
	id := plumbing.NewHash(sha)
	if err := c.repo.CheckFree(branch); err != nil {
		return fmt.Errorf("switch to branch %s: %w", branch, err)
	}
	if err := c.mayMove(ctx, branch, id, cs); err != nil {
		return err
	}
	if err := c.adopt(ctx, id, cs); err != nil {
		return fmt.Errorf("switch to branch %s: %w", branch, err)
	}
	if err := c.switchTo(ctx, branch, id, cs); err != nil {
		return fmt.Errorf("switch to branch %s: %w", branch, err)
	}
	return nil
}

func (c *Checkout) switchTo(ctx context.Context, branch string, id plumbing.Hash, cs *ChangeSet) error {
	commit, err := c.objects.Commit(id)
	if err != nil {
		return err
	}
	if err := c.putBranchBack(branch); err != nil {
		return err
	}
	subject, _, _ := strings.Cut(commit.Message, "\n")
	if err := c.repo.SetBranch(branch, id, "commit: "+subject); err != nil {
		return err
	}
	if err := c.repo.SetHead("ref: refs/heads/"+branch, id.String(), branch); err != nil {
		return err
	}
	return c.switchIndex(ctx, cs)
}

// tipBefore is the tip of a branch, without what the agent did to the one that
// was checked out.
func (c *Checkout) tipBefore(ctx context.Context, branch string) (*CommitInfo, error) {
	if branch != c.start.branch {
		return c.Tip(ctx, branch)
	}
	commit, err := c.objects.Commit(c.start.commit)
	if err != nil {
		return nil, err
	}
	return infoOf(commit), nil
}

// mayMove says whether a branch may be moved to id.
func (c *Checkout) mayMove(ctx context.Context, branch string, id plumbing.Hash, cs *ChangeSet) error {
	tip, err := c.tipBefore(ctx, branch)
	if err != nil || tip == nil || tip.SHA == id.String() || tip.Ours() {
		return err
	}
	old := plumbing.NewHash(tip.SHA)
	ancestor, err := c.objects.IsAncestor(ctx, old, plumbing.NewHash(cs.Base.SHA))
	if err != nil || ancestor {
		return err
	}
	return &ForeignCommitError{Branch: branch, SHA: tip.SHA, Author: tip.Author}
}

// adopt copies the objects of a commit into the repository.
func (c *Checkout) adopt(ctx context.Context, id plumbing.Hash, cs *ChangeSet) error {
	ids, err := c.objects.Added(ctx, cs.Base.Tree.hash(), cs.Tree.hash())
	if err != nil {
		return err
	}
	repository := objects.Open(c.repo.CommonDir)
	if err = repository.CheckOwn(append(ids, id)); err == nil {
		err = c.objects.CopyTo(repository, append(ids, id))
	}
	if closing := repository.Close(); err == nil {
		err = closing
	}
	return err
}

// putBranchBack undoes what the agent did to the branch that was checked out.
func (c *Checkout) putBranchBack(except string) error {
	if c.start.branch == "" || c.start.branch == except {
		return nil
	}
	now, err := c.repo.Refs().Read("refs/heads/" + c.start.branch)
	if err == nil && now == c.start.commit {
		return nil
	}
	return c.repo.SetBranch(c.start.branch, c.start.commit, "agent-ci: back to where it was before the run")
}

// switchIndex writes an index of the tree of cs. A change that is not in the
// work tree yet is checked out.
func (c *Checkout) switchIndex(ctx context.Context, cs *ChangeSet) error {
	changes, err := c.objects.Differences(ctx, cs.Base.Tree.hash(), cs.Tree.hash())
	if err != nil {
		return err
	}
	if cs.snapshot != nil {
		return c.repo.WriteIndex(cs.snapshot.index, updatesOf(append(changes, cs.alike...), cs.stats))
	}
	ix, err := c.baseIndex(ctx)
	if err != nil {
		return err
	}
	stats, err := c.work.CheckOutOver(ctx, ix, cs.Tree.hash(), changes)
	if err != nil {
		return err
	}
	return c.repo.WriteIndex(ix, updatesOf(changes, stats))
}

// Restore takes a change out of the work tree, where it was found in it, and
// puts HEAD, the branch that was checked out and the index back to where they
// stood when the checkout was opened. With nil it does only the latter.
// Files that were not tracked before are never touched.
func (c *Checkout) Restore(ctx context.Context, cs *ChangeSet) error {
	stats := map[string]index.Stat{}
	if cs != nil && cs.snapshot != nil {
		back, err := c.objects.Differences(ctx, cs.Tree.hash(), cs.Base.Tree.hash())
		if err != nil {
			return fmt.Errorf("take the change out: %w", err)
		}
		// Files that were written may be as before only once they are converted.
		back = append(back, c.work.Converted(cs.Base.Tree.hash(), cs.alike)...)
		if stats, err = c.work.CheckOut(ctx, cs.Base.Tree.hash(), back); err != nil {
			return fmt.Errorf("take the change out: %w", err)
		}
	}
	if err := c.goBack(ctx, stats); err != nil {
		return fmt.Errorf("put the checkout back: %w", err)
	}
	return nil
}

// goBack moves the work tree from the base to the commit where HEAD stood, and
// writes the index as it was, with the stat data of files that were written.
func (c *Checkout) goBack(ctx context.Context, stats map[string]index.Stat) error {
	home, err := c.objects.Differences(ctx, c.base.Tree.hash(), c.start.tree)
	if err != nil {
		return err
	}
	moved, err := c.work.CheckOut(ctx, c.start.tree, home)
	if err != nil {
		return err
	}
	for _, d := range home {
		delete(stats, d.Path)
	}
	for path, s := range moved {
		stats[path] = s
	}
	if err := c.putBranchBack(""); err != nil {
		return err
	}
	if head, _, err := c.repo.Head(); err != nil || head != c.start.head {
		if err := c.repo.SetHead(c.start.head, c.start.commit.String(), cmp.Or(c.start.branch, c.start.commit.String())); err != nil {
			return err
		}
	}
	if err := c.restoreIndex(ctx, stats); err != nil {
		return err
	}
	return c.startAgain()
}

// startAgain makes the base what HEAD has.
func (c *Checkout) startAgain() error {
	base, err := c.resolve(BaseSpec{})
	if err != nil {
		return err
	}
	c.base = base
	return nil
}

func (c *Checkout) restoreIndex(ctx context.Context, stats map[string]index.Stat) error {
	updates := c.statUpdates(ctx, stats)
	if len(updates) == 0 {
		if live, err := c.repo.Index(ctx); err == nil && live.Equal(c.start.index) {
			return nil
		}
	}
	return c.repo.WriteIndex(c.start.index, updates)
}

// statUpdates puts new stat data into the entries of the index as it was, as
// far as they have the content that was written: that of HEAD.
func (c *Checkout) statUpdates(ctx context.Context, stats map[string]index.Stat) []index.Update {
	staged := map[string]bool{}
	if err := c.work.CompareIndex(ctx, c.start.index, c.start.tree, func(path string, _ objects.Entry) { staged[path] = true }); err != nil {
		return nil // git reads the files again, as their stat data says
	}
	var updates []index.Update
	for path, stat := range stats {
		i, ok := c.start.index.Search(path)
		if !ok || staged[path] {
			continue
		}
		e := c.start.index.Entry(i)
		e.Stat = stat
		updates = append(updates, index.Update{Path: path, Entry: &e})
	}
	return updates
}
