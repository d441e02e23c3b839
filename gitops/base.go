package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// Base is the commit below a change.
type Base struct {
	Branch string // short name; "" when HEAD is detached
	SHA    string
	Tree   Tree
}

// BaseSpec names a base: the zero BaseSpec is HEAD as it stands. Branch is a
// local branch, else origin's. With SHA, a commit, Branch is only its name.
type BaseSpec struct {
	Branch, SHA string
}

// On says whether a branch was checked out when the checkout was opened.
func (c *Checkout) On(branch string) bool { return branch != "" && branch == c.start.branch }

// SetBase resolves the base that the work starts from. The checkout stays as it is: layers get the
// base by LayBase, and the checkout by LayOver or Switch. The error is an *UnknownBaseError if the
// checkout lacks the base.
func (c *Checkout) SetBase(spec BaseSpec) (Base, error) {
	base, err := c.resolve(spec)
	if err == nil {
		c.base = base
	}
	return base, err
}

// Start returns the commit on which the checkout was opened.
func (c *Checkout) Start() Base {
	return Base{Branch: c.start.branch, SHA: c.start.commit.String(), Tree: Tree(c.start.tree.String())}
}

// stands returns the commit whose files the work tree has: the base in a layer, and in the checkout the one on
// which it was opened.
func (c *Checkout) stands() Base {
	if c.work.InLayer() {
		return c.base
	}
	return c.Start()
}

// LayBase puts the base into a layer that shows the files of the checkout, and returns a snapshot of it. What is
// not tracked and stands in its way goes. snap has the stat data of the files there.
func (c *Checkout) LayBase(ctx context.Context, l Layer, snap *Snapshot) (*Snapshot, error) {
	in := c.In(l)
	based, err := in.layBase(ctx, c.start.tree, snap)
	if err != nil {
		return nil, fmt.Errorf("put the base into the work tree: %w", err)
	}
	return based, nil
}

func (c *Checkout) layBase(ctx context.Context, from plumbing.Hash, snap *Snapshot) (*Snapshot, error) {
	changes, err := c.objects.Differences(ctx, from, c.base.Tree.hash())
	if err != nil {
		return nil, err
	}
	written, err := c.work.Overwrite(ctx, c.base.Tree.hash(), changes)
	if err != nil {
		return nil, err
	}
	ix, err := c.rewritten(snap.index, updatesOf(changes, written), snap.index.Modified)
	if err != nil {
		return nil, err
	}
	c.work = c.work.Whole() // ignore rules may be others
	based, err := c.snapshot(ctx, ix)
	if err == nil {
		based.elsewhere = c.submodulesElsewhere(changes)
	}
	return based, err
}

// submodulesElsewhere lists the populated submodules that changes move. LayBase leaves them where they are.
func (c *Checkout) submodulesElsewhere(changes []objects.Difference) (paths []string) {
	for _, d := range changes {
		if d.Old.Mode != index.Gitlink || d.New.Mode != index.Gitlink {
			continue
		}
		if _, err := os.Lstat(filepath.Join(c.Root(), filepath.FromSlash(d.Path), ".git")); err == nil {
			paths = append(paths, d.Path)
		}
	}
	return paths
}

// BaseAt is the base at a commit, under the name of a branch. Nothing moves.
func (c *Checkout) BaseAt(branch, sha string) (Base, error) {
	return c.resolve(BaseSpec{Branch: branch, SHA: sha})
}

func (c *Checkout) resolve(spec BaseSpec) (Base, error) {
	if spec == (BaseSpec{}) {
		return c.baseAt(c.start.branch, c.start.commit)
	}
	if spec.SHA != "" {
		id, err := repository.ParseID(spec.SHA)
		if err != nil {
			return Base{}, &UnknownBaseError{Name: spec.SHA}
		}
		branch := spec.Branch
		if branch == "" && id == c.start.commit {
			branch = c.start.branch
		}
		return c.baseAt(branch, id)
	}
	for _, prefix := range [...]string{"refs/heads/", "refs/remotes/origin/"} {
		id, err := c.repo.ReadRef(prefix + spec.Branch)
		if err == nil {
			return c.baseAt(spec.Branch, id)
		}
		if !errors.Is(err, repository.ErrNoRef) {
			return Base{}, err
		}
	}
	return Base{}, &UnknownBaseError{Name: spec.Branch}
}

func (c *Checkout) baseAt(branch string, id plumbing.Hash) (Base, error) {
	commit, err := c.objects.Commit(id)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return Base{}, &UnknownBaseError{Name: id.String()}
	}
	if err != nil {
		return Base{}, err
	}
	return Base{Branch: branch, SHA: id.String(), Tree: Tree(commit.TreeHash.String())}, nil
}

// updatesOf converts changes to updates of an index.
func updatesOf(changes []objects.Difference, stats map[string]index.Stat) []index.Update {
	updates := make([]index.Update, 0, len(changes))
	for _, d := range changes {
		u := index.Update{Path: d.Path}
		if d.New.Mode != 0 {
			u.Entry = &index.Entry{Path: d.Path, Mode: d.New.Mode, ID: d.New.ID, Stat: stats[d.Path]}
		}
		updates = append(updates, u)
	}
	return updates
}
