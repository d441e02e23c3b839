package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/tools"
)

// defaultTimeout is the default time limit of shell and shell_command. It is longer than the 10 s of the reference
// implementation, because nobody is there to run the command again.
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

var shellFunction = tools.Spec{
	Name:        "shell",
	Description: `Runs a program with its arguments and returns its output when it has exited. Use ["bash", "-c", "…"] for a shell command.`,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"command":{"type":"array","items":{"type":"string"},"minItems":1,"description":"The program and its arguments."},` + workdirProperty + `,` + timeoutProperty +
		`},"required":["command"],"additionalProperties":false}`),
}

// shellSpec returns the definition of the tool shell in this form. A built-in form may also be called as a function.
func shellSpec(form tools.Form) tools.Spec {
	switch form {
	case tools.ShellAction:
		return tools.Spec{Name: shellFunction.Name, Builtin: "shell", Accepts: shellFunction.Parameters}
	case tools.LocalShellAction:
		return tools.Spec{Name: shellFunction.Name, Builtin: "local_shell", Accepts: shellFunction.Parameters}
	}
	return shellFunction
}

// shellLineRequests parses a call of shell_command or bash, which has a single command: a line for the shell. The
// time limit is timeout_ms for shell_command, and timeout for bash.
func (t *Tools) shellLineRequests(call tools.Call) ([]commandRequest, error) {
	var a struct {
		Command   string  `json:"command"`
		Workdir   string  `json:"workdir"`
		TimeoutMS float64 `json:"timeout_ms"`
		Timeout   float64 `json:"timeout"`
		Login     bool    `json:"login"`
	}
	if err := call.Arguments(&a); err != nil {
		return nil, err
	}
	return []commandRequest{{
		callID: call.ID, argv: t.shellArgv("", a.Login, a.Command), script: a.Command, workdir: a.Workdir, limit: t.timeLimit(cmp.Or(a.TimeoutMS, a.Timeout), defaultTimeout),
	}}, nil
}

// shellRequests parses a call of shell, in any of its forms, and returns its commands.
func (t *Tools) shellRequests(call tools.Call) ([]commandRequest, error) {
	switch call.Form {
	case tools.ShellAction:
		return t.shellAction(call)
	case tools.LocalShellAction:
		return t.localShellAction(call)
	}
	var a struct {
		Command   []string `json:"command"`
		Workdir   string   `json:"workdir"`
		TimeoutMS float64  `json:"timeout_ms"`
	}
	if err := call.Arguments(&a); err != nil {
		return nil, err
	}
	return []commandRequest{{callID: call.ID, argv: a.Command, workdir: a.Workdir, limit: t.timeLimit(a.TimeoutMS, defaultTimeout)}}, nil
}

// runShell runs the commands of a call one after the other, each to its end or time limit.
func (t *Tools) runShell(ctx context.Context, call tools.Call, all []commandRequest) (tools.Result, error) {
	if call.Form != tools.Function {
		return t.runActions(ctx, all)
	}
	return t.runToEnd(ctx, call.Name, all[0], func(ran tools.Ran) string { // the layout is that of the reference implementation
		return fmt.Sprintf("Exit code: %d\nWall time: %.1f seconds\nOutput:\n%s", ran.ExitCode, ran.Took.Seconds(), ran.Output)
	})
}

// runToEnd runs one command to its end or time limit. tool is the tool's name in errors. layout returns the text before
// the command's output.
func (t *Tools) runToEnd(ctx context.Context, tool string, request commandRequest, layout func(tools.Ran) string) (tools.Result, error) {
	ran, err := t.run(ctx, request)
	switch {
	case err != nil:
		return tools.Result{Output: ran.Output, Printed: ran.Printed}, err
	case ran.notRun():
		return ran.refusedResult(tool + " failed"), nil
	}
	return tools.Result{Output: layout(ran.Ran), Printed: ran.Printed, Failed: ran.ExitCode != 0, Detail: ran.detail}, nil
}

// runResult is the result of a command.
type runResult struct {
	tools.Ran
	detail  map[string]any
	refusal string // why it was not run, as a complete message, or ""
	problem string // why it could not start, as the end of a message, or ""
}

// notRun reports whether the command was not started.
func (r runResult) notRun() bool { return r.refusal != "" || r.problem != "" }

// refusedResult returns the result of a call whose command was not run. prefix begins the message about a problem.
func (r runResult) refusedResult(prefix string) tools.Result {
	if r.refusal != "" {
		return tools.Result{Output: r.refusal, Failed: true, Detail: r.detail}
	}
	return tools.Refuse(prefix + ": " + r.problem)
}

// begin starts a command and returns it. If it starts no command, started is nil, and result is the outcome: of the
// patch that the command would apply, and that begin applies itself, or a refusal.
func (t *Tools) begin(ctx context.Context, request commandRequest) (started *runningCommand, result runResult, err error) {
	if problem := misplacedPatch(request.argv); problem != "" {
		return nil, runResult{refusal: problem}, nil
	}
	began := time.Now()
	if p, isPatch := t.patchIn(request.argv); isPatch {
		patched, err := t.applyPatch(ctx, p, request.workdir)
		ran := tools.Ran{Output: patched.Output, Took: time.Since(began)}
		if patched.Failed {
			ran.ExitCode = 1
		}
		return nil, runResult{Ran: ran, detail: patched.Detail}, err
	}
	if d, denied := t.refusalFor(request); denied {
		return nil, runResult{refusal: d.Words(), detail: map[string]any{"denied": d.Rule}}, nil
	}
	started, problem := t.start(request)
	return started, runResult{problem: problem}, nil
}

// run runs a command to its end or time limit, or applies its patch.
func (t *Tools) run(ctx context.Context, request commandRequest) (runResult, error) {
	began := time.Now()
	started, result, err := t.begin(ctx, request)
	if started == nil {
		return result, err
	}
	select {
	case <-started.process.Done():
	case <-ctx.Done():
		return runResult{Ran: tools.Ran{Printed: started.kill()}}, ctx.Err()
	}
	ended, err := started.awaitResult()
	ended.Took = time.Since(began)
	return runResult{Ran: ended, detail: detailOf(ended)}, err
}
