package gitops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// MaterialiseOptions says what a fresh tree holds.
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
	if err := c.newGitDir(ctx, gitDir, base, o.Tree); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	fill := c.fillByItself
	if c.repo.Git.There() {
		fill = c.fillWithGit
	}
	if err := fill(ctx, root, o.Tree); err != nil {
		return err
	}
	return copyInto(ctx, root, o.Untracked)
}

func (c *Checkout) newGitDir(ctx context.Context, gitDir string, base Base, tree Tree) error {
	if err := os.MkdirAll(gitDir, 0o777); err != nil {
		return err
	}
	if err := c.repo.FillGitDir(gitDir); err != nil {
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
// folders that Materialise made for them in a tree at dir: there git looks for
// them where something else stands in the checkout's place.
func (c *Checkout) LentObjects(dir string) map[string]string {
	lent := make(map[string]string, len(c.repo.Folders))
	for i, from := range c.repo.Folders {
		lent[lentPlace(filepath.Join(dir, ".git"), i)] = filepath.Join(from, "objects")
	}
	return lent
}

func (c *Checkout) fillWithGit(ctx context.Context, root *os.Root, tree Tree) error {
	git := program.Isolated(c.repo.Git.Path, os.Environ(), c.repo.Root, filepath.Join(root.Name(), ".git"), root.Name())
	if _, err := git.Run(ctx, root.Name(), nil, "read-tree", string(tree)); err != nil {
		return err
	}
	_, err := git.Run(ctx, root.Name(), nil, "checkout-index", "-q", "-a", "-u")
	return err
}

func (c *Checkout) fillByItself(ctx context.Context, root *os.Root, tree Tree) error {
	s := smudger{Checkout: c, dir: root, attributes: c.treeAttributes(tree.hash())}
	changes, err := c.objects.Differences(ctx, plumbing.ZeroHash, tree.hash())
	if err != nil {
		return err
	}
	stats, err := s.write(ctx, changes)
	if err != nil {
		return err
	}
	entries := make([]index.Entry, 0, len(changes))
	for _, d := range changes {
		entries = append(entries, index.Entry{Path: d.Path, Mode: d.New.Mode, ID: d.New.ID, Stat: stats[d.Path]})
	}
	return index.WriteNew(filepath.Join(root.Name(), ".git", "index"), entries)
}

// copyInto puts copies of what is in the folder from into a tree.
func copyInto(ctx context.Context, to *os.Root, from string) error {
	if from == "" {
		return nil
	}
	source, err := os.OpenRoot(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	cp := copier{ctx: ctx, from: source, to: to}
	return cp.all()
}
