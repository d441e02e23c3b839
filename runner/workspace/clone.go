package workspace

import (
	"context"
	"errors"

	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/record"
)

// CloneOptions say what is cloned into the run directory.
type CloneOptions struct {
	Options         // Dir is the user's folder, in which no git program is looked for
	From            remote.Remote
	Repository      string // for a person
	Branch, StartOn string // what is checked out, and the base that is set after that
}

// Clone clones a repository into the run directory and opens it.
func Clone(ctx context.Context, rec *record.Record, o CloneOptions) (*Workspace, error) {
	dir := rec.Join(record.CheckoutFolder)
	_, err := remote.Clone(ctx, o.From, remote.CloneOptions{Dir: dir, Branch: o.Branch, Git: FindGit(o.Path, o.Dir)})
	if err != nil {
		return nil, RemoteFailure("The repository "+o.Repository+" cannot be cloned", err)
	}
	w, err := Open(ctx, rec, Options{Dir: dir, Path: o.Path, Cloned: true})
	if err != nil {
		return nil, CheckoutFailure(err)
	}
	if err := w.StartOn(ctx, o.StartOn); err != nil {
		return nil, errors.Join(CheckoutFailure(err), w.Close())
	}
	return w, nil
}
