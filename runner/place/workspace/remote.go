package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// CloneOptions describes a clone in the run directory.
type CloneOptions struct {
	Options         // Dir is the user's folder; no git program is taken from there
	From            remote.Remote
	Repository      string // for messages
	Branch, StartOn string // Branch is checked out; StartOn is then set as the base
}

// Clone clones a repository into the run directory and opens it.
func Clone(ctx context.Context, rec *record.Record, o CloneOptions) (*Workspace, error) {
	dir := rec.Join(record.CheckoutFolder)
	if _, err := gitops.CheckGit(ctx, FindGit(o.Path, o.Dir)); err != nil {
		return nil, CheckoutFailure(err)
	}
	o.From.Path = SearchPath(o.Path, o.Dir)
	if err := remote.Clone(ctx, o.From, remote.CloneOptions{Dir: dir, Branch: o.Branch}); err != nil {
		return nil, RemoteFailure("The repository "+o.Repository+" cannot be cloned", err)
	}
	w, err := Open(ctx, rec, Options{Dir: dir, Path: o.Path, Forge: o.Forge, Cloned: true, OpenFilter: o.OpenFilter, Fresh: true})
	if err != nil {
		return nil, CheckoutFailure(err)
	}
	w.cloneSource = &o.From
	if err := w.StartOn(ctx, o.StartOn); err != nil {
		return nil, errors.Join(CheckoutFailure(err), w.Close())
	}
	return w, nil
}

// fillLFS fetches the base's Git LFS contents into the run's own clone. Missing contents stay
// pointer files, with a warning.
func (w *Workspace) fillLFS(ctx context.Context) error {
	if w.cloneSource == nil {
		return nil
	}
	err := w.checkout.FillLFS(ctx, DownloadLFS(*w.cloneSource))
	if missing, is := errors.AsType[*gitops.MissingLFSError](err); is {
		w.rec.Warn("lfs_missing", "%v.", missing)
		return nil
	}
	return err
}

// DownloadLFS returns a function that fetches the contents of Git LFS files from a remote.
func DownloadLFS(from remote.Remote) gitops.FetchLFS {
	return func(ctx context.Context, branch, folder string, list []gitops.LFSFile) error {
		return RetryUnreachable(ctx, func() error { return remote.DownloadLFS(ctx, from, branch, folder, list) })
	}
}

// Fetch fetches the commit of the options unless it exists. It sets their Have to the base.
func (w *Workspace) Fetch(ctx context.Context, from remote.Remote, o remote.FetchOptions) error {
	if w.checkout.HasCommit(o.Commit) {
		return nil
	}
	into, err := w.Store()
	if err != nil {
		return err
	}
	o.Have = w.base.SHA
	err = RetryUnreachable(ctx, func() error { return remote.Fetch(ctx, from, into, o) })
	w.checkout.ReloadObjects()
	if err != nil {
		return RemoteFailure(fmt.Sprintf("The commit %s cannot be fetched from %s", clip.SHA(o.Commit), from.Name()), err)
	}
	return nil
}

// Store returns git's folder with the objects of the run and the fetched ones.
func (w *Workspace) Store() (remote.Store, error) {
	dir, borrowed, err := w.checkout.Private()
	return remote.Store{Dir: dir, Borrowed: borrowed}, err
}

const maxPause = 4 * time.Second // the longest pause between two tries; the pauses are 1, 2 and 4 seconds

// RetryUnreachable retries do while a git server is unreachable, up to three times. Fetches, and
// pushes with a lease, can safely be repeated.
func RetryUnreachable(ctx context.Context, do func() error) error {
	for pause := time.Second; ; pause *= 2 {
		err := do()
		if !errors.Is(err, remote.ErrUnreachable) || pause > maxPause {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// RemoteFailure returns the outcome for an error of a git server. It returns the end of the run,
// errors of local objects and the end of a context unchanged.
func RemoteFailure(what string, err error) error {
	var ended *outcome.Stop
	if errors.As(err, &ended) { // a signal or limits.time ended the run; that is no fault of the server
		return err
	}
	if errors.As(err, new(*gitops.ObjectError)) { // a damaged local object, not the server's fault
		return err
	}
	// The order matters: the first match decides.
	for _, known := range []struct {
		is      bool
		outcome outcome.Outcome
		reason  string
	}{
		{errors.As(err, new(*remote.LeaseError)), outcome.Conflict, "branch_moved"},
		{errors.As(err, new(*remote.LFSError)), outcome.ForgeFailed, "lfs"},
		{errors.As(err, new(*remote.RejectedError)), outcome.ForgeFailed, "push_refused"},
		{errors.Is(err, remote.ErrAuth), outcome.ForgeFailed, "bad_token"},
		{errors.Is(err, remote.ErrForbidden), outcome.ForgeFailed, "forbidden"},
		{errors.Is(err, remote.ErrNotFound), outcome.ForgeFailed, "not_found"},
		{errors.Is(err, remote.ErrUnreachable), outcome.ForgeFailed, "unavailable"},
	} {
		if known.is {
			return outcome.Stopf(known.outcome, known.reason, "%s: %s.", what, outcome.WithoutFullStop(err)).Because(err)
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) { // the run was cancelled; a connection's timeout is ErrUnreachable
		return err
	}
	return outcome.Stopf(outcome.ForgeFailed, "git", "%s: %s.", what, outcome.WithoutFullStop(err)).Because(err)
}
