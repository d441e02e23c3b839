package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// CopyFilteredFrom sets the work tree that the change was made in. ApplyChange and Switch copy
// files with a filter from that tree. If tree is nil, they run the filters again.
func (c *Checkout) CopyFilteredFrom(tree *os.Root) { c.work.CopyFilteredFrom(tree) }

// HasFilters reports whether git's configuration has filters.
func (c *Checkout) HasFilters() bool { return len(c.repo.Settings.FilterNames()) > 0 }

// ApplyChange writes a change into the work tree. HEAD and the index stay unchanged. If the
// checkout was opened on another commit than the base, it moves to the base, without a branch.
// ApplyChange writes nothing if it returns one of these errors: an *ObstructedError for an
// untracked file in the way, a *ChangedError for an edited file, or an *InUseError for a locked
// index.
func (c *Checkout) ApplyChange(ctx context.Context, cs *ChangeSet) (err error) {
	if !c.work.InLayer() {
		release, held := c.LockIndex(ctx)
		if held != nil {
			return held
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	if err := c.applyChange(ctx, cs); err != nil {
		return fmt.Errorf("write the files of the change: %w", err)
	}
	return nil
}

// applyChange writes the files of a change set, unstaged. If the base is not the commit that is
// checked out, it also writes the base's files, the index and HEAD. Then the difference to HEAD is
// the change alone.
func (c *Checkout) applyChange(ctx context.Context, cs *ChangeSet) error {
	ix, _, err := c.baseIndex(ctx)
	if err != nil {
		return err
	}
	if c.work.InLayer() || c.Base().SHA == c.StartCommit().SHA {
		_, err := c.writeFiles(ctx, ix, cs.Base.Tree, cs)
		return err
	}
	stats, err := c.writeFiles(ctx, ix, c.StartCommit().Tree, cs)
	if err != nil {
		return err
	}
	for _, f := range cs.Files { // their content differs from the base, so the index gets no stat data for them
		delete(stats, f.Path)
	}
	toBase, err := c.objects.Differences(ctx, c.StartCommit().Tree.Hash(), c.Base().Tree.Hash())
	if err != nil {
		return err
	}
	if err := c.repo.WriteIndex(ix, objects.Updates(toBase, stats)); err != nil {
		return err
	}
	c.switched = true
	return c.repo.MoveHead(c.startHead, c.Base().SHA, c.Base().SHA, c.Base().SHA)
}

// writeFiles updates the work tree from the tree from to the tree of cs, and returns the stat data
// of written files.
func (c *Checkout) writeFiles(ctx context.Context, ix *index.File, from Tree, cs *ChangeSet) (map[string]index.Stat, error) {
	changes, err := c.objects.Differences(ctx, from.Hash(), cs.Tree.Hash())
	if err != nil {
		return nil, err
	}
	return c.work.CheckOutOver(ctx, ix, from.Hash(), cs.Tree.Hash(), changes)
}

// ChangeOfCheckout returns the change from the start commit to the tree of cs. It includes the changes of
// the base, if that is another commit.
func (c *Checkout) ChangeOfCheckout(ctx context.Context, cs *ChangeSet) (*ChangeSet, error) {
	start := c.StartCommit()
	if start.Tree == cs.Base.Tree {
		return cs, nil
	}
	return c.Compare(ctx, start, cs.Tree)
}

// Revert restores some paths of the work tree to the base. In the checkout, it returns a *ChangedError if
// others have written to the files since Changes. The change set is outdated afterwards: call Changes again.
func (c *Checkout) Revert(ctx context.Context, cs *ChangeSet, paths []string) error {
	back, err := c.objects.Differences(ctx, cs.Tree.Hash(), cs.Base.Tree.Hash())
	if err == nil {
		wanted := make(map[string]bool, len(paths))
		for _, path := range paths {
			wanted[path] = true
		}
		back = slices.DeleteFunc(back, func(d objects.Difference) bool { return !wanted[d.Path] })
		_, err = c.work.CheckOutKnown(ctx, cs.Base.Tree.Hash(), back, cs.FileStats)
	}
	if err != nil {
		return fmt.Errorf("take changes of %d files out: %w", len(paths), err)
	}
	return nil
}
