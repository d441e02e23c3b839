package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

type CloneOptions struct {
	Dir    string // must not exist, or be empty
	Branch string // "" means the remote's HEAD
	// Git is the path of a git program, or "". Without it go-git clones: line
	// endings and filters (LFS) are not applied to the work tree then.
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
