package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// Script is a command of the job: a line or more for the shell.
type Script struct {
	Name    string
	Run     string
	Dir     string
	Timeout time.Duration
	Log     string // below the run directory
	Place   Place
	// Pipefail has a pipe fail where any command of it does, not the last one alone.
	Pipefail bool
	// Fill puts into the overlay what is to be there before the command runs; nil for
	// nothing.
	Fill func(ctx context.Context, layer gitops.Layer) error
	// Left looks at the overlay after the command ended; nil for not at all.
	Left func(ctx context.Context, layer gitops.Layer) error
	// OwnFault says that a service which does not get ready is the doing of the tree that the
	// script judges, and makes it red.
	OwnFault bool
	// Hint returns what to say in the log below the output of a command that failed; empty for
	// nothing. It may be nil.
	Hint func(output string) string
}

// hintBytes is how much of the end of an output a hint is looked for in.
const hintBytes = 16 << 10

// brokenPipe is bash's status of a command that SIGPIPE has ended.
const brokenPipe = 128 + 13

func (s Script) argv() []string {
	if s.Pipefail {
		return []string{"bash", "-e", "-o", "pipefail", "-c", s.Run}
	}
	return []string{"bash", "-e", "-c", s.Run}
}

// Ran is how a script ended.
type Ran struct {
	ExitCode int
	TimedOut bool
	Seconds  float64
}

// Color is the end in a word: green, red, or timeout.
func (r Ran) Color() string {
	switch {
	case r.TimedOut:
		return "timeout"
	case r.ExitCode != 0:
		return "red"
	}
	return "green"
}

// RunScript runs a script to its end or its time limit. Its error is ctx's, or says
// that the command could not be run at all.
func (s *Sandboxes) RunScript(ctx context.Context, script Script) (Ran, error) {
	log, err := s.Record.Create(script.Log)
	if err != nil {
		return Ran{}, fmt.Errorf("make log of %s: %w", script.Name, err)
	}
	defer log.Close()
	out := record.NewLogWriter(log, record.CommandLog, s.Record.Redact)
	box, err := s.Open(ctx, script.Place)
	if err != nil {
		return Ran{}, err
	}
	if err := s.inOverlay(ctx, box, script.Place, script.Fill); err != nil {
		return Ran{}, errors.Join(err, box.Close())
	}
	services, err := s.Serve(ctx, box, script.Place, script.Dir)
	if err != nil {
		return s.unserved(ctx, script, log, err, box.Close())
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, script.Timeout)
	defer cancel()
	status, err := box.Run(limited, sandbox.Command{
		Argv: script.argv(), Dir: script.Dir, Env: s.envAt(s.Seen(script.Place)), Output: out,
	})
	ended := services.Ended()
	if err == nil {
		err = s.inOverlay(ctx, box, script.Place, script.Left)
	}
	if left := errors.Join(services.Close(), box.Close()); left != nil {
		s.Record.Warn("processes_left", "After %s: %v.", script.Name, left)
	}
	out.Flush()
	for _, words := range ended {
		fmt.Fprintf(log, "\nagent-ci: %s\n", words)
	}
	ran := Ran{ExitCode: status.ExitCode, Seconds: time.Since(began).Seconds()}
	switch {
	case ctx.Err() != nil:
		return ran, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		ran.TimedOut = true
		fmt.Fprintf(log, "\nagent-ci: timed out after %s\n", script.Timeout)
		return ran, nil
	case errors.Is(err, sandbox.ErrNotStarted):
		ran.ExitCode = 127
		fmt.Fprintf(log, "agent-ci: %v\n", err)
		return ran, nil
	case script.Pipefail && ran.ExitCode == brokenPipe:
		fmt.Fprintf(log, "\nagent-ci: exit status %d: a command wrote into a pipe whose reader had ended, as head and grep -q do. "+
			"Checks run with pipefail; if that is no failure, begin the check with `set +o pipefail`\n", brokenPipe)
	case err == nil && ran.ExitCode != 0 && script.Hint != nil:
		output, failed := s.Record.Ends(script.Log, 0, hintBytes)
		if words := script.Hint(output); failed == nil && words != "" {
			fmt.Fprintf(log, "\nagent-ci: %s\n", words)
		}
	}
	return ran, err
}

// unserved is the end of a script whose services are not there.
func (s *Sandboxes) unserved(ctx context.Context, script Script, log io.Writer, err, left error) (Ran, error) {
	if ctx.Err() != nil || !script.OwnFault || !Unready(err) || left != nil {
		return Ran{}, errors.Join(err, left)
	}
	var stop *outcome.Stop
	errors.As(err, &stop)
	fmt.Fprintf(log, "agent-ci: %s\n", stop.Message)
	return Ran{ExitCode: 1}, nil
}

// inOverlay does something in the overlay of a place; nil for nothing.
func (s *Sandboxes) inOverlay(ctx context.Context, box *sandbox.Sandbox, p Place, do func(context.Context, gitops.Layer) error) error {
	if do == nil {
		return nil
	}
	layer, err := s.LayerOf(box, p)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, layer), layer.Close())
}

// Commands are the rules on the agent's commands, by the level that was reached
// and by what the sandbox lets them write.
func (s *Sandboxes) Commands() policy.Commands {
	return policy.Commands{
		Rules: s.Rules, Confined: s.level() != sandbox.LevelNone, Home: s.Environ.Home(),
		Writable: s.Options(Agent()).WritableAt(s.level()),
	}
}

// Judge decides on the agent's commands by these rules, and counts what they refuse.
func (s *Sandboxes) Judge() func(policy.Request) policy.Decision {
	commands := s.Commands()
	return func(asked policy.Request) policy.Decision {
		d := commands.Decide(asked)
		if d.Action == policy.Refuse {
			s.denied.Add(1)
		}
		return d
	}
}
