package command

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/tools"
)

// defaultTimeout of shell and shell_command is longer than the reference
// implementation's 10 s: nobody is there to run the command again by hand.
const defaultTimeout = 10 * time.Minute

const timeoutProperty = `"timeout_ms":{"type":"number","description":"Time limit in milliseconds, after which the command and all that it started are killed. Defaults to 600000."}`

const workdirProperty = `"workdir":{"type":"string","description":"Directory to run it in, below the working directory. Defaults to the working directory."}`

var shellCommandSpec = tools.Spec{
	Name:        "shell_command",
	Description: "Runs a shell command and returns its output when it has exited.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"command":{"type":"string","description":"The shell script to execute."},` + workdirProperty + `,` + timeoutProperty +
		`,"login":{"type":"boolean","description":"Whether to start a login shell. Defaults to false."}` +
		`},"required":["command"],"additionalProperties":false}`),
}

var shellSpec = tools.Spec{
	Name:        "shell",
	Description: `Runs a program with its arguments and returns its output when it has exited. Use ["bash", "-c", "…"] for a shell command.`,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"command":{"type":"array","items":{"type":"string"},"minItems":1,"description":"The program and its arguments."},` + workdirProperty + `,` + timeoutProperty +
		`},"required":["command"],"additionalProperties":false}`),
}

// shellCommand is shell_command, whose command is a line for the shell.
type shellCommand struct{ *Tools }

// shell is shell, whose command is an argument vector.
type shell struct{ *Tools }

func (shellCommand) Spec() tools.Spec { return shellCommandSpec }
func (shellCommand) Mutates() bool    { return false }
func (shell) Spec() tools.Spec        { return shellSpec }
func (shell) Mutates() bool           { return false }

// MutatesCall says whether the command only applies a patch.
func (s shellCommand) MutatesCall(call tools.Call) bool { return s.patches(s.arguments(call)) }

// MutatesCall says whether the command only applies a patch.
func (s shell) MutatesCall(call tools.Call) bool { return s.patches(s.arguments(call)) }

func (t *Tools) patches(argv []string, _ place, err error) bool {
	if err != nil {
		return false
	}
	_, ok := t.patchIn(argv)
	return ok
}

// place says where a command runs and for how long.
type place struct {
	Workdir   string  `json:"workdir"`
	TimeoutMS float64 `json:"timeout_ms"`
}

func (s shellCommand) arguments(call tools.Call) (argv []string, in place, err error) {
	var a struct {
		place
		Command string `json:"command"`
		Login   bool   `json:"login"`
	}
	if err := json.Unmarshal([]byte(call.Input), &a); err != nil {
		return nil, place{}, fmt.Errorf("read arguments: %w", err)
	}
	return s.shellArgv("", a.Login, a.Command), a.place, nil
}

func (shell) arguments(call tools.Call) (argv []string, in place, err error) {
	var a struct {
		place
		Command []string `json:"command"`
	}
	if err := json.Unmarshal([]byte(call.Input), &a); err != nil {
		return nil, place{}, fmt.Errorf("read arguments: %w", err)
	}
	return a.Command, a.place, nil
}

// Run runs the command to its end or its time limit.
func (s shellCommand) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	argv, in, err := s.arguments(call)
	if err != nil {
		return tools.Result{}, err
	}
	return s.toTheEnd(ctx, call, argv, in, tools.StartRequest{Script: argv[len(argv)-1]})
}

// Run runs the program to its end or its time limit.
func (s shell) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	argv, in, err := s.arguments(call)
	if err != nil {
		return tools.Result{}, err
	}
	return s.toTheEnd(ctx, call, argv, in, tools.StartRequest{Argv: argv})
}

func (t *Tools) toTheEnd(ctx context.Context, call tools.Call, argv []string, in place, asked tools.StartRequest) (tools.Result, error) {
	if problem := misplacedPatch(argv); problem != "" {
		return tools.Refuse(problem), nil
	}
	began := time.Now()
	if p, ok := t.patchIn(argv); ok {
		result, err := t.applyPatch(ctx, p, in.Workdir)
		result.Output = shellHeader(exitCode(result), time.Since(began)) + result.Output
		return result, err
	}
	if denial := t.denial(asked, in.Workdir); denial != nil {
		return denial.Result(), nil
	}
	r, problem := t.start(call.ID, argv, in.Workdir, t.limit(in.TimeoutMS, defaultTimeout))
	if problem != "" {
		return tools.Refuse(call.Name + " failed: " + problem), nil
	}
	select {
	case <-r.process.Done():
	case <-ctx.Done():
		return r.abandon(), ctx.Err()
	}
	end, err := r.end()
	printed := r.output.Take()
	if err != nil {
		return tools.Result{Printed: printed}, err
	}
	return shellResult(r, end, printed, time.Since(began)), nil
}

// shellResult has the layout that the reference implementation gave these
// tools.
func shellResult(r *running, end ending, printed *tools.Printed, took time.Duration) tools.Result {
	header := shellHeader(end.ExitCode, took)
	detail := map[string]any{"exit_code": end.ExitCode}
	if end.timedOut {
		header += r.timeoutWarning()
		detail["timed_out"] = true
	}
	return tools.Result{Output: header, Printed: printed, Failed: end.ExitCode != 0, Detail: detail}
}

func shellHeader(exitCode int, took time.Duration) string {
	return fmt.Sprintf("Exit code: %d\nWall time: %.1f seconds\nOutput:\n", exitCode, took.Seconds())
}

// exitCode is that of a program that would have done the same.
func exitCode(r tools.Result) int {
	if r.Failed {
		return 1
	}
	return 0
}
