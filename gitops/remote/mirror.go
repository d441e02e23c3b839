package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem"
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

// checkOut has git do what depends on the file system; the rest are a few small files, for each of
// which a process of git would take as long as a small checkout.
func (m Mirror) checkOut(ctx context.Context, dir, branch, commit string) error {
	init := []string{"-c", "init.defaultRefFormat=files", "-c", "init.defaultObjectFormat=sha1", "init", "--quiet", "--template=", "--", dir}
	if _, err := runGit(ctx, m.Git, gitEnvironment(), append(slices.Clone(guarded), init...)...); err != nil {
		return err
	}
	if err := m.lend(dir, branch, commit); err != nil {
		return err
	}
	// Without configuration git starts no filter, which would run among the files of the repository.
	env := gitEnvironment("GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null")
	_, err := runGit(ctx, m.Git, env, append(slices.Clone(guarded), "-C", dir, "reset", "--quiet", "--hard")...)
	return err
}

// lend gives an empty repository the objects of the mirror, its branches as those of origin, its tags,
// and a branch at a commit.
func (m Mirror) lend(dir, branch, commit string) error {
	mirror, err := openRepository(m.Dir)
	if err != nil {
		return err
	}
	storage, err := openRepository(dir)
	if err != nil {
		return err
	}
	if err := m.lendRefs(mirror, storage); err != nil {
		return fmt.Errorf("write the branches: %w", err)
	}
	settings, err := storage.Config()
	if err != nil {
		return err
	}
	name := plumbing.NewBranchReferenceName(branch)
	settings.Remotes["origin"] = &config.RemoteConfig{Name: "origin", URLs: []string{m.Remote.Name()}, Fetch: []config.RefSpec{"+refs/heads/*:refs/remotes/origin/*"}}
	settings.Branches[branch] = &config.Branch{Name: branch, Remote: "origin", Merge: name}
	return errors.Join(
		storage.SetConfig(settings),
		storage.AddAlternate(m.Dir),
		storage.SetReference(plumbing.NewHashReference(name, plumbing.NewHash(commit))),
		storage.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, name)),
	)
}

// lendRefs writes them into one file, however many there are.
func (m Mirror) lendRefs(mirror, to *filesystem.Storage) error {
	refs, err := mirror.IterReferences()
	if err != nil {
		return err
	}
	var packed []string
	if err := refs.ForEach(func(ref *plumbing.Reference) error {
		name := ref.Name()
		switch {
		case name == plumbing.HEAD && ref.Target().IsBranch():
			return to.SetReference(plumbing.NewSymbolicReference(plumbing.NewRemoteHEADReferenceName("origin"), plumbing.NewRemoteReferenceName("origin", ref.Target().Short())))
		case name.IsBranch():
			name = plumbing.NewRemoteReferenceName("origin", name.Short())
		case !name.IsTag():
			return nil
		}
		packed = append(packed, fmt.Sprintf("%s %s\n", ref.Hash(), name))
		return nil
	}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to.Filesystem().Root(), "packed-refs"), []byte(strings.Join(packed, "")), 0o644)
}
