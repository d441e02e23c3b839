package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// Unswitch undoes what Switch to a branch and a commit did to HEAD, the index and the
// branch that was checked out, or began to do, in this process or an earlier one. The
// files stay, and so does another branch.
func (c *Checkout) Unswitch(ctx context.Context, branch, commit string) error {
	ix, err := c.baseIndex(ctx)
	if err == nil {
		err = c.unmove(branch, commit)
	}
	if err == nil {
		err = c.leaveHead("ref: refs/heads/" + branch)
	}
	if err == nil {
		err = c.putIndexBack(ctx, ix, nil)
	}
	if err != nil {
		return fmt.Errorf("put the checkout back on its base: %w", err)
	}
	c.moved, c.onBase = c.base.SHA != c.start.commit.String(), nil
	if c.moved {
		head, _ := c.baseHead()
		c.onBase = &position{head: head, commit: plumbing.NewHash(c.base.SHA), tree: c.base.Tree.hash(), index: ix}
	}
	return nil
}

// leaveHead puts HEAD back on the base where it is what this or an earlier process made
// it. Anything else others made it.
func (c *Checkout) leaveHead(ours string) error {
	now, _, err := c.repo.Head()
	if head, commit := c.baseHead(); err == nil && now == ours && now != head {
		return c.repo.MoveHead(ours, head, commit, cmp.Or(c.start.branch, commit))
	}
	return nil //nolint:nilerr // a HEAD that can't be read is not ours
}

// unmove puts the branch that was checked out back where it was moved to a commit.
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

// Restore puts HEAD, the index and the files of the base that was checked out back to where they
// stood when the checkout was opened. Files that were not tracked before are never touched.
func (c *Checkout) Restore(ctx context.Context) error {
	if err := c.goBack(ctx); err != nil {
		return fmt.Errorf("put the checkout back: %w", err)
	}
	return nil
}

// goBack moves the work tree from the base to the commit where HEAD stood, and
// writes the index as it was, with the stat data of files that were written.
func (c *Checkout) goBack(ctx context.Context) (err error) {
	if !c.moved {
		return nil
	}
	release, held := c.Hold(ctx)
	if held != nil {
		return held
	}
	defer func() { err = errors.Join(err, release()) }()
	home, err := c.objects.Differences(ctx, c.base.Tree.hash(), c.start.tree)
	if err != nil {
		return err
	}
	if err := c.mayGoBack(ctx, home); err != nil {
		return err
	}
	stats, err := c.checkOutHome(ctx, home)
	if err != nil {
		return err
	}
	start := c.start.commit.String()
	if err := c.putHeadHome(start); err != nil {
		return errors.Join(err, c.stayOnBase(ctx))
	}
	if err := c.putIndexBack(ctx, c.start.index, c.statUpdates(ctx, stats)); err != nil {
		return err
	}
	_, err = c.UseBase(BaseSpec{})
	c.moved, c.onBase = false, nil
	return err
}

// othersToo says whether the run moved the checkout to a base of its own, on which others may have worked.
func (c *Checkout) othersToo() bool { return c.onBase != nil }

// putHeadHome puts HEAD where it stood when the checkout was opened.
func (c *Checkout) putHeadHome(start string) error {
	to := cmp.Or(c.start.branch, start)
	if !c.othersToo() {
		return c.putHeadBack(c.start.head, start, to)
	}
	return c.repo.MoveHead(c.onBase.head, c.start.head, start, to)
}

// stayOnBase has the files of the base again where the way home could not be gone to its
// end.
func (c *Checkout) stayOnBase(ctx context.Context) error {
	if !c.othersToo() {
		return nil
	}
	back, err := c.objects.Differences(ctx, c.start.tree, c.base.Tree.hash())
	if err == nil {
		_, err = c.work.CheckOutOver(ctx, c.start.index, c.start.tree, c.base.Tree.hash(), back)
	}
	return err
}

func (c *Checkout) checkOutHome(ctx context.Context, home []objects.Difference) (map[string]index.Stat, error) {
	if !c.othersToo() {
		return c.work.CheckOut(ctx, c.start.tree, home)
	}
	return c.work.CheckOutOver(ctx, c.onBase.index, c.base.Tree.hash(), c.start.tree, home)
}

// mayGoBack makes sure that going back from the base takes nothing with it of what others
// did in the checkout, where commands of the run could not.
func (c *Checkout) mayGoBack(ctx context.Context, home []objects.Difference) error {
	if !c.othersToo() {
		return nil
	}
	if c.start.branch != "" {
		if now, err := c.repo.ReadRef("refs/heads/" + c.start.branch); err != nil || now != c.start.commit {
			return fmt.Errorf("others moved or removed the branch %s; it stays on the commit that the run began on", c.start.branch)
		}
	}
	moved, err := c.MovedByOthers(ctx)
	if err != nil {
		return err
	}
	if moved {
		return errors.New("others committed, staged or switched to another branch there; it stays as they have it")
	}
	dirty, err := c.Dirty(ctx)
	if err != nil {
		return err
	}
	for _, d := range home {
		if slices.Contains(dirty, d.Path) {
			return fmt.Errorf("others changed %q there; it stays on the commit that the run began on", d.Path)
		}
	}
	return nil
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

// putHeadBack puts HEAD to head, which points to commit; the log of HEAD calls the place to.
func (c *Checkout) putHeadBack(head, commit, to string) error {
	if now, _, err := c.repo.Head(); err == nil && now == head {
		return nil
	}
	return c.repo.SetHead(head, commit, to)
}

// putIndexBack makes ix with updates the index, if it is not.
func (c *Checkout) putIndexBack(ctx context.Context, ix *index.File, updates []index.Update) error {
	if len(updates) == 0 {
		if live, err := c.repo.Index(ctx); err == nil && live.Equal(ix) {
			return nil
		}
	}
	return c.repo.WriteIndex(ix, updates)
}

// dropLocks removes the lock files that a git which died left in the course of
// the run: nothing of the run is alive any more when it is called. A lock that
// was there when the checkout was opened belongs to somebody else and stays.
func (c *Checkout) dropLocks() error {
	var failed error
	for _, path := range c.lockPaths() {
		if slices.Contains(c.locked, path) {
			continue
		}
		_, err := os.Lstat(path) // on a read-only file system, removing a missing file fails with EROFS
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// DropHeld is dropLocks where the lock of the index has the mark of this Checkout: who held it
// died, and kept every git from leaving another lock.
func (c *Checkout) DropHeld() error {
	if !c.repo.Held(c.mark) {
		return nil
	}
	c.locked = nil
	return c.dropLocks()
}

func (c *Checkout) lockPaths() []string {
	paths := []string{filepath.Join(c.repo.GitDir, "index.lock"), filepath.Join(c.repo.GitDir, "HEAD.lock")}
	if c.start.branch != "" {
		paths = append(paths, filepath.Join(c.repo.CommonDir, "refs", "heads", filepath.FromSlash(c.start.branch)+".lock"))
	}
	return paths
}

func (c *Checkout) noteLocks() {
	for _, path := range c.lockPaths() {
		if _, err := os.Lstat(path); err == nil {
			c.locked = append(c.locked, path)
		}
	}
	slices.Sort(c.locked)
}
