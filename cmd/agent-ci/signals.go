package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/agent-ci/agent-ci/runner/outcome"
)

// untilSignal ends ctx with the outcome cancelled at the first SIGINT or
// SIGTERM. The second one ends the process at once, as without a handler.
func untilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	ended, quit := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(cancelled(s))
		case <-quit:
		}
	}()
	return ctx, func() {
		close(quit)
		<-ended
		signal.Stop(signals)
		cancel(nil)
	}
}

func cancelled(s os.Signal) *outcome.Stop {
	reason := "sigint"
	if s == syscall.SIGTERM {
		reason = "sigterm"
	}
	return outcome.Stopf(outcome.Cancelled, reason, "The run was cancelled (%s); run again to start over.", s)
}
