// Package gitops owns a checkout: the base commit of a run, the changes since then, their commit,
// and fresh trees for checks. It is the interface to the packages below internal: repository (a
// .git and its work tree), objects, trees (of objects: change sets, commits, merges), index, scan
// (finds differences) and worktree (writes files). go-git reads objects. Index,
// references and ignore rules have readers of their own here, because go-git misreads unusual
// checkouts.
//
// The git program reads configuration and attributes, converts line endings, encodings and $Id$, and
// compares, merges and patches trees. It always runs in a private git folder with the configuration
// from before the agent's start, so later hooks and configuration have no effect. git starts no filter.
// Filter commands run in the confinement of Options.OpenFilter.
//
// The package knows neither network (see remote) nor forge (see github), task or policy. It reports
// dangers in a change as Problems; callers decide.
package gitops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/lfs"
	"github.com/agent-ci/agent-ci/gitops/internal/merge"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/trees"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
	"github.com/agent-ci/agent-ci/gitops/rules"
	"github.com/agent-ci/agent-ci/policy/outside"
)

type Options struct {
	Dir   string // the checkout, or a folder in it
	Git   string // the path of the git program, as FindGit finds it
	State string // a private folder that exists, for objects that are not published yet
	Forge string // the base address of the forge's pages, or "" for none; other host names may be aliases from the user's ssh configuration
	// OpenFilter opens the confinement for a filter's commands. Nil permits no filter.
	OpenFilter OpenFilter
	// CheckOutHead makes Open check out the files of HEAD.
	CheckOutHead bool
	// LFS is a folder for the contents of changed Git LFS files. It is created when needed. ""
	// means none.
	LFS string
	// LockMark is the content of the locks that the Checkout makes. It identifies the owner for DropOwnLocks in
	// a later process and for people.
	LockMark string
}

// Checkout is a work tree with its repository in the state at Open.
type Checkout struct {
	trees.Store // reads and makes trees and change sets

	repo    *repository.Repository
	work    *worktree.Worktree
	objects *objects.Store // writes to the private git folder

	startHead  string      // the content of HEAD before any change; its commit is StartCommit
	startIndex *index.File // the index before any change
	switched   bool        // this process moved the checkout to another commit or branch
}

// position is the state of HEAD and index at one time.
type position struct {
	head   string // the content of HEAD
	commit Base   // of HEAD
	index  *index.File
}

