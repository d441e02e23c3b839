package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// UntilSignal returns a context that the first SIGINT, SIGTERM, SIGHUP or SIGQUIT ends, with the outcome
// cancelled. The next signal ends the process at once, as without a handler.
//
// Writing to a closed pipe returns an error and does not end the process. So a run continues if its
// reader exits.
func UntilSignal(ctx context.Context) (context.Context, func()) {
	ctx, _, stop := UntilSignals(ctx, 1)
	return ctx, stop
}

// UntilSignals is UntilSignal with a second context, forced. With maxSignals 2, the second signal ends
// forced. A signal after the last of maxSignals ends the process.
func UntilSignals(ctx context.Context, maxSignals int) (_, forced context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	forced, cancelForced := context.WithCancel(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, maxSignals)
	signal.Notify(signals, UnlessNohup(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // not ignored: commands would inherit that
	ended, quit := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer signal.Stop(signals)
		for n := range maxSignals {
			select {
			case s := <-signals:
				cancel(cancelledBySignal(s)) // has no effect after the first signal
				if n > 0 {
					cancelForced()
				}
			case <-quit:
				return
			}
		}
	}()
	return ctx, forced, func() {
		close(quit)
		<-ended
		cancel(nil)
		cancelForced()
	}
}

// UnlessNohup returns the signals, without SIGHUP if this process ignores it from its start. nohup(1) starts
// programs so, to outlive their terminal.
func UnlessNohup(signals ...os.Signal) []os.Signal {
	return slices.DeleteFunc(signals, func(s os.Signal) bool { return s == syscall.SIGHUP && signal.Ignored(s) })
}

// signalReasons maps signals to reasons of the outcome cancelled.
var signalReasons = map[os.Signal]string{syscall.SIGINT: "sigint", syscall.SIGTERM: "sigterm", syscall.SIGHUP: "sighup", syscall.SIGQUIT: "sigquit"}

// cancelledBySignal returns the outcome of a run that a signal ended.
func cancelledBySignal(s os.Signal) *outcome.Stop {
	return outcome.Stopf(outcome.Cancelled, signalReasons[s], "The run was cancelled (%s); run again to start over.", s)
}

// CancellableInput returns a reader of input whose reads end with ctx. A plain read of an open pipe blocks,
// so a signal could not end the process.
func CancellableInput(ctx context.Context, input io.Reader) io.Reader {
	if file, ok := input.(*os.File); ok {
		return waitingInput{ctx, file}
	}
	return input
}

// waitingInput is a file whose Read waits for input only until ctx ends.
type waitingInput struct {
	ctx  context.Context
	file *os.File
}

func (w waitingInput) Read(p []byte) (int, error) {
	const pollTime = 100 // milliseconds between checks of ctx
	for w.ctx.Err() == nil {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(w.file.Fd()), Events: unix.POLLIN}}, pollTime)
		cannotPoll := err != nil && !errors.Is(err, unix.EINTR)
		if ready > 0 || cannotPoll {
			return w.file.Read(p)
		}
	}
	return 0, context.Cause(w.ctx)
}
