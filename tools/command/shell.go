package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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

// shell is shell, whose command is an argument vector. It also answers the
// items of the API's own shell tools.
type shell struct{ *Tools }

func (shellCommand) Spec() tools.Spec { return shellCommandSpec }
func (shellCommand) Mutates() bool    { return false }
func (shell) Mutates() bool           { return false }

// Spec tells of a function, or of a tool that the model knows and that is also
// called as a function.
func (s shell) Spec() tools.Spec {
	switch s.options.Shell {
	case tools.ShellAction:
		return tools.Spec{Name: shellSpec.Name, Builtin: "shell", Accepts: shellSpec.Parameters}
	case tools.LocalShellAction:
		return tools.Spec{Name: shellSpec.Name, Builtin: "local_shell", Accepts: shellSpec.Parameters}
	}
	return shellSpec
}

// MutatesCall says whether the command only applies a patch.
func (s shellCommand) MutatesCall(call tools.Call) bool {
	l, err := s.launch(call)
	return err == nil && s.patches(l)
}

// MutatesCall says whether one of the commands only applies a patch.
func (s shell) MutatesCall(call tools.Call) bool {
	all, err := s.launches(call)
	return err == nil && slices.ContainsFunc(all, s.patches)
}

func (t *Tools) patches(l launch) bool {
	_, ok := t.patchIn(l.argv)
	return ok
}

// place says where a command runs and for how long.
type place struct {
	Workdir   string  `json:"workdir"`
	TimeoutMS float64 `json:"timeout_ms"`
}

func (s shellCommand) launch(call tools.Call) (launch, error) {
	var a struct {
		place
		Command string `json:"command"`
		Login   bool   `json:"login"`
	}
	if err := json.Unmarshal([]byte(call.Input), &a); err != nil {
		return launch{}, fmt.Errorf("read arguments: %w", err)
	}
	return launch{
		callID: call.ID, argv: s.shellArgv("", a.Login, a.Command), script: a.Command, workdir: a.Workdir, limit: s.limit(a.TimeoutMS, defaultTimeout),
	}, nil
}

func (s shell) launches(call tools.Call) ([]launch, error) {
	switch call.Form {
	case tools.ShellAction:
		return s.shellAction(call)
	case tools.LocalShellAction:
		return s.localShellAction(call)
	}
	var a struct {
		place
		Command []string `json:"command"`
	}
	if err := json.Unmarshal([]byte(call.Input), &a); err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	return []launch{{callID: call.ID, argv: a.Command, workdir: a.Workdir, limit: s.limit(a.TimeoutMS, defaultTimeout)}}, nil
}

// Run runs the command to its end or its time limit.
func (s shellCommand) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	l, err := s.launch(call)
	if err != nil {
		return tools.Result{}, err
	}
	return s.toTheEnd(ctx, call.Name, l)
}

// Run runs the program, or the commands one after the other, each to its end or
// its time limit.
func (s shell) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	all, err := s.launches(call)
	switch {
	case call.Form == tools.Function && err == nil:
		return s.toTheEnd(ctx, call.Name, all[0])
	case call.Form == tools.Function:
		return tools.Result{}, err
	case err != nil:
		return tools.Refuse(fmt.Sprintf("the action cannot be carried out: %v", err)), nil
	}
	return s.act(ctx, call, all)
}

// toTheEnd has the layout that the reference implementation gave these tools.
func (t *Tools) toTheEnd(ctx context.Context, tool string, l launch) (tools.Result, error) {
	ran, err := t.run(ctx, l)
	switch {
	case err != nil:
		return tools.Result{Output: ran.Output, Printed: ran.Printed}, err
	case ran.refusal != "":
		return tools.Result{Output: ran.refusal, Failed: true, Detail: ran.detail}, nil
	case ran.problem != "":
		return tools.Refuse(tool + " failed: " + ran.problem), nil
	}
	header := fmt.Sprintf("Exit code: %d\nWall time: %.1f seconds\nOutput:\n", ran.ExitCode, ran.Took.Seconds())
	return tools.Result{Output: header + ran.Output, Printed: ran.Printed, Failed: ran.ExitCode != 0, Detail: ran.detail}, nil
}

// ran is what came of one command.
type ran struct {
	tools.Ran
	detail  map[string]any
	refusal string // why it was not run, in words that stand for themselves
	problem string // why it could not be started
}

// run runs one command to its end or its time limit, or applies the patch that
// is all there is to it.
func (t *Tools) run(ctx context.Context, l launch) (ran, error) {
	if problem := misplacedPatch(l.argv); problem != "" {
		return ran{refusal: problem}, nil
	}
	began := time.Now()
	if p, ok := t.patchIn(l.argv); ok {
		result, err := t.applyPatch(ctx, p, l.workdir)
		return ran{Ran: tools.Ran{Output: result.Output, ExitCode: exitCode(result), Took: time.Since(began)}, detail: result.Detail}, err
	}
	if denial := t.denial(l); denial != nil {
		result := denial.Result()
		return ran{refusal: result.Output, detail: result.Detail}, nil
	}
	r, problem := t.start(l)
	if problem != "" {
		return ran{problem: problem}, nil
	}
	select {
	case <-r.process.Done():
	case <-ctx.Done():
		return ran{Ran: tools.Ran{Printed: r.abandon().Printed}}, ctx.Err()
	}
	end, err := r.end()
	done := ran{Ran: tools.Ran{
		Printed: r.output.Take(), ExitCode: end.ExitCode, TimedOut: end.timedOut, Took: time.Since(began),
	}, detail: map[string]any{"exit_code": end.ExitCode}}
	if end.timedOut {
		done.Output, done.detail["timed_out"] = r.timeoutWarning(), true
	} else {
		done.Output = r.sandbox.Explain(r.clues, end.Status)
	}
	return done, err
}

// exitCode is that of a program that would have done the same.
func exitCode(r tools.Result) int {
	if r.Failed {
		return 1
	}
	return 0
}
