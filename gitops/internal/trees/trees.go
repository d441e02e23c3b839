// Package trees reads and makes trees, commits and change sets in the objects of a repository. It
// knows the commit that the work starts from. It touches no file of the work tree, no reference and
// no index.
package trees

import (
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
)

// Tree is the hex id of a tree object.
type Tree string

// Hash returns the id as bytes.
func (t Tree) Hash() plumbing.Hash { return plumbing.NewHash(string(t)) }

// IDOf returns the id of a tree object as a Tree.
func IDOf(id plumbing.Hash) Tree { return Tree(id.String()) }

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

// Store reads and makes the trees of one checkout.
type Store struct {
	repo    *repository.Repository
	objects *objects.Store
	work    *worktree.Worktree // reads the attributes of trees
	start   Base               // the commit on which the checkout was opened
	base    Base               // the commit that the work starts from
}

// Open returns the trees of a checkout that was opened on the commit start. start is also the base,
// until SetBase.
func Open(repo *repository.Repository, store *objects.Store, work *worktree.Worktree, start Base) Store {
	return Store{repo, store, work, start, start}
}

// Base returns the commit that the work starts from.
func (s *Store) Base() Base { return s.base }

// SetBase resolves the base that the work starts from. The checkout stays as it is: layers get the
// base by WriteBase, and the checkout by ApplyChange or Switch. The error is an *UnknownBaseError if the
// checkout lacks the base.
func (s *Store) SetBase(spec BaseSpec) (Base, error) {
	base, err := s.resolve(spec)
	if err == nil {
		s.base = base
	}
	return base, err
}

// StartCommit returns the commit on which the checkout was opened.
func (s *Store) StartCommit() Base { return s.start }

// BaseAt returns the base at commit sha, with branch as its name. It does not change the checkout.
func (s *Store) BaseAt(branch, sha string) (Base, error) {
	return s.resolve(BaseSpec{Branch: branch, SHA: sha})
}

// resolve finds the commit of a BaseSpec: the checked out one for the zero value, else a commit id, a local
// branch, or a branch of origin. It returns an *UnknownBaseError if there is none.
func (s *Store) resolve(spec BaseSpec) (Base, error) {
	if spec == (BaseSpec{}) {
		return s.start, nil
	}
	if spec.SHA != "" {
		id, err := repository.ParseID(spec.SHA)
		if err != nil {
			return Base{}, &UnknownBaseError{Name: spec.SHA, Checkout: s.repo.Root}
		}
		branch := spec.Branch
		if branch == "" && id.String() == s.start.SHA {
			branch = s.start.Branch
		}
		return s.baseAt(branch, id)
	}
	for _, prefix := range [...]string{"refs/heads/", "refs/remotes/origin/"} {
		id, err := s.repo.ReadRef(prefix + spec.Branch)
		if err == nil {
			return s.baseAt(spec.Branch, id)
		}
		if !errors.Is(err, repository.ErrNoRef) {
			return Base{}, err
		}
	}
	_, err := s.repo.ReadRef("refs/tags/" + spec.Branch)
	return Base{}, &UnknownBaseError{Name: spec.Branch, Checkout: s.repo.Root, IsTag: err == nil}
}

// baseAt returns the base at a commit, with branch as its name, or an *UnknownBaseError if the
// commit is missing.
func (s *Store) baseAt(branch string, id plumbing.Hash) (Base, error) {
	commit, err := s.objects.Commit(id)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return Base{}, &UnknownBaseError{Name: id.String(), Checkout: s.repo.Root}
	}
	if err != nil {
		return Base{}, err
	}
	return Base{Branch: branch, SHA: id.String(), Tree: IDOf(commit.TreeHash)}, nil
}

// UnknownBaseError reports a base that the checkout does not have.
type UnknownBaseError struct {
	Name     string // branch or commit
	Checkout string // its folder
	IsTag    bool   // whether Name is a tag there
}

func (e *UnknownBaseError) Error() string {
	if e.IsTag {
		return fmt.Sprintf("the base %q is a tag in the checkout %s: name a branch", e.Name, e.Checkout)
	}
	return fmt.Sprintf("the base %q is not in the checkout %s: fetch it, or name another if its branch was rewritten", e.Name, e.Checkout)
}
