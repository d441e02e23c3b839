package dynamic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/attached"
	"github.com/agent-ci/agent-ci/tools"
)

// Program is the program of a tool, and where it runs.
type Program struct {
	Sandbox *sandbox.Sandbox // nil for a tool that is only described
	Argv    []string
	Dir     string
	Env     []string // the complete environment
}

// maxStderrTail is the size of the part of standard error, at its end, that is kept for the record, in bytes.
const maxStderrTail = 2 << 10

// NewTool returns a tool that starts a program for each call, with the arguments as JSON on standard input. The program's
// output is the result: a text, or a JSON list of items. All calls count as mutating, because their effects are unknown.
func NewTool(spec tools.Spec, program Program, timeout time.Duration, outputs *tools.Outputs) tools.Tool {
	return tools.Tool{Spec: spec, Foreign: true, Mutates: true, Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
		r := programCall{name: spec.Name, stdout: output{capture: outputs.Capture(call.ID)}, stderr: outputs.Capture(call.ID), stderrTail: clip.Tail{Limit: maxStderrTail}}
		return r.run(ctx, program, timeout, call.Input)
	}}
}

// programCall is one call of the tool, with the output of its program.
type programCall struct {
	name       string
	stdout     output
	stderr     *tools.Capture
	stderrTail clip.Tail // of stderr
}

// run starts the program and waits for its end or the timeout. A program that fails gives a failed result. The error is
// for a program that could not be run.
func (r *programCall) run(ctx context.Context, program Program, timeout time.Duration, input string) (tools.Result, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	status, err := attached.Run(limited, program.Sandbox.Start, sandbox.Command{Argv: program.Argv, Dir: program.Dir, Env: program.Env}, attached.Streams{
		Input:  strings.NewReader(input + "\n"), // a shell reads lines
		Output: attached.To(&r.stdout), Errors: attached.To(io.MultiWriter(r.stderr, &r.stderrTail)),
	})
	switch {
	case errors.Is(err, sandbox.ErrNotStarted):
		return tools.Result{}, err
	case ctx.Err() != nil:
		return r.failedResult("was ended"), ctx.Err()
	case limited.Err() != nil:
		failed := r.failedResult(fmt.Sprintf("took longer than %s and was ended", timeout))
		failed.Detail["timed_out"] = true
		return failed, nil
	case err != nil:
		return r.failedResult("was ended"), err
	case status.ExitCode != 0:
		failed := r.failedResult(attached.Ending(status, nil))
		failed.Detail["exit_code"] = status.ExitCode
		return failed, nil
	}
	return r.succeededResult(limited), nil
}

// succeededResult returns the result of a program that exited with status 0.
func (r *programCall) succeededResult(ctx context.Context) tools.Result {
	_ = r.stderr.Take().Close()
	result := tools.Result{}
	if items, areItems := r.stdout.items(); areItems {
		result = itemsResult(ctx, items)
	} else if result.Printed = r.stdout.capture.Take(); result.Printed.Bytes() == 0 {
		result = tools.Result{Output: r.name + " printed nothing."}
	}
	if result.Detail == nil {
		result.Detail = map[string]any{}
	}
	result.Detail["exit_code"] = 0
	if words := r.stderrTail.String(); words != "" {
		result.Detail["stderr"] = words
	}
	return result
}

// failedResult returns the result of a failed program: outcome, and its standard error, or its standard output if it wrote
// no errors.
func (r *programCall) failedResult(outcome string) tools.Result {
	if !r.stdout.isText {
		r.stdout.release()
	}
	stderr, stdout := r.stderr.Take(), r.stdout.capture.Take()
	shown, dropped, stream := stderr, stdout, "standard error"
	if stderr.Bytes() == 0 {
		shown, dropped, stream = stdout, stderr, "standard output"
	}
	_ = dropped.Close()
	result := tools.Result{Output: fmt.Sprintf("%s %s, and printed nothing.", r.name, outcome), Failed: true, Detail: map[string]any{}}
	if shown.Bytes() > 0 {
		result.Output, result.Printed = fmt.Sprintf("%s %s. On its %s:\n", r.name, outcome, stream), shown
	}
	return result
}
