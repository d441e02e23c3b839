package gitops

import (
	"context"
	"errors"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/trees"
)

// ReadTip is Tip for a bare or plain repository at a local path. It only reads files, and runs
// nothing that is configured in that repository.
func ReadTip(ctx context.Context, path, branch string) (info *forge.Commit, err error) {
	l, store, err := openElsewhere(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return trees.TipOf(ctx, l, store, branch)
}

// HeadOf returns the branch of HEAD in a bare or plain repository. It returns "" for a detached
// HEAD, or if there is no commit.
func HeadOf(path string) (branch string, err error) {
	l, err := repository.LayoutAt(path)
	if err != nil {
		return "", err
	}
	head, _, err := l.Head()
	if errors.Is(err, repository.ErrNoRef) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	name, isBranch := strings.CutPrefix(head, "ref: refs/heads/")
	if !isBranch {
		return "", nil
	}
	return name, nil
}

// openElsewhere opens a bare or plain repository for reading. The caller closes the store.
func openElsewhere(path string) (l repository.Layout, opened *objects.Store, err error) {
	l, err = repository.LayoutAt(path)
	if err != nil {
		return l, nil, err
	}
	folders, lost, err := repository.ObjectFolders(l.CommonDir)
	if err != nil {
		return l, nil, err
	}
	store := objects.Open("", folders...)
	store.Lost = lost
	return l, store, nil
}

// Holds reports whether a local repository contains a commit. It only reads files, and runs nothing
// that is configured in that repository.
func Holds(path, sha string) (_ bool, err error) {
	_, store, err := openElsewhere(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, err = store.Commit(plumbing.NewHash(sha))
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, err
}
