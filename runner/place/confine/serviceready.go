package confine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// getReady waits until the service is ready, runs the commands of init, and has commands
// find it.
func (one *service) getReady(ctx context.Context) error {
	defer one.boxes.Record.Begins("", "start of the service "+one.name)()
	if err := one.awaitReady(ctx); err != nil {
		return err
	}
	for _, run := range one.Init {
		if err := one.runInit(ctx, run); err != nil {
			return err
		}
	}
	if err := one.settle(ctx); err != nil {
		return err
	}
	if one.hasEnded() { // while its init ran
		return one.endedEarly()
	}
	one.admit()
	if err := one.tell(transcript.ServiceReady, "", false); err != nil {
		return err
	}
	if one.process != nil {
		one.watch.Go(one.watchEnd)
	}
	return nil
}

// settle waits until it is known whether the service ended before its init did: the sandbox reports
// ends in order, so the end of one more command comes after the service's.
func (one *service) settle(ctx context.Context) error {
	if len(one.Init) == 0 || one.process == nil {
		return nil
	}
	if _, err := one.box.Run(ctx, one.command(":", one.log)); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (one *service) endedEarly() error {
	return one.notReady(transcript.ServiceNotReady, fmt.Sprintf("it ended with exit status %d before it was ready", one.exitCode()))
}

// The pauses between the tries whether a service is ready.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

func (one *service) awaitReady(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, time.Duration(one.Ready.Timeout))
	defer cancel()
	var last error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		tried := one.tryReady(limited)
		if tried == nil {
			return nil
		}
		if last == nil || !errors.Is(tried, context.DeadlineExceeded) { // the last try may only have run out of time
			last = tried
		}
		select {
		case <-one.ended():
			return one.endedEarly()
		case <-time.After(pause):
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return one.notReady(transcript.ServiceNotReady, fmt.Sprintf("it is not ready after %s (%v)", one.Ready.Timeout, last))
		}
	}
}

// tryReady returns the reason against readiness.
func (one *service) tryReady(ctx context.Context) error {
	if one.Ready.Run == "" {
		conn, err := one.connectTo(ctx, one.Port)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	said := &clip.Head{Most: mostWords}
	out := record.NewLogWriter(said, record.ServiceLog, one.boxes.Record.Redact)
	status, err := one.box.Run(ctx, one.command(one.Ready.Run, out))
	out.Flush()
	switch {
	case err != nil:
		return err
	case status.ExitCode != 0:
		return fmt.Errorf("ready.run ended with exit status %d: %s", status.ExitCode, said.String())
	}
	return nil
}

func (one *service) runInit(ctx context.Context, run string) error {
	limited, cancel := context.WithTimeout(ctx, time.Duration(one.Ready.Timeout))
	defer cancel()
	fmt.Fprintf(one.log, "agent-ci: init: %s\n", run)
	status, err := one.box.Run(limited, one.command(run, one.log))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return one.notReady(transcript.ServiceInitFailed, fmt.Sprintf("its init command %q timed out after %s", run, one.Ready.Timeout))
	case err != nil:
		return one.notReady(transcript.ServiceInitFailed, fmt.Sprintf("its init command %q could not be run: %v", run, err))
	case status.ExitCode != 0:
		return one.notReady(transcript.ServiceInitFailed, fmt.Sprintf("its init command %q ended with exit status %d", run, status.ExitCode))
	}
	return nil
}

// notReady returns the outcome for an unusable service, with its last lines.
func (one *service) notReady(state, why string) error {
	ended := one.hasEnded()
	if one.process != nil {
		one.process.Kill()
		_, _ = one.process.Wait()
	}
	why = one.oneLine(strings.Split(why, "\n"), " ")
	if lines := one.lastLines(); lines != "" {
		why += "; its last lines: " + lines
	}
	if err := one.tell(state, why, ended); err != nil {
		return err
	}
	where := "what answers at " + one.At
	if one.logName != "" {
		where = one.boxes.Record.Join(one.logName)
	}
	if state == transcript.ServiceInitFailed {
		return outcome.Stopf(outcome.InvalidInput, "service_not_ready", "The service %s could not be prepared: %s; see %s.", one.name, why, where)
	}
	return outcome.Stopf(outcome.InvalidInput, "service_not_ready", "The service %s did not become ready: %s; see %s.", one.name, why, where)
}

// lastLines are the last lines of the log as one, after the end of the service; empty for
// none.
func (one *service) lastLines() string {
	if one.log == nil {
		return ""
	}
	one.log.Flush()
	tail, err := one.boxes.Record.LastLines(one.logName)
	if err != nil {
		return ""
	}
	const most = 5
	all := slices.DeleteFunc(strings.Split(tail, "\n"), func(line string) bool { return strings.HasPrefix(line, "agent-ci: "+one.name+" for ") })
	return one.oneLine(all[max(0, len(all)-most):], " / ")
}

// oneLine joins lines without invisible or terminal characters. It removes secrets last, since
// these may have separated their characters.
func (one *service) oneLine(lines []string, between string) string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		lines[i] = strings.TrimSpace(markdown.Screen(line))
	}
	return one.boxes.Record.Redact(strings.TrimSpace(strings.Join(lines, between)))
}
