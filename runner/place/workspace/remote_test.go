package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
)

// at is a repository at a URL or path.
func at(url string) remote.Remote { return remote.Remote{URL: url, Path: os.Getenv("PATH")} }

func TestFetchesMissingCommit(t *testing.T) {
	repo := gittest.Seeded(t)
	w := opened(t, must.Get(cloneOf(repo.Dir, t.TempDir()))(t))
	repo.Write("README", "later\n")
	repo.Commit("later")
	tip := repo.Git("rev-parse", "HEAD")
	must.Do(t, w.Fetch(t.Context(), at("/nowhere"), remote.FetchOptions{Commit: w.Base().SHA})) // which asks nobody
	if w.checkout.HasCommit(tip) {
		t.Fatal("it is here already")
	}
	must.Do(t, w.Fetch(t.Context(), at(repo.Dir), remote.FetchOptions{Commit: tip}))
	must.Same(t, true, w.checkout.HasCommit(tip), "it did not come")
	if got := w.Base(); got.SHA == tip {
		t.Error("the base moved")
	}
	outcometest.Want(t, w.Fetch(t.Context(), at(repo.Dir), remote.FetchOptions{Commit: strings.Repeat("12", 20), WithoutHistory: true}), "git", "121212121212", repo.Dir)
	outcometest.Want(t, w.Fetch(t.Context(), at(repo.Dir+"-gone"), remote.FetchOptions{Commit: strings.Repeat("12", 20), WithoutHistory: true}), "not_found")
}

func cloneOf(dir, into string) (string, error) {
	into = filepath.Join(into, "clone")
	return into, exec.Command("git", "clone", "--quiet", dir, into).Run()
}

func TestClassifiesGitServerFailures(t *testing.T) {
	signal := outcome.Stopf(outcome.Cancelled, "sigterm", "Cancelled.")
	object := &gitops.ObjectError{}
	for name, test := range map[string]struct {
		err     error
		outcome outcome.Outcome
		reason  string
	}{
		"lease":     {&remote.LeaseError{}, outcome.Conflict, "branch_moved"},
		"refused":   {&remote.RejectedError{}, outcome.ForgeFailed, "push_refused"},
		"token":     {remote.ErrAuth, outcome.ForgeFailed, "bad_token"},
		"forbidden": {remote.ErrForbidden, outcome.ForgeFailed, "forbidden"},
		"missing":   {remote.ErrNotFound, outcome.ForgeFailed, "not_found"},
		"away":      {remote.ErrUnreachable, outcome.ForgeFailed, "unavailable"},
		"timed out": {fmt.Errorf("%w: %w", remote.ErrUnreachable, context.DeadlineExceeded), outcome.ForgeFailed, "unavailable"},
		"other":     {fs.ErrClosed, outcome.ForgeFailed, "git"},
		"a signal":  {fmt.Errorf("push: %w", signal), outcome.Cancelled, "sigterm"},
	} {
		err := RemoteFailure("It fails", fmt.Errorf("push: %w", test.err))
		if end := outcome.ForError(t.Context(), err); end.Outcome != test.outcome || end.Reason != test.reason || !errors.Is(err, test.err) {
			t.Errorf("%s: %v", name, end)
		}
	}
	for _, told := range []error{object, context.Canceled, context.DeadlineExceeded} { // by who knows more of them
		if err := RemoteFailure("It fails", told); !errors.Is(err, told) || errors.As(err, new(*outcome.Stop)) {
			t.Errorf("%v became %v", told, err)
		}
	}
}

// What ends a run while it waits for a git server is told as what it is.
func TestSignalEndsWaitForGitServer(t *testing.T) {
	asked, ended := make(chan struct{}, 8), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-ended
	}))
	t.Cleanup(func() { close(ended); server.Close() })
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		<-asked
		cancel(outcome.Stopf(outcome.Cancelled, "sigterm", "Cancelled."))
	}()
	_, err := Clone(ctx, recordtest.New(t, "20260101T000000Z-00000000"), CloneOptions{Options: Options{Path: os.Getenv("PATH")}, From: at(server.URL + "/octo/widgets.git")})
	must.Same(t, outcome.Cancelled, outcome.ForError(ctx, err).Outcome, "ended as")
}

func TestRetriesOnlyUnreachableServer(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for want, ctx := range map[error]context.Context{remote.ErrAuth: t.Context(), remote.ErrUnreachable: ended} {
		asked := 0
		must.Is(t, want, RetryUnreachable(ctx, func() error { asked++; return want }), asked)
		must.Same(t, 1, asked)
	}
}