// Open opens the checkout around o.Dir and reads its configuration. It returns ErrNotRepository,
// ErrBare, ErrNoCommit, an *UnsupportedError, or a *GitError. Close the checkout after use.
func Open(ctx context.Context, o Options) (*Checkout, error) {
	repo, err := repository.Open(ctx, o.Dir, o.Git, o.State, o.Forge)
	if err != nil {
		return nil, err
	}
	repo.LockMark = cmp.Or(o.LockMark, repository.DefaultMark)
	c := &Checkout{repo: repo}
	if err := c.open(ctx, o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// open opens the objects and the work tree, checks out HEAD if asked to, and reads the position.
func (c *Checkout) open(ctx context.Context, o Options) (err error) {
	c.objects = objects.Open(c.repo.PrivateDir, c.repo.ObjectFolders...)
	c.objects.Lost = c.repo.LostFolders
	if c.work, err = worktree.Open(c.repo, c.objects); err != nil {
		return err
	}
	c.work.Filters = worktree.Filters{Open: o.OpenFilter, LFS: lfs.Store{OwnFolder: o.LFS, Shared: lfs.ObjectFolders(c.repo.ObjectFolders)}}
	if o.CheckOutHead {
		if err := c.checkOutHead(ctx); err != nil {
			return err
		}
	}
	opened, err := c.readPosition(ctx)
	if err == nil {
		c.setStart(opened)
	}
	return err
}

// setStart sets the position on which the checkout was opened. The base becomes its commit.
func (c *Checkout) setStart(p position) {
	c.startHead, c.startIndex = p.head, p.index
	c.Store = trees.Open(c.repo, c.objects, c.work, p.commit)
}

// checkOutHead writes the files and the index of a fresh clone that has neither.
func (c *Checkout) checkOutHead(ctx context.Context) error {
	_, id, err := c.repo.Head()
	if err != nil {
		return fmt.Errorf("%s: %w", c.repo.Root, err)
	}
	commit, err := c.objects.Commit(id)
	if err != nil {
		return err
	}
	return c.work.FillItself(ctx, commit.TreeHash)
}

// readPosition reads HEAD, its commit and the index. It returns ErrNoCommit for a branch without commits.
func (c *Checkout) readPosition(ctx context.Context) (position, error) {
	head, id, err := c.repo.Head()
	switch {
	case errors.Is(err, repository.ErrNoRef):
		return position{}, fmt.Errorf("%s: %w", c.repo.Root, ErrNoCommit)
	case err != nil:
		return position{}, err
	}
	branch := ""
	if name, symbolic := strings.CutPrefix(head, "ref: "); symbolic {
		branch = strings.TrimPrefix(name, "refs/heads/")
	}
	commit, err := c.objects.Commit(id)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return position{}, c.objects.MissingError(id)
	}
	if err != nil {
		return position{}, err
	}
	ix, err := c.repo.Index(ctx)
	return position{head, Base{Branch: branch, SHA: id.String(), Tree: trees.IDOf(commit.TreeHash)}, ix}, err
}

// MovedByOthers reports whether others committed, switched or staged something since the checkout was
// opened. It is false after this process itself moved the checkout.
func (c *Checkout) MovedByOthers(ctx context.Context) (bool, error) {
	if c.switched {
		return false, nil
	}
	now, isUnborn, err := c.positionNow(ctx)
	if err != nil || isUnborn {
		return isUnborn, err
	}
	return !c.standsOnStart(now) || !now.index.SameEntries(c.startIndex), nil
}

// positionNow returns the current position, to compare with an earlier one. isUnborn is true on a branch without
// commits, as after git checkout --orphan.
func (c *Checkout) positionNow(ctx context.Context) (now position, isUnborn bool, err error) {
	now, err = c.readPosition(ctx)
	if errors.Is(err, ErrNoCommit) {
		return now, true, nil
	}
	if err != nil {
		return now, false, fmt.Errorf("look whether the checkout was moved: %w", err)
	}
	return now, false, nil
}

// standsOnStart reports whether HEAD and its commit are those on which the checkout was opened.
func (c *Checkout) standsOnStart(p position) bool {
	return p.head == c.startHead && p.commit.SHA == c.StartCommit().SHA
}

// MovedExcept reports whether HEAD or the index moved since the checkout was opened, except by a finished
// or interrupted Switch to branch and commit.
func (c *Checkout) MovedExcept(ctx context.Context, branch, commit string) (bool, error) {
	now, isUnborn, err := c.positionNow(ctx)
	if err != nil || isUnborn {
		return isUnborn, err
	}
	start := c.StartCommit()
	switchedTree := start.Tree
	if c.HasCommit(commit) {
		object, err := c.objects.Commit(plumbing.NewHash(commit))
		if err != nil {
			return false, fmt.Errorf("look whether the checkout was moved: %w", err)
		}
		switchedTree = trees.IDOf(object.TreeHash)
	}
	switched := commit != "" && now.commit.SHA == commit && now.head == headContent(branch, commit)
	if !switched && !c.standsOnStart(now) {
		return true, nil
	}
	for _, tree := range []Tree{start.Tree, switchedTree} { // the index must be that of either tree
		same := true
		err := c.objects.CompareIndex(ctx, now.index, tree.Hash(), func(string, objects.Entry) { same = false })
		if err != nil {
			return false, err
		}
		if same {
			return false, nil
		}
	}
	return true, nil
}

// headContent returns the content of the HEAD file on a branch, or on a commit if branch is "".
func headContent(branch, commit string) string {
	if branch == "" {
		return commit
	}
	return "ref: refs/heads/" + branch
}

// Root returns the absolute path of the work tree, with symbolic links resolved.
func (c *Checkout) Root() string { return c.repo.Root }

// Origin returns the resolved address of the remote "origin" without credentials, or "".
func (c *Checkout) Origin() string { return c.repo.Settings.Origin }

// DefaultBranch returns the branch of origin's HEAD at clone time, or "".
func (c *Checkout) DefaultBranch() string { return c.repo.DefaultBranch() }

// BranchesAt lists the local branches at a commit, sorted.
func (c *Checkout) BranchesAt(sha string) ([]string, error) { return c.repo.BranchesAt(sha) }

// BranchFits returns an error if another branch prevents one called name: "a" and "a/b" cannot both exist.
func (c *Checkout) BranchFits(name string) error { return c.repo.BranchFits(name) }

// RequireUnusedElsewhere returns an *InUseError if another work tree has checked the branch out.
func (c *Checkout) RequireUnusedElsewhere(branch string) error {
	return c.repo.RequireUnusedElsewhere(branch)
}

// PushesTo returns git's push addresses for a branch, without credentials, and the git setting that
// names the remote. Without a remote it returns nothing. The first result is cached.
func (c *Checkout) PushesTo(ctx context.Context, branch string) (urls []string, setting string, err error) {
	return c.repo.PushesTo(ctx, branch)
}

// Claim makes this process the only one in the work tree until Close or Share. Otherwise two
// processes would mistake each other's files for their own changes. It returns an *InUseError if
// another process has claimed or shared the work tree; an earlier Share of this process stays in
// force then. On a file system without locks, Claim does nothing.
func (c *Checkout) Claim() error { return c.repo.Claim() }

// ClaimWithRetry is Claim for use after a killed process: it waits up to a second for that
// process's children to exit.
func (c *Checkout) ClaimWithRetry(ctx context.Context) error { return c.repo.ClaimWithRetry(ctx) }

// Share lets other processes share the work tree, such as those in a layer above it, and excludes
// claims. It replaces a claim of this process. It returns an *InUseError if another process holds a
// claim for a second, or tries to claim meanwhile; this process's claim stays in force then.
func (c *Checkout) Share(ctx context.Context) error { return c.repo.Share(ctx) }

// LockIndex locks the index against commits, staging and switches of any git process until release
// is called. It waits up to a second for a running git, then returns an *InUseError. If this
// Checkout already holds the lock, the inner release does nothing.
func (c *Checkout) LockIndex(ctx context.Context) (release func() error, err error) {
	if c.repo.HoldsIndex() {
		return func() error { return nil }, nil
	}
	return c.repo.ReleaseIndex, c.repo.HoldIndex(ctx)
}

// DropOwnLocks removes the locks that contain the LockMark of this Checkout. Call it after the
// process that made them died.
func (c *Checkout) DropOwnLocks() error { return c.repo.DropOwnLocks() }

// Unwritable returns a file or folder that any change must write to but cannot, with the reason as an error.
// It returns a nil error if there is none. movesHead means that HEAD moves with the change, to a commit.
func (c *Checkout) Unwritable(movesHead bool) (path string, err error) {
	return c.repo.Unwritable(movesHead)
}

// UnwritableAmong is like Unwritable for paths of the work tree that are to be made, replaced or deleted.
func (c *Checkout) UnwritableAmong(paths []string) (path string, err error) {
	return c.repo.UnwritableAmong(paths)
}

// RequireIdle returns an *InUseError if a git process works in the checkout for more than a second,
// or left a lock. Call it before the work: otherwise a lock is only found afterwards.
func (c *Checkout) RequireIdle(ctx context.Context) error { return c.repo.RequireIdle(ctx) }

// WasRemoved reports whether somebody deleted or moved the work tree or its git folder, or put another git
// folder there since Claim or Share.
func (c *Checkout) WasRemoved() bool { return c.repo.WasRemoved() }

// UnfinishedOperation returns the merge, rebase or other operation that git began in the work tree and did not
// finish. Without one, it returns a zero Operation.
func (c *Checkout) UnfinishedOperation() Operation { return c.repo.UnfinishedOperation() }

// Hide excludes paths, with everything below, from snapshots, changes and copies. It neither
// restores nor removes them. The base commit must not contain them.
func (c *Checkout) Hide(paths []string) { c.work.Hide(paths) }

// Close removes the private files of this Checkout, including objects of unpublished changes.
func (c *Checkout) Close() error {
	var errs []error
	if c.objects != nil {
		errs = append(errs, c.objects.Close())
	}
	if c.work != nil {
		errs = append(errs, c.work.Close())
	}
	return errors.Join(append(errs, c.repo.Close())...)
}

// FindGit returns the path of the git program in pathEnv, a list as in PATH, or "" if there is
// none. It ignores the folders that SearchPathOutside removes for root.
func FindGit(pathEnv, root string) string {
	return outside.Find("git", program.SearchPathOutside(pathEnv, root))
}

// CheckGit returns the version of the git program at path, and a *GitError if agent-ci cannot
// work with it. An empty path means that there is no git.
func CheckGit(ctx context.Context, path string) (version string, err error) {
	return program.Check(ctx, path)
}

// WorkTree returns the root of the work tree around dir.
func WorkTree(dir string) (root string, ok bool) { return repository.WorkTree(dir) }

// SearchPathOutside returns a PATH without the folders in which commands of the work tree root may have
// put programs. root may be "".
func SearchPathOutside(pathEnv, root string) string { return program.SearchPathOutside(pathEnv, root) }

// PassesThrough reports whether a path is in a folder or is reached through it by links. The path need not
// exist.
func PassesThrough(path, folder string) bool { return program.LeadsThrough(path, folder) }

// ExcludeRules returns the ignore rules of the repository's info/exclude, as they were
// when the checkout was opened.
func (c *Checkout) ExcludeRules() rules.Ignore { return c.repo.Exclude() }

// IgnoresCase reports git's core.ignoreCase.
func (c *Checkout) IgnoresCase() bool { return c.repo.Settings.IgnoreCase }

// Tracked lists the files in the index, sorted by bytes. Git ignores none of
// them, whatever the ignore rules say.
func (c *Checkout) Tracked(ctx context.Context) ([]string, error) {
	return c.indexedPaths(ctx, "list tracked files", func(*index.File, int) bool { return true })
}

// Submodules lists the paths of submodules in the index, with or without an entry in .gitmodules.
func (c *Checkout) Submodules(ctx context.Context) ([]string, error) {
	return c.indexedPaths(ctx, "list the submodules", func(ix *index.File, i int) bool { return ix.Mode(i) == index.Gitlink })
}

// TrackedEndingIn lists the paths in the index that end in the given whole path elements.
func (c *Checkout) TrackedEndingIn(ctx context.Context, end string) ([]string, error) {
	whole, part := []byte(end), []byte("/"+end)
	return c.indexedPaths(ctx, "list paths of the checkout", func(ix *index.File, i int) bool {
		return bytes.Equal(ix.Path(i), whole) || bytes.HasSuffix(ix.Path(i), part)
	})
}

// indexedPaths lists the paths of matching index entries. doing completes an error message.
func (c *Checkout) indexedPaths(ctx context.Context, doing string, wanted func(ix *index.File, i int) bool) ([]string, error) {
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return pathsIn(ix, wanted), nil
}

// pathsIn lists the paths of matching entries of an index.
func pathsIn(ix *index.File, wanted func(ix *index.File, i int) bool) (paths []string) {
	for i := range ix.Len() {
		if wanted(ix, i) {
			paths = append(paths, string(ix.Path(i)))
		}
	}
	return slices.Compact(paths)
}

// IsMarker reports whether a line, without its end, is a conflict marker of any [Labels].
func IsMarker(line string) bool { return merge.IsMarker(line) }

// The errors of Open for an unusable folder, and the one for a damaged index.
var (
	ErrNotRepository = repository.ErrNotRepository
	ErrBare          = repository.ErrBare
	ErrIndex         = index.ErrMalformed
	ErrNoCommit      = errors.New("the repository has no commit yet: make one, for example with git commit --allow-empty -m first")
)

// ForeignCommitError reports a commit on the task's branch that no run made.
type ForeignCommitError struct {
	Branch, SHA string
	Author      string // "name <address>"
}

func (e *ForeignCommitError) Error() string {
	return fmt.Sprintf("branch %s holds commit %.12s by %s, which no run made: merge or move it, or delete the branch",
		e.Branch, e.SHA, e.Author)
}

// Types of the packages below, documented there.
type (
	Tree          = trees.Tree
	Base          = trees.Base
	BaseSpec      = trees.BaseSpec
	BaseKind      = trees.BaseKind
	BaseEntry     = trees.BaseEntry
	ChangeSet     = trees.ChangeSet
	Problem       = trees.Problem
	ProblemKind   = trees.ProblemKind
	Signature     = trees.Signature
	CommitOptions = trees.CommitOptions
	MergeConflict = trees.MergeConflict
	Labels        = trees.Labels
	Operation     = repository.Operation
)

// The kinds of entries of a base.
const (
	BaseFile   = trees.BaseFile
	BaseFolder = trees.BaseFolder
	BaseLink   = trees.BaseLink
)

// The kinds of problems, documented in package trees.
const (
	ProblemRepository = trees.ProblemRepository
	ProblemName       = trees.ProblemName
	ProblemSubmodule  = trees.ProblemSubmodule
	ProblemLink       = trees.ProblemLink
	ProblemUnreadable = trees.ProblemUnreadable
	ProblemLarge      = trees.ProblemLarge
	ProblemTooDeep    = trees.ProblemTooDeep
)

// Errors of the packages below, documented there.
type (
	UnknownBaseError = trees.UnknownBaseError
	MergeError       = trees.MergeError
	UnsupportedError = repository.UnsupportedError
	GitError         = program.UnusableError
	InUseError       = repository.InUseError
	ObstructedError  = worktree.ObstructedError
	FilterError      = worktree.FilterError
	ChangedError     = worktree.ChangedError
	HeadMovedError   = repository.HeadMovedError
	ObjectError      = objects.DamagedError
	TooDeepError     = objects.TooDeepError
	TooLargeError    = objects.TooLargeError
	PackError        = objects.PackError
)
