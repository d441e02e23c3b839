package runner

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// timedOut is what a connection says on which no answer came in time. To
// errors.Is it is context.DeadlineExceeded, though nothing of the run has ended.
func timedOut(t *testing.T) error {
	t.Helper()
	ended := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	t.Cleanup(func() {
		close(ended)
		mute.Close()
	})
	client := http.Client{Transport: &http.Transport{ResponseHeaderTimeout: time.Millisecond}}
	answer, err := client.Get(mute.URL)
	if err == nil {
		answer.Body.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want a time-out", err)
	}
	return err
}

func TestAForgeThatDoesNotAnswerIsUnavailable(t *testing.T) {
	failed := forgeFailure("The issue cannot be read", &forge.Error{Kind: forge.Unavailable, Message: "no connection", Err: timedOut(t)})
	if end := outcome.Of(t.Context(), failed); end.Outcome != outcome.ForgeFailed || end.Reason != "unavailable" {
		t.Error(end)
	}
}
