// Package repository owns a work tree's .git: layout, configuration, HEAD, references, index and
// locks. It makes the private git folder for the git program. It refuses unsupported repositories,
// which would cause wrong results, before any change.
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

// Repository is the repository of a work tree, with the configuration read by Open.
type Repository struct {
	Layout
	Settings Settings
	privateFolder
	attributes    [][]byte        // contents of the attribute files outside the work tree
	userGit       program.Program // reads the configuration of the repository, the user and the machine
	forge         string
	pushAddresses map[string][]string // cached addresses of pushes, by remote
	ObjectFolders []string            // git folders with the repository's objects; the first is its own
	LostFolders   []string            // git folders whose objects the repository borrows, and that were missing at Open
	modules       []Module
	cachedIndex   cachedIndex
	claimFile     *os.File  // the open git folder, after Claim or Share
	indexLock     *heldLock // the lock of the index; nil if not held
	LockMark      string    // the content of this Repository's locks
}

// Open opens the repository of the work tree around dir. git is the git program's path, state a
// folder for the private git folder, forge the address of the forge's pages or "". It returns
// ErrNotRepository, ErrBare, an *UnsupportedError or a *program.UnusableError. Close the
// Repository.
func Open(ctx context.Context, dir, git, state, forge string) (*Repository, error) {
	l, err := discover(dir)
	if err != nil {
		return nil, err
	}
	user := program.AsUser(git, os.Environ(), l.GitDir, l.Root)
	vars, err := readConfig(ctx, l, user, os.Getenv("HOME"))
	if err != nil {
		return nil, err
	}
	r := &Repository{Layout: l, Settings: newSettings(vars, os.Getenv("HOME")), userGit: user, forge: hostOf(forge), LockMark: DefaultMark, pushAddresses: map[string][]string{}}
	r.Settings.useDefaultRules()
	if err := r.Settings.checkSupported(l); err != nil {
		return nil, err
	}
	r.modules = r.modulesIn(ctx, "modules", 0)
	if err := errors.Join(ctx.Err(), r.resolveOrigin(ctx), r.open(git, state)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// open makes the private git folder in state and finds the object folders.
func (r *Repository) open(git, state string) error {
	state, err := filepath.Abs(state)
	if err != nil {
		return fmt.Errorf("make a private git folder: %w", err)
	}
	if err := r.makePrivate(state); err != nil {
		return err
	}
	r.privateGit = program.Isolated(git, os.Environ(), r.Root, r.PrivateDir, r.Root)
	r.ObjectFolders, r.LostFolders, err = ObjectFolders(r.CommonDir)
	return err
}

// Close removes the private git folder and releases the claim or share.
func (r *Repository) Close() error {
	var errs []error
	if r.PrivateDir != "" {
		errs = append(errs, os.RemoveAll(r.PrivateDir))
	}
	if r.claimFile != nil {
		errs = append(errs, r.claimFile.Close())
		r.claimFile = nil
	}
	return errors.Join(errs...)
}

// ErrNotRepository and ErrBare are the errors of Open for a folder that is no checkout.
var (
	ErrNotRepository = errors.New("not in a git checkout: run in one, or name one with --repo")
	ErrBare          = errors.New("the repository is bare: give a checkout that has a work tree")
)

// UnsupportedError reports a property of the checkout that would cause a wrong result. It is
// returned before any change.
type UnsupportedError struct {
	Feature string // what was found
	Remedy  string // what to do about it
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: not supported; %s", e.Feature, e.Remedy)
}

// InUseError reports that another process works in the checkout.
type InUseError struct {
	Root   string
	Remedy string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the checkout %s is in use: %s", e.Root, e.Remedy)
}
