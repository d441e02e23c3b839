// Package repository owns what a .git says of a work tree: where its parts lie,
// the configuration that holds for it, HEAD, the references, the index and their
// locks. It makes the private git folder that the git program works on, and
// refuses, before anything is touched, what would make a result wrong.
//
// It reads no object and no file of the work tree.
package repository

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
)

// Repository is the repository of a work tree, with its configuration as it was
// when it was opened.
type Repository struct {
	Layout
	Settings   Settings
	Private    string            // a git folder of our own
	private    map[string][]byte // its files that decide what git does
	git        program.Program   // works on it alone
	attributes [][]byte          // files from outside of the work tree
	user       program.Program   // reads the configuration of the repository, the user and the machine
	forge      string
	asked      map[string][]string // addresses of remotes
	Folders    []string            // git folders whose objects the repository has
	modules    []Module
	live       liveIndex
	lock       *os.File // the git folder, once it was claimed or shared
	holds      string   // the mark in the lock of the index; empty where it is not held
}

// Open opens the repository of the work tree that dir lies in. git is the path of the git
// program; state is a folder for the private git folder; forge is the address of the forge's pages,
// empty for none. It returns ErrNotRepository, ErrBare or an *UnsupportedError for what cannot be
// worked in, and a *program.UnusableError.
// The Repository must be closed.
func Open(ctx context.Context, dir, git, state, forge string) (*Repository, error) {
	l, err := discover(dir)
	if err != nil {
		return nil, err
	}
	if _, err := program.Check(ctx, git); err != nil {
		return nil, err
	}
	user := program.AsUser(git, os.Environ(), l.GitDir, l.Root)
	vars, err := readConfig(ctx, l, user, os.Getenv("HOME"))
	if err != nil {
		return nil, err
	}
	r := &Repository{Layout: l, Settings: newSettings(vars, os.Getenv("HOME")), user: user, forge: hostOf(forge)}
	r.Settings.useDefaultRules(os.Getenv)
	if err := r.Settings.supported(l); err != nil {
		return nil, err
	}
	r.modules = r.modulesIn(ctx, "modules", 0)
	if err := errors.Join(ctx.Err(), r.resolveOrigin(ctx), r.open(git, state)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Repository) open(git, state string) error {
	state, err := filepath.Abs(state)
	if err != nil {
		return fmt.Errorf("make a private git folder: %w", err)
	}
	if err := r.makePrivate(state); err != nil {
		return err
	}
	r.git = program.Isolated(git, os.Environ(), r.Root, r.Private, r.Root)
	r.Folders, err = ObjectFolders(r.CommonDir)
	return err
}

// Close removes the private git folder, and lets other runs in.
func (r *Repository) Close() error {
	var errs []error
	if r.Private != "" {
		errs = append(errs, os.RemoveAll(r.Private))
	}
	if r.lock != nil {
		errs = append(errs, r.lock.Close())
		r.lock = nil
	}
	return errors.Join(errs...)
}

// What Open returns for a folder that is no checkout.
var (
	ErrNotRepository = errors.New("not in a git checkout: run in one, or name one with --repo")
	ErrBare          = errors.New("the repository is bare: give a checkout that has a work tree")
)

// UnsupportedError is a property of the checkout that would make the result
// wrong, found before anything was touched.
type UnsupportedError struct {
	Feature string // what was found
	Remedy  string // what to do about it
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: not supported; %s", e.Feature, e.Remedy)
}

// InUseError says that somebody else works in the checkout at this moment.
type InUseError struct {
	Root   string
	Remedy string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the checkout %s is in use: %s", e.Root, e.Remedy)
}
