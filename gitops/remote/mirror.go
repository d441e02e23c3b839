package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Mirror is a local repository from which checkouts are made. They use its objects without a copy,
// so the mirror must outlive them.
type Mirror struct {
	Remote Remote
	Dir    string // its git folder
}

// git runs git without the user's configuration, so no filter runs on the repository's files.
func (m Mirror) git(ctx context.Context, args ...string) error {
	env := append(environmentOf(safeSettings), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null")
	_, _, err := runGit(ctx, m.Remote.Path, "", env, args...)
	return err
}

// CheckOut checks out a commit of the mirror, on a new branch, into the new folder dir. The
// checkout's origin is the remote. If it fails, dir does not exist.
func (m Mirror) CheckOut(ctx context.Context, dir, branch, commit string) error {
	if err := m.checkOut(ctx, dir, branch, commit); err != nil {
		return errors.Join(fmt.Errorf("check %s out: %w", m.Remote.Name(), err), os.RemoveAll(dir))
	}
	return nil
}

// checkOut is CheckOut without cleaning up. It lets git do what depends on the file system, and writes the
// references and settings itself, because a git process for each would take as long as the checkout.
func (m Mirror) checkOut(ctx context.Context, dir, branch, commit string) error {
	if err := m.git(ctx, "init", "--quiet", "--template=", "--", dir); err != nil {
		return err
	}
	if err := m.shareObjects(dir, branch, commit); err != nil {
		return err
	}
	return m.git(ctx, "-C", dir, "reset", "--quiet", "--hard")
}

// shareObjects sets up an empty repository that borrows the mirror's objects. The mirror's branches
// become branches of origin. It also gets the mirror's tags, and a branch at commit.
func (m Mirror) shareObjects(dir, branch, commit string) error {
	mirror, storage := storageOf(m.Dir), storageOf(filepath.Join(dir, ".git"))
	if err := m.shareRefs(mirror, storage); err != nil {
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

// shareRefs writes the mirror's references to one packed-refs file, with branches as branches of
// origin.
func (m Mirror) shareRefs(mirror, to *filesystem.Storage) error {
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

// storageOf returns go-git's storage for a git folder.
func storageOf(gitDir string) *filesystem.Storage {
	return filesystem.NewStorage(osfs.New(gitDir, osfs.WithBoundOS()), cache.NewObjectLRUDefault())
}
