package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/services"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// Script is a command of the job: one or more lines for bash.
type Script struct {
	Name    string
	Run     string
	Dir     string
	Timeout time.Duration
	Log     string // below the run directory
	Place   Place
	// Pipefail makes a pipe fail if any of its commands fails.
	Pipefail bool
	// WhileOpening runs while another goroutine opens the sandbox; may be nil.
	WhileOpening func(ctx context.Context) error
	// PrepareLayer changes the overlay before the command starts; may be nil.
	PrepareLayer func(ctx context.Context, layer gitops.Layer) error
	// InspectLayer examines the overlay after the command ended; may be nil.
	InspectLayer func(ctx context.Context, layer gitops.Layer) error
	// UnreadyIsRed makes the script red if a service does not get ready, because the judged tree may be the
	// cause. Otherwise that is an error.
	UnreadyIsRed bool
	// Hint returns a remark on a failed command's output for its log, or "". It may be nil.
	Hint func(output string) string
}

// hintBytes is how many bytes at the end of an output Hint gets.
const hintBytes = 16 << 10

// brokenPipe is bash's exit status for a command that SIGPIPE killed.
const brokenPipe = 128 + 13

// argv returns the command line that runs the script.
func (s Script) argv() []string {
	if s.Pipefail {
		return []string{"bash", "-e", "-o", "pipefail", "-c", s.Run}
	}
	return []string{"bash", "-e", "-c", s.Run}
}

// ScriptResult describes how a script ended.
type ScriptResult struct {
	ExitCode int
	TimedOut bool
	Seconds  float64
}

// Color returns green, red or timeout.
func (r ScriptResult) Color() string {
	switch {
	case r.TimedOut:
		return "timeout"
	case r.ExitCode != 0:
		return "red"
	}
	return "green"
}

// RunScript runs a script until it ends or its time is over, and writes its log. It returns an
// error if ctx ended or the script could not start.
func (s *Sandboxes) RunScript(ctx context.Context, script Script) (ScriptResult, error) {
	log, err := s.Record.Create(script.Log)
	if err != nil {
		return ScriptResult{}, fmt.Errorf("make log of %s: %w", script.Name, err)
	}
	defer log.Close()
	out := record.NewLogWriter(log, record.CommandLogBytes, s.Record.Redact)
	box, err := s.openFor(ctx, script)
	if err != nil {
		return ScriptResult{}, err
	}
	if err := s.withLayer(ctx, box, script.Place, script.PrepareLayer); err != nil {
		return ScriptResult{}, errors.Join(err, box.Close())
	}
	running, err := s.Serve(ctx, box, script.Place, script.Dir)
	if err != nil {
		return s.endWithoutServices(ctx, script, log, err, box.Close())
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, script.Timeout)
	defer cancel()
	status, err := box.Run(limited, sandbox.Command{
		Argv: script.argv(), Dir: script.Dir, Env: s.envForTree(s.SandboxPath(script.Place)), Output: out,
	})
	ended := running.DescribeExited()
	if err == nil {
		err = s.withLayer(ctx, box, script.Place, script.InspectLayer)
	}
	if closeErr := errors.Join(running.Close(), box.Close()); closeErr != nil {
		s.Record.Warn("processes_left", "After %s: %v.", script.Name, closeErr)
	}
	out.Flush()
	for _, words := range ended {
		fmt.Fprintf(log, "\nagent-ci: %s\n", words)
	}
	result := ScriptResult{ExitCode: status.ExitCode, Seconds: time.Since(began).Seconds()}
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	return s.explainEnd(script, log, result, err)
}

// openFor opens the sandbox of a script, and runs WhileOpening meanwhile.
func (s *Sandboxes) openFor(ctx context.Context, script Script) (*sandbox.Sandbox, error) {
	if script.WhileOpening == nil {
		return s.Open(ctx, script.Place)
	}
	var opening sync.WaitGroup
	var box *sandbox.Sandbox
	var openErr error
	var panicked any // continues in this goroutine, where it becomes an outcome
	opening.Go(func() {
		defer func() { panicked = recover() }()
		box, openErr = s.Open(ctx, script.Place)
	})
	err := func() error {
		defer opening.Wait() // even after a panic
		return script.WhileOpening(ctx)
	}()
	if panicked != nil {
		panic(panicked)
	}
	if openErr != nil {
		return nil, openErr
	}
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	return box, nil
}

// explainEnd returns the result of a script that ended with err, and notes its cause in the log.
func (s *Sandboxes) explainEnd(script Script, log io.Writer, result ScriptResult, err error) (ScriptResult, error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		result.TimedOut = true
		fmt.Fprintf(log, "\nagent-ci: timed out after %s\n", script.Timeout)
		return result, nil
	case errors.Is(err, sandbox.ErrNotStarted):
		result.ExitCode = 127 // as shells report a missing program
		fmt.Fprintf(log, "agent-ci: %v\n", err)
		return result, nil
	case script.Pipefail && result.ExitCode == brokenPipe:
		fmt.Fprintf(log, "\nagent-ci: exit status %d: a command wrote into a pipe whose reader had ended, as head and grep -q do. "+
			"Checks run with pipefail; if that is no failure, begin the check with `set +o pipefail`\n", brokenPipe)
	case err == nil && result.ExitCode != 0 && script.Hint != nil:
		output, failed := s.Record.HeadAndTail(script.Log, 0, hintBytes)
		if words := script.Hint(output); failed == nil && words != "" {
			fmt.Fprintf(log, "\nagent-ci: %s\n", words)
		}
	}
	return result, err
}

// endWithoutServices returns the result of a script whose services could not start. startErr says why;
// closeErr is the error of closing the sandbox. The script is red if it has UnreadyIsRed.
func (s *Sandboxes) endWithoutServices(ctx context.Context, script Script, log io.Writer, startErr, closeErr error) (ScriptResult, error) {
	onlyUnready := services.IsNotReady(startErr) && closeErr == nil && ctx.Err() == nil
	if !onlyUnready || !script.UnreadyIsRed {
		return ScriptResult{}, errors.Join(startErr, closeErr)
	}
	var stop *outcome.Stop
	errors.As(startErr, &stop)
	fmt.Fprintf(log, "agent-ci: %s\n", stop.Message)
	return ScriptResult{ExitCode: 1}, nil
}

// withLayer runs do with the overlay of a place. A nil do is skipped.
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

// CommandRules returns the rules for the agent's commands. They depend on the confinement and on
// the paths that the sandbox makes writable.
func (s *Sandboxes) CommandRules() policy.Commands {
	return policy.Commands{
		Rules: s.Rules, Sandboxed: s.level() != sandbox.LevelNone, Home: s.Environ.Home(),
		Writable: s.Options(AgentPlace()).WritableAt(s.level()),
	}
}

// Judge returns a function that decides whether the agent's commands may run. The function counts refusals.
func (s *Sandboxes) Judge() func(policy.Request) policy.Decision {
	commands := s.CommandRules()
	return func(asked policy.Request) policy.Decision {
		d := commands.Decide(asked)
		if d.Action == policy.Refuse {
			s.deniedCommands.Add(1)
		}
		return d
	}
}
