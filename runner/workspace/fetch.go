package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// Fetch makes sure that a commit is here, beside the checkout. alone says that it
// has nothing to do with what is here.
func (w *Workspace) Fetch(ctx context.Context, from remote.Remote, sha string, alone bool) error {
	if w.checkout.HasCommit(sha) {
		return nil
	}
	options := remote.FetchOptions{Commit: sha, Shallow: w.checkout.ShallowCommits(), Alone: alone}
	if w.base.SHA != "" {
		options.Have = []string{w.base.SHA}
	}
	err := Patiently(ctx, func() error {
		return remote.Fetch(ctx, from, options, func(pack io.Reader, shallow []string) error {
			return w.checkout.AddPack(ctx, pack, shallow)
		})
	})
	if err != nil {
		return RemoteFailure(fmt.Sprintf("The commit %s cannot be fetched from %s", gitops.Short(sha), from.Name()), err)
	}
	return nil
}

const longestPause = 4 * time.Second

// Patiently does again what a git server could not be reached for: a push under
// a lease and a fetch can be done twice.
func Patiently(ctx context.Context, do func() error) error {
	for pause := time.Second; ; pause *= 2 {
		err := do()
		if !errors.Is(err, remote.ErrUnreachable) || pause > longestPause {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// RemoteFailure is the outcome that an error of a git server stands for.
func RemoteFailure(what string, err error) error {
	var ended *outcome.Stop
	if errors.As(err, &ended) { // by a signal or limits.time, whatever it was doing
		return err
	}
	if errors.As(err, new(*gitops.ObjectError)) { // of what was to be sent
		return err
	}
	var lease *remote.LeaseError
	var rejected *remote.RejectedError
	stop := func(o outcome.Outcome, reason string) error {
		return outcome.Stopf(o, reason, "%s: %s.", what, outcome.Trimmed(err)).Because(err)
	}
	switch {
	case errors.As(err, &lease):
		return stop(outcome.Conflict, "branch_moved")
	case errors.As(err, &rejected):
		return stop(outcome.ForgeFailed, "push_refused")
	case errors.Is(err, remote.ErrAuth):
		return stop(outcome.ForgeFailed, "bad_token")
	case errors.Is(err, remote.ErrNotFound):
		return stop(outcome.ForgeFailed, "not_found")
	case errors.Is(err, remote.ErrUnreachable):
		return stop(outcome.ForgeFailed, "unavailable")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // not of a connection
		return err
	}
	return stop(outcome.ForgeFailed, "git")
}
