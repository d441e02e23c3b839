package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
)

type MaterialiseOptions struct {
	Dir       string // is made; must be empty if it is there
	Tree      Tree   // the base's, or a change set's
	Base      Base   // what its HEAD is; the zero Base means that of the checkout
	Untracked string // a folder that KeepUntracked filled; empty or not there: none
}

// Materialise checks a tree out at o.Dir. The folder has a .git of its own, on
// the base commit with the tree staged, which borrows the objects of the
// checkout. Then come the untracked files.
func (c *Checkout) Materialise(ctx context.Context, o MaterialiseOptions) error {
	if err := c.materialise(ctx, o); err != nil {
		return fmt.Errorf("make a fresh tree: %w", err)
	}
	return nil
}

func (c *Checkout) materialise(ctx context.Context, o MaterialiseOptions) error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	gitDir := filepath.Join(dir, ".git")
	base := o.Base
	if base == (Base{}) {
		base = c.base
	}
	if err := c.newGitDir(ctx, gitDir, gitDir, base, o.Tree); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := c.work.Fill(ctx, root, o.Tree.hash()); err != nil {
		return err
	}
	return worktree.CopyInto(ctx, root, o.Untracked)
}

// newGitDir makes a git folder that is seen at another place, or at its own.
func (c *Checkout) newGitDir(ctx context.Context, gitDir, seenAt string, base Base, tree Tree) error {
	if err := os.MkdirAll(gitDir, 0o777); err != nil {
		return err
	}
	if err := c.repo.FillGitDir(gitDir, seenAt); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(gitDir, "HEAD"), []byte(base.SHA+"\n"), 0o666); err != nil {
		return err
	}
	if err := c.borrowObjects(gitDir); err != nil {
		return err
	}
	if err := c.lendFetched(gitDir); err != nil {
		return err
	}
	ids, err := c.objects.Added(ctx, base.Tree.hash(), tree.hash())
	if err != nil {
		return err
	}
	own := objects.Open(gitDir)
	return errors.Join(c.objects.CopyTo(own, ids), own.Close())
}

// borrowObjects names to a git folder the objects of the checkout: where they are,
// and where LentObjects says.
func (c *Checkout) borrowObjects(gitDir string) error {
	var alternates strings.Builder
	for i := range c.repo.Folders {
		place := lentPlace(gitDir, i)
		if err := os.MkdirAll(place, 0o700); err != nil {
			return err
		}
		relative, err := filepath.Rel(filepath.Join(gitDir, "objects"), place)
		if err != nil {
			return err
		}
		fmt.Fprintln(&alternates, relative)
	}
	fmt.Fprintln(&alternates, repository.QuoteAlternate(filepath.Join(c.repo.CommonDir, "objects")))
	return os.WriteFile(filepath.Join(gitDir, "objects", "info", "alternates"), []byte(alternates.String()), 0o666)
}

// lentPlace is an empty folder of a git folder, for objects of another one.
func lentPlace(gitDir string, i int) string {
	return filepath.Join(gitDir, "lent", strconv.Itoa(i), "objects")
}

// LentObjects are the folders of objects that the checkout reads, by the empty
// folders that a fresh tree seen at dir has for them: there git looks for them where
// something else stands in the checkout's place.
func (c *Checkout) LentObjects(dir string) map[string]string {
	lent := make(map[string]string, len(c.repo.Folders))
	for i, from := range c.repo.Folders {
		lent[lentPlace(filepath.Join(dir, ".git"), i)] = filepath.Join(from, "objects")
	}
	return lent
}
