package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// Mirror is a bare repository on this machine with the branches of a remote. Checkouts are made from
// it without the network; they read its objects where they are, so it has to stay as long as they do.
type Mirror struct {
	Remote Remote
	Dir    string
	Git    string // the git program
}

// Hold makes sure that the mirror is there and has a commit: it is cloned, or brought up to date,
// where that is needed. One process works on a mirror at a time.
func (m Mirror) Hold(ctx context.Context, commit string) error {
	if !plumbing.IsHash(commit) {
		return fmt.Errorf("mirror %s: %q is not the hex id of a commit", m.Remote.Name(), commit)
	}
	_, err := os.Stat(m.Dir)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("mirror %s: %w", m.Remote.Name(), err)
	}
	if there && m.has(ctx, commit) {
		return nil
	}
	source, err := m.Remote.source(ctx, CloneOptions{})
	if err != nil {
		return err
	}
	env := gitEnvironment(source.config...)
	if !there {
		if err := m.clone(ctx, source, env); err != nil {
			return m.Remote.failed(ctx, "clone", err)
		}
	} else if err := m.fetch(ctx, source, env, "+refs/heads/*:refs/heads/*"); err != nil {
		return m.Remote.failed(ctx, "fetch from", err)
	}
	if m.has(ctx, commit) {
		return nil
	}
	if err := m.fetch(ctx, source, env, commit); err != nil {
		return m.Remote.failed(ctx, "fetch from", err)
	}
	return nil
}

func (m Mirror) has(ctx context.Context, commit string) bool {
	_, err := runGit(ctx, m.Git, gitEnvironment(), "-C", m.Dir, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// clone puts the mirror into its place once it is whole.
func (m Mirror) clone(ctx context.Context, from source, env []string) error {
	unfinished := m.Dir + ".new"
	if err := errors.Join(os.RemoveAll(unfinished), os.MkdirAll(filepath.Dir(m.Dir), 0o700)); err != nil {
		return err
	}
	args := append(slices.Clone(guarded), "clone", "--bare", "--quiet", "--template=", "--no-recurse-submodules", "--", from.url, unfinished)
	if _, err := runGit(ctx, m.Git, env, args...); err != nil {
		return errors.Join(err, os.RemoveAll(unfinished))
	}
	return os.Rename(unfinished, m.Dir)
}

// fetch never packs the mirror anew: checkouts read its objects meanwhile.
func (m Mirror) fetch(ctx context.Context, from source, env []string, what string) error {
	args := append(slices.Clone(guarded), "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-C", m.Dir, "fetch", "--quiet", "--no-recurse-submodules", "--", from.url, what)
	_, err := runGit(ctx, m.Git, env, args...)
	return err
}

// CheckOut makes a checkout of a commit of the mirror, on a branch. Its origin is the remote. On an
// error nothing is left in dir, which must not be there before.
func (m Mirror) CheckOut(ctx context.Context, dir, branch, commit string) error {
	if err := m.checkOut(ctx, dir, branch, commit); err != nil {
		return errors.Join(fmt.Errorf("check %s out: %w", m.Remote.Name(), err), os.RemoveAll(dir))
	}
	return nil
}

func (m Mirror) checkOut(ctx context.Context, dir, branch, commit string) error {
	for _, args := range [][]string{
		{"clone", "--shared", "--no-checkout", "--quiet", "--template=", "--no-recurse-submodules", "--origin=origin", "--", m.Dir, dir},
		{"-C", dir, "config", "remote.origin.url", m.Remote.Name()},
		{"-C", dir, "update-ref", "refs/heads/" + branch, commit},
		{"-C", dir, "symbolic-ref", "HEAD", "refs/heads/" + branch},
		{"-C", dir, "reset", "--quiet", "--hard"},
	} {
		if _, err := runGit(ctx, m.Git, gitEnvironment(), append(slices.Clone(guarded), args...)...); err != nil {
			return err
		}
	}
	return nil
}
