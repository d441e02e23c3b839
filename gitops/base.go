package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// Base is the commit that a change is made on.
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

// SetBase resolves the base. Where it is another commit than HEAD's, it puts
// the work tree, the index and a detached HEAD on it; no branch moves, and
// Restore goes back; the checkout is claimed first. It returns an *UnknownBaseError for
// what is not here, a *DirtyError or *ObstructedError where files of the user are in the
// way, and an *InUseError where somebody else works in the checkout.
func (c *Checkout) SetBase(ctx context.Context, spec BaseSpec) (Base, error) {
	base, err := c.resolve(spec)
	if err != nil {
		return Base{}, err
	}
	if base.SHA != c.base.SHA {
		if err := errors.Join(c.Claim(), c.Idle(ctx)); err != nil {
			return Base{}, err
		}
		if err := c.moveTo(ctx, base); err != nil {
			return Base{}, fmt.Errorf("check out the base %s: %w", cmp.Or(spec.Branch, spec.SHA), err)
		}
	}
	c.base = base
	return base, nil
}

// UseBase is SetBase for who only makes objects on the base: the work tree stays
// where it is. Changes and Restore must not be used after it.
func (c *Checkout) UseBase(spec BaseSpec) (Base, error) {
	base, err := c.resolve(spec)
	if err == nil {
		c.base = base
	}
	return base, err
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

func (c *Checkout) moveTo(ctx context.Context, base Base) (err error) {
	release, err := c.Hold(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if moved, err := c.MovedByOthers(ctx); err != nil || moved {
		return cmp.Or(err, c.repo.InUse())
	}
	dirty, err := c.Dirty(ctx)
	if err != nil {
		return err
	}
	if len(dirty) > 0 {
		return &DirtyError{Paths: dirty}
	}
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return err
	}
	changes, err := c.objects.Differences(ctx, c.base.Tree.hash(), base.Tree.hash())
	if err != nil {
		return err
	}
	c.moved = true
	stats, err := c.work.CheckOutOver(ctx, ix, c.base.Tree.hash(), base.Tree.hash(), changes)
	if err != nil {
		return err
	}
	if err := c.repo.WriteIndex(ix, updatesOf(changes, stats)); err != nil {
		return err
	}
	if err := c.moveHead(base.SHA, base.SHA, base.SHA); err != nil {
		return err
	}
	now, err := c.readPosition(ctx)
	c.onBase = &now
	return err
}

// updatesOf is what changes do to an index.
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
