package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/rules"
)

// Options says which checkout to open.
type Options struct {
	Dir   string // the checkout, or a folder in it
	Git   string // the git program; empty: there is none
	State string // a private folder that exists, for objects that are not published yet
}

// Checkout is a work tree with its repository, as it was when it was opened.
type Checkout struct {
	layout
	settings settings
	git      program.Program // knows the shadow alone
	shadow   string
	state    string
	dir      *os.Root       // the work tree
	objects  *objects.Store // writes to the shadow
	borrows  []string       // git folders whose objects the store reads
	ignores  []rules.Ignore
	start    position
	live     liveIndex
	locked   map[string]bool // lock files that were there when it was opened
	hidden   map[string]bool // by Hide
	claim    *os.File        // that keeps other runs out; nil while nothing does

	base Base // what the work tree stands on
}

// position is where a checkout stood before anything was done to it.
type position struct {
	head   string // the content of HEAD
	branch string // short name; "" when detached
	commit plumbing.Hash
	tree   plumbing.Hash
	index  *index.File
}

// Tree is the hex id of a tree object.
type Tree string

func (t Tree) hash() plumbing.Hash { return plumbing.NewHash(string(t)) }

// Open opens the checkout that o.Dir lies in and reads its configuration. It
// returns ErrNotRepository, ErrBare, ErrNoCommit or an *UnsupportedError for
// what cannot be worked in. The checkout must be closed.
func Open(ctx context.Context, o Options) (_ *Checkout, err error) {
	l, err := discover(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := formatSupported(l); err != nil {
		return nil, err
	}
	git := program.AsUser(o.Git, os.Environ(), l.gitDir, l.root)
	vars, err := readConfig(ctx, l, git, os.Getenv)
	if err != nil {
		return nil, err
	}
	c := &Checkout{layout: l, settings: newSettings(vars, os.Getenv("HOME")), state: o.State}
	c.settings.useDefaultRules(os.Getenv)
	if err := c.settings.supported(l); err != nil {
		return nil, err
	}
	if err := c.open(ctx, o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Checkout) open(ctx context.Context, o Options) (err error) {
	if c.dir, err = os.OpenRoot(c.root); err != nil {
		return fmt.Errorf("open the checkout: %w", err)
	}
	state, err := filepath.Abs(o.State)
	if err != nil {
		return fmt.Errorf("open the checkout: %w", err)
	}
	c.state = state
	if c.shadow, err = newShadow(state, c.layout, &c.settings); err != nil {
		return err
	}
	if c.borrows, err = objectFolders(c.commonDir); err != nil {
		return err
	}
	c.objects = objects.Open(c.shadow, c.borrows...)
	c.git = program.Isolated(o.Git, os.Environ(), c.root, c.shadow, c.root)
	if c.start, err = c.readPosition(ctx); err != nil {
		return err
	}
	c.base = Base{Branch: c.start.branch, SHA: c.start.commit.String(), Tree: Tree(c.start.tree.String())}
	c.noteLocks()
	c.ignores = c.outerIgnores()
	return c.filtersWork(ctx)
}

// readPosition reads HEAD and the index.
func (c *Checkout) readPosition(ctx context.Context) (position, error) {
	head, err := readHead(c.gitDir)
	if err != nil {
		return position{}, err
	}
	p := position{head: head}
	if name, ok := strings.CutPrefix(head, "ref: "); ok {
		p.branch = strings.TrimPrefix(name, "refs/heads/")
		p.commit, err = c.refs().read(name)
	} else {
		p.commit = plumbing.NewHash(head)
	}
	switch {
	case errors.Is(err, errNoRef):
		return p, fmt.Errorf("%s: %w", c.root, ErrNoCommit)
	case err != nil:
		return p, err
	}
	commit, err := c.objects.Commit(p.commit)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return p, &objects.DamagedError{ID: p.commit.String(), Err: plumbing.ErrObjectNotFound}
	}
	if err != nil {
		return p, err
	}
	p.tree = commit.TreeHash
	p.index, err = c.readLiveIndex(ctx)
	return p, err
}

// readIndex reads an index of this checkout that may be split.
func (c *Checkout) readIndex(ctx context.Context, path string) (*index.File, error) {
	f, err := index.Read(path)
	if err != nil {
		return nil, err
	}
	if f.Sparse() {
		return nil, sparseCheckout()
	}
	if !f.Split() {
		return f, nil
	}
	return c.unsplitIndex(ctx, path, f)
}

// unsplitIndex lets git join a split index: a copy of it, so that the one of
// the checkout stays split.
func (c *Checkout) unsplitIndex(ctx context.Context, path string, split *index.File) (*index.File, error) {
	if !c.git.There() {
		return nil, &UnsupportedError{Feature: "a split index", Remedy: "install git, or run `git update-index --no-split-index`"}
	}
	whole := filepath.Join(c.shadow, "whole-index")
	if err := regularfile.CopyIfThere(path, whole, index.MaxSize); err != nil {
		return nil, fmt.Errorf("read the split index: %w", err)
	}
	shared, err := filepath.Glob(filepath.Join(filepath.Dir(path), "sharedindex.*"))
	if err != nil {
		return nil, fmt.Errorf("read the split index: %w", err)
	}
	for _, from := range shared {
		if err := regularfile.CopyIfThere(from, filepath.Join(c.shadow, filepath.Base(from)), index.MaxSize); err != nil {
			return nil, fmt.Errorf("read the split index: %w", err)
		}
	}
	if _, err := c.git.With("GIT_INDEX_FILE="+whole).Run(ctx, c.root, nil, "update-index", "--no-split-index"); err != nil {
		return nil, fmt.Errorf("read the split index: %w", err)
	}
	f, err := index.Read(whole)
	if err != nil {
		return nil, err
	}
	f.Modified = split.Modified
	return f, nil
}

// Root is the absolute path of the work tree, symbolic links resolved.
func (c *Checkout) Root() string { return c.root }

// Origin is the URL of the remote "origin" without credentials, "" when there
// is none.
func (c *Checkout) Origin() string { return c.settings.origin }

// Close removes what is private to this Checkout, with it objects of changes
// that were not switched to.
func (c *Checkout) Close() error {
	var errs []error
	if c.objects != nil {
		errs = append(errs, c.objects.Close())
	}
	if c.dir != nil {
		errs = append(errs, c.dir.Close())
	}
	if c.shadow != "" {
		errs = append(errs, os.RemoveAll(c.shadow))
	}
	if c.claim != nil {
		errs = append(errs, c.claim.Close())
		c.claim = nil
	}
	return errors.Join(errs...)
}

// outerIgnores reads the ignore rules from outside of the work tree, the
// weakest first.
func (c *Checkout) outerIgnores() []rules.Ignore {
	var lists []rules.Ignore
	for _, name := range [...]string{userExcludes, "info/exclude"} {
		data, err := os.ReadFile(filepath.Join(c.shadow, name))
		if err != nil {
			continue // not there
		}
		lists = append(lists, rules.ParseIgnore(data, ""))
	}
	return lists
}
