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

// BaseSpec names a base. The zero BaseSpec is HEAD. Branch is a local branch, or else one of origin. With
// SHA, the base is that commit, and Branch only names it.
type BaseSpec struct {
	Branch, SHA string
}

// CheckedOut reports whether a branch was checked out when the checkout was opened.
func (c *Checkout) CheckedOut(branch string) bool { return branch != "" && branch == c.opened.branch }

// SetBase resolves the base that the work starts from. The checkout stays as it is: layers get the
// base by WriteBase, and the checkout by ApplyChange or Switch. The error is an *UnknownBaseError if the
// checkout lacks the base.
func (c *Checkout) SetBase(spec BaseSpec) (Base, error) {
	base, err := c.resolve(spec)
	if err == nil {
		c.base = base
	}
	return base, err
}

// StartCommit returns the commit on which the checkout was opened.
func (c *Checkout) StartCommit() Base {
	return Base{Branch: c.opened.branch, SHA: c.opened.commit.String(), Tree: Tree(c.opened.tree.String())}
}

// currentBase returns the commit that the work tree's files are compared with: the base in a layer,
// the start commit in the checkout.
func (c *Checkout) currentBase() Base {
	if c.work.InLayer() {
		return c.base
	}
	return c.StartCommit()
}

// WriteBase writes the base's files into a layer that shows the checkout, and returns a snapshot of
// the result. It removes untracked files that are in the way. snap is the snapshot of the layer
// before.
func (c *Checkout) WriteBase(ctx context.Context, l Layer, snap *Snapshot) (*Snapshot, error) {
	in := c.InLayer(l)
	based, err := in.writeBase(ctx, c.opened.tree, snap)
	if err != nil {
		return nil, fmt.Errorf("put the base into the work tree: %w", err)
	}
	return based, nil
}

// writeBase is WriteBase for a layer that shows the tree from.
func (c *Checkout) writeBase(ctx context.Context, from plumbing.Hash, snap *Snapshot) (*Snapshot, error) {
	changes, err := c.objects.Differences(ctx, from, c.base.Tree.hash())
	if err != nil {
		return nil, err
	}
	written, err := c.work.Overwrite(ctx, c.base.Tree.hash(), changes)
	if err != nil {
		return nil, err
	}
	ix, err := c.updatedIndex(snap.index, updatesOf(changes, written), snap.index.Modified)
	if err != nil {
		return nil, err
	}
	c.work = c.work.ScanningAll() // the base may have other ignore rules, so the layer's changes are not enough
	based, err := c.snapshot(ctx, ix)
	if err == nil {
		based.elsewhere = c.submodulesElsewhere(changes)
	}
	return based, err
}

// submodulesElsewhere lists the populated submodules whose commit changes. WriteBase does not check
// out the new commits.
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

// BaseAt returns the base at commit sha, with branch as its name. It does not change the checkout.
func (c *Checkout) BaseAt(branch, sha string) (Base, error) {
	return c.resolve(BaseSpec{Branch: branch, SHA: sha})
}

// resolve finds the commit of a BaseSpec: the checked out one for the zero value, else a commit id, a local
// branch, or a branch of origin. It returns an *UnknownBaseError if there is none.
func (c *Checkout) resolve(spec BaseSpec) (Base, error) {
	if spec == (BaseSpec{}) {
		return c.baseAt(c.opened.branch, c.opened.commit)
	}
	if spec.SHA != "" {
		id, err := repository.ParseID(spec.SHA)
		if err != nil {
			return Base{}, &UnknownBaseError{Name: spec.SHA}
		}
		branch := spec.Branch
		if branch == "" && id == c.opened.commit {
			branch = c.opened.branch
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

// baseAt returns the base at a commit, with branch as its name, or an *UnknownBaseError if the
// commit is missing.
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

// updatesOf converts changes to updates of an index. stats has the stat data of written files.
// Files that are missing in it get zero stat data, so git reads them again.
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
