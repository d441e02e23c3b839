package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

type CloneOptions struct {
	Dir    string // must not exist, or be empty
	Branch string // "" means the remote's HEAD
	// Git is the path of a git program, or "". It writes no files, for which it would run
	// filters. Without it go-git clones: line endings and filters are not applied to the work
	// tree then.
	Git string
}

// Clone clones a remote, checks the branch out and returns its commit. The
// token is not written anywhere, and no hook or template takes part. On an
// error nothing is left in Dir.
func Clone(ctx context.Context, r Remote, o CloneOptions) (sha string, err error) {
	made, err := makeEmpty(o.Dir)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			takeBack(o.Dir, made)
		}
	}()
	o.Dir, err = filepath.Abs(o.Dir)
	if err != nil {
		return "", fmt.Errorf("clone into %s: %w", o.Dir, err)
	}
	if o.Git != "" {
		return cloneByGit(ctx, r, o)
	}
	return cloneByGoGit(ctx, r, o)
}

func makeEmpty(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(dir, 0o777)
		made = err == nil
	}
	if err != nil {
		return made, fmt.Errorf("clone: %w", err)
	}
	if len(entries) > 0 {
		return false, fmt.Errorf("clone: %s is not empty; name an empty or a new folder", dir)
	}
	return made, nil
}

// takeBack leaves dir as makeEmpty found it.
func takeBack(dir string, made bool) {
	if made {
		_ = os.RemoveAll(dir)
		return
	}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		_ = os.RemoveAll(filepath.Join(dir, entry.Name()))
	}
}

// wanted is the branch to check out, and its commit, of what a remote has.
func (r Remote) wanted(advertised *packp.AdvRefs, branch string) (plumbing.ReferenceName, plumbing.Hash, error) {
	name := plumbing.NewBranchReferenceName(branch)
	if branch == "" {
		name = headBranch(advertised)
	}
	commit, found := advertised.References[name.String()]
	if found {
		return name, commit, nil
	}
	doing, what := "clone "+r.Name(), "the branch "+branch
	if branch == "" {
		what = "the branch of its HEAD"
	}
	return "", plumbing.ZeroHash, &failure{doing: doing, kind: ErrNotFound, detail: what, remedy: "name a branch that is there"}
}

func headBranch(advertised *packp.AdvRefs) plumbing.ReferenceName {
	refs, err := advertised.AllReferences()
	if err != nil {
		return ""
	}
	head, err := refs.Reference(plumbing.HEAD)
	if err != nil {
		return ""
	}
	return head.Target()
}

// cloneByGoGit clones over the sessions of this package: go-git's own Clone
// takes its transports from a registry of the whole process.
func cloneByGoGit(ctx context.Context, r Remote, o CloneOptions) (string, error) {
	session, advertised, err := r.advertised(ctx, "clone")
	if err != nil {
		return "", err
	}
	defer session.Close()
	branch, commit, err := r.wanted(advertised, o.Branch)
	if err != nil {
		return "", err
	}
	c := &goGitClone{remote: r, options: o, advertised: advertised, branch: branch}
	if err := c.run(ctx, session); err != nil {
		return "", r.failed(ctx, "clone", err)
	}
	return commit.String(), nil
}

type goGitClone struct {
	remote     Remote
	options    CloneOptions
	advertised *packp.AdvRefs
	branch     plumbing.ReferenceName
	storage    *filesystem.Storage
	repository *git.Repository
}

func (c *goGitClone) run(ctx context.Context, session transport.UploadPackSession) error {
	if err := c.create(); err != nil {
		return fmt.Errorf("create the repository: %w", err)
	}
	if err := c.fetch(ctx, session); err != nil {
		return err
	}
	if err := c.writeRefs(); err != nil {
		return fmt.Errorf("write the branches: %w", err)
	}
	return c.checkOut()
}

// create binds the work tree to its folder, without which go-git spoils
// absolute symbolic links.
func (c *goGitClone) create() error {
	dotGit := osfs.New(filepath.Join(c.options.Dir, git.GitDirName), osfs.WithBoundOS())
	c.storage = filesystem.NewStorage(dotGit, cache.NewObjectLRUDefault())
	workTree := osfs.New(c.options.Dir, osfs.WithBoundOS())
	var err error
	c.repository, err = git.InitWithOptions(c.storage, workTree, git.InitOptions{DefaultBranch: c.branch})
	if err != nil {
		return err
	}
	settings, err := c.repository.Config()
	if err != nil {
		return err
	}
	settings.Remotes["origin"] = &config.RemoteConfig{
		Name: "origin", URLs: []string{c.url()}, Fetch: []config.RefSpec{"+refs/heads/*:refs/remotes/origin/*"},
	}
	short := c.branch.Short()
	settings.Branches[short] = &config.Branch{Name: short, Remote: "origin", Merge: c.branch}
	return c.repository.SetConfig(settings)
}

func (c *goGitClone) url() string {
	if path, local := c.remote.Local(); local {
		if absolute, err := filepath.Abs(path); err == nil {
			return absolute
		}
	}
	return c.remote.Name()
}

func (c *goGitClone) fetch(ctx context.Context, session transport.UploadPackSession) error {
	request := packp.NewUploadPackRequestFromCapabilities(c.advertised.Capabilities)
	for name, id := range c.advertised.References {
		if cloned(name) {
			request.Wants = append(request.Wants, id)
		}
	}
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	defer response.Close()
	pack := demultiplexed(response, request.Capabilities, &words{})
	if err := packfile.UpdateObjectStorage(c.storage, regularfile.Until(ctx, pack)); err != nil {
		return fmt.Errorf("read the objects: %w", err)
	}
	if len(response.Shallows) == 0 {
		return nil
	}
	return c.storage.SetShallow(response.Shallows)
}

func cloned(name string) bool {
	return strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")
}

func (c *goGitClone) writeRefs() error {
	for name, id := range c.advertised.References {
		if !cloned(name) {
			continue
		}
		local := plumbing.ReferenceName(name)
		if short, isBranch := strings.CutPrefix(name, "refs/heads/"); isBranch {
			local = plumbing.NewRemoteReferenceName("origin", short)
		}
		if err := c.storage.SetReference(plumbing.NewHashReference(local, id)); err != nil {
			return err
		}
	}
	tip := c.advertised.References[c.branch.String()]
	return c.storage.SetReference(plumbing.NewHashReference(c.branch, tip))
}

func (c *goGitClone) checkOut() error {
	workTree, err := c.repository.Worktree()
	if err != nil {
		return fmt.Errorf("open the work tree: %w", err)
	}
	if err := workTree.Checkout(&git.CheckoutOptions{Branch: c.branch, Force: true}); err != nil {
		return fmt.Errorf("check out %s: %w", c.branch.Short(), err)
	}
	return nil
}
