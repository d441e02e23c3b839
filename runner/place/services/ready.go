package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/forward"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// awaitReadyAndInit waits for the service, runs its init commands and forwards connections to it.
func (s *service) awaitReadyAndInit(ctx context.Context) error {
	defer s.record.BeginStep("", "start of the service "+s.name)()
	if err := s.awaitReady(ctx); err != nil {
		return err
	}
	for _, run := range s.Init {
		if err := s.runInit(ctx, run); err != nil {
			return err
		}
	}
	if err := s.awaitPendingExit(ctx); err != nil {
		return err
	}
	if s.hasExited() { // it may have exited while init ran
		return s.exitedBeforeReady()
	}
	s.forwarder = forward.Start(s.listener, s.connect) // from now on, commands reach the service
	if err := s.recordState(transcript.ServiceReady, "", nil); err != nil {
		return err
	}
	if s.process != nil {
		s.watch.Go(s.watchForExit)
	}
	return nil
}

// awaitPendingExit runs an empty command, so that an exit of the service during its init commands is known
// afterwards: the sandbox reports exits in their order.
func (s *service) awaitPendingExit(ctx context.Context) error {
	if len(s.Init) == 0 || s.process == nil {
		return nil
	}
	if _, err := s.box.Run(ctx, s.newCommand(":", s.log)); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// exitedBeforeReady returns the outcome for a service that exited before it was ready.
func (s *service) exitedBeforeReady() error {
	return s.notReadyStop(transcript.ServiceNotReady, fmt.Sprintf("it ended with exit status %d before it was ready", s.exitCode()))
}

// maxReadyBytes is how many bytes of the output of ready.run an error shows.
const maxReadyBytes = 1 << 10

// The pauses between two tests whether a service is ready.
const (
	firstPause = 20 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// awaitReady waits until the service is ready. It fails after an exit, and after ready.timeout.
func (s *service) awaitReady(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, time.Duration(s.Ready.Timeout))
	defer cancel()
	var last error
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		tried := s.tryReady(limited)
		if tried == nil {
			return nil
		}
		wasCutOff := errors.Is(tried, context.DeadlineExceeded) // which says nothing about the service
		if last == nil || !wasCutOff {
			last = tried
		}
		select {
		case <-s.exited():
			return s.exitedBeforeReady()
		case <-time.After(pause):
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return s.notReadyStop(transcript.ServiceNotReady, fmt.Sprintf("it is not ready after %s (%v)", s.Ready.Timeout, last))
		}
	}
}

// tryReady returns why the service is not ready, or nil if it is ready.
func (s *service) tryReady(ctx context.Context) error {
	if s.Ready.Run == "" {
		conn, err := s.connect(ctx)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	output := &clip.Head{Limit: maxReadyBytes}
	out := record.NewLogWriter(output, record.ServiceLogBytes, s.record.Redact)
	status, err := s.box.Run(ctx, s.newCommand(s.Ready.Run, out))
	out.Flush()
	switch {
	case err != nil:
		return err
	case status.ExitCode != 0:
		return fmt.Errorf("ready.run ended with exit status %d: %s", status.ExitCode, output.String())
	}
	return nil
}

// runInit runs an init command in the service's sandbox. If it fails, the service is unusable.
func (s *service) runInit(ctx context.Context, run string) error {
	limited, cancel := context.WithTimeout(ctx, time.Duration(s.Ready.Timeout))
	defer cancel()
	fmt.Fprintf(s.log, "agent-ci: init: %s\n", run)
	status, err := s.box.Run(limited, s.newCommand(run, s.log))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return s.notReadyStop(transcript.ServiceInitFailed, fmt.Sprintf("its init command %q timed out after %s", run, s.Ready.Timeout))
	case err != nil:
		return s.notReadyStop(transcript.ServiceInitFailed, fmt.Sprintf("its init command %q could not be run: %v", run, err))
	case status.ExitCode != 0:
		return s.notReadyStop(transcript.ServiceInitFailed, fmt.Sprintf("its init command %q ended with exit status %d", run, status.ExitCode))
	}
	return nil
}

// notReadyStop stops an unusable service and records its state. It returns the outcome of the run, with the
// last lines of the service's log.
func (s *service) notReadyStop(state, why string) error {
	var exitCode *int
	if s.hasExited() {
		exitCode = new(s.exitCode())
	}
	if s.process != nil {
		s.process.Kill()
		_, _ = s.process.Wait()
	}
	why = s.joinLines(strings.Split(why, "\n"), " ")
	if lines := s.lastLines(); lines != "" {
		why += "; its last lines: " + lines
	}
	if err := s.recordState(state, why, exitCode); err != nil {
		return err
	}
	where := "what answers at " + s.At
	if s.logName != "" {
		where = s.record.Join(s.logName)
	}
	if state == transcript.ServiceInitFailed {
		return outcome.Stopf(outcome.InvalidInput, "service_not_ready", "The service %s could not be prepared: %s; see %s.", s.name, why, where)
	}
	return outcome.Stopf(outcome.InvalidInput, "service_not_ready", "The service %s did not become ready: %s; see %s.", s.name, why, where)
}

// lastLines returns the last lines of the service's log, joined to one, or "" if there are none.
func (s *service) lastLines() string {
	if s.log == nil {
		return ""
	}
	s.log.Flush()
	tail, err := s.record.LastLines(s.logName)
	if err != nil {
		return ""
	}
	const most = 5
	isHeading := func(line string) bool { return strings.HasPrefix(line, "agent-ci: "+s.name+" for ") } // by openLog
	all := slices.DeleteFunc(strings.Split(tail, "\n"), isHeading)
	return s.joinLines(all[max(0, len(all)-most):], " / ")
}

// joinLines joins lines into one, without invisible or terminal characters. It redacts secrets last,
// because such characters may have split them.
func (s *service) joinLines(lines []string, between string) string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		lines[i] = strings.TrimSpace(markdown.Screen(line))
	}
	return s.record.Redact(strings.TrimSpace(strings.Join(lines, between)))
}
