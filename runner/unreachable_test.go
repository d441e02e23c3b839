package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// mute is a server that takes a request and never answers. asked tells of each.
func mute(t *testing.T) (url string, asked chan struct{}) {
	t.Helper()
	asked, ended := make(chan struct{}, 8), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-ended
	}))
	t.Cleanup(func() {
		close(ended)
		server.Close()
	})
	return server.URL, asked
}

// timedOut is what a connection says on which no answer came in time. To
// errors.Is it is context.DeadlineExceeded, though nothing of the run has ended.
func timedOut(t *testing.T) error {
	t.Helper()
	url, _ := mute(t)
	client := http.Client{Transport: &http.Transport{ResponseHeaderTimeout: time.Millisecond}}
	answer, err := client.Get(url)
	if err == nil {
		answer.Body.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want a time-out", err)
	}
	return err
}

func TestAServerThatDoesNotAnswerIsUnavailable(t *testing.T) {
	err := timedOut(t)
	for name, failed := range map[string]error{
		"API": forgeFailure("The issue cannot be read", &forge.Error{Kind: forge.Unavailable, Message: "no connection", Err: err}),
		"git": remoteFailure("The repository cannot be cloned", fmt.Errorf("clone: %w: %w", remote.ErrUnreachable, err)),
	} {
		if end := outcome.Of(t.Context(), failed); end.Outcome != outcome.ForgeFailed || end.Reason != "unavailable" {
			t.Errorf("%s: %v", name, end)
		}
	}
}

// What ends a run while it waits for a git server is told as what it is.
func TestASignalWhileAGitServerIsWaitedFor(t *testing.T) {
	url, asked := mute(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		<-asked
		cancel(outcome.Stopf(outcome.Cancelled, "sigterm", "Cancelled."))
	}()
	_, err := remote.Clone(ctx, remote.Remote{URL: url + "/octo/widgets.git"}, remote.CloneOptions{Dir: filepath.Join(t.TempDir(), "clone")})
	if end := outcome.Of(ctx, remoteFailure("The repository cannot be cloned", err)); end.Outcome != outcome.Cancelled {
		t.Errorf("ended as %v", end)
	}
}
