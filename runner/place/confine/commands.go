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
	// Pipefail fails a pipe with any failing command.
	Pipefail bool
	// PrepareLayer prepares the overlay before the command; may be nil.
	PrepareLayer func(ctx context.Context, layer gitops.Layer) error
	// InspectLayer examines the overlay after the command; may be nil.
	InspectLayer func(ctx context.Context, layer gitops.Layer) error
	// OwnFault blames a service that does not get ready on the judged tree, so the script is red.
	OwnFault bool
	// Hint returns a remark for a failed command's log, or "". May be nil.
	Hint func(output string) string
}

// hintBytes is how much of the end of an output a hint is looked for in.
const hintBytes = 16 << 10

// brokenPipe is bash's status after SIGPIPE.
const brokenPipe = 128 + 13

func (s Script) argv() []string {
	if s.Pipefail {
		return []string{"bash", "-e", "-o", "pipefail", "-c", s.Run}
	}
	return []string{"bash", "-e", "-c", s.Run}
}

// ScriptResult is how a script ended.
type ScriptResult struct {
	ExitCode int
	TimedOut bool
	Seconds  float64
}

// Color is the end in a word: green, red, or timeout.
func (r ScriptResult) Color() string {
	switch {
	case r.TimedOut:
		return "timeout"
	case r.ExitCode != 0:
		return "red"
	}
	return "green"
}

// RunScript runs a script to its end or time limit. An error is ctx's or prevented the start.
func (s *Sandboxes) RunScript(ctx context.Context, script Script) (ScriptResult, error) {
	log, err := s.Record.Create(script.Log)
	if err != nil {
		return ScriptResult{}, fmt.Errorf("make log of %s: %w", script.Name, err)
	}
	defer log.Close()
	out := record.NewLogWriter(log, record.CommandLog, s.Record.Redact)
	box, err := s.Open(ctx, script.Place)
	if err != nil {
		return ScriptResult{}, err
	}
	if err := s.withLayer(ctx, box, script.Place, script.PrepareLayer); err != nil {
		return ScriptResult{}, errors.Join(err, box.Close())
	}
	services, err := s.Serve(ctx, box, script.Place, script.Dir)
	if err != nil {
		return s.endWithoutServices(ctx, script, log, err, box.Close())
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, script.Timeout)
	defer cancel()
	status, err := box.Run(limited, sandbox.Command{
		Argv: script.argv(), Dir: script.Dir, Env: s.envForTree(s.SandboxPath(script.Place)), Output: out,
	})
	ended := services.ended()
	if err == nil {
		err = s.withLayer(ctx, box, script.Place, script.InspectLayer)
	}
	if left := errors.Join(services.Close(), box.Close()); left != nil {
		s.Record.Warn("processes_left", "After %s: %v.", script.Name, left)
	}
	out.Flush()
	for _, words := range ended {
		fmt.Fprintf(log, "\nagent-ci: %s\n", words)
	}
	ran := ScriptResult{ExitCode: status.ExitCode, Seconds: time.Since(began).Seconds()}
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

// endWithoutServices ends a script without its services.
func (s *Sandboxes) endWithoutServices(ctx context.Context, script Script, log io.Writer, err, left error) (ScriptResult, error) {
	if ctx.Err() != nil || !script.OwnFault || !Unready(err) || left != nil {
		return ScriptResult{}, errors.Join(err, left)
	}
	var stop *outcome.Stop
	errors.As(err, &stop)
	fmt.Fprintf(log, "agent-ci: %s\n", stop.Message)
	return ScriptResult{ExitCode: 1}, nil
}

// withLayer does something in the overlay of a place; nil for nothing.
func (s *Sandboxes) withLayer(ctx context.Context, box *sandbox.Sandbox, p Place, do func(context.Context, gitops.Layer) error) error {
	if do == nil {
		return nil
	}
	layer, err := s.LayerOf(box, p)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, layer), layer.Close())
}

// CommandRules returns the rules for the agent's commands, with the confinement that was reached and
// the paths that the sandbox lets them write.
func (s *Sandboxes) CommandRules() policy.Commands {
	return policy.Commands{
		Rules: s.Rules, Sandboxed: s.level() != sandbox.LevelNone, Home: s.Environ.Home(),
		Writable: s.Options(AgentPlace()).WritableAt(s.level()),
	}
}

// Judge returns a function that decides on the agent's commands by these rules and counts refusals.
func (s *Sandboxes) Judge() func(policy.Request) policy.Decision {
	commands := s.CommandRules()
	return func(asked policy.Request) policy.Decision {
		d := commands.Decide(asked)
		if d.Action == policy.Refuse {
			s.deniedCount.Add(1)
		}
		return d
	}
}
