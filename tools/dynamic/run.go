package dynamic

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/tools"
)

// Run makes a tool for each of whose calls a program is started: it gets the arguments as JSON
// on its standard input, and what it prints is the result, text or a JSON list of items. A
// call mutates: what the program does, nobody knows.
func Run(spec tools.Spec, program Program, timeout time.Duration, outputs *tools.Outputs) tools.Tool {
	return tools.Tool{Spec: spec, Foreign: true, Mutates: true, Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
		r := running{name: spec.Name, stdout: taken{capture: outputs.Capture(call.ID)}, stderr: outputs.Capture(call.ID)}
		return r.run(ctx, program, timeout, call.Input)
	}}
}

// running is a program that answers one call.
type running struct {
	name   string
	stdout taken
	stderr *tools.Capture
	last   tail // of stderr
}

func (r *running) run(ctx context.Context, program Program, timeout time.Duration, input string) (tools.Result, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := program.start(func(from io.Reader) { _, _ = io.Copy(&r.stdout, from) }, io.MultiWriter(r.stderr, &r.last))
	if err != nil {
		return tools.Result{}, err
	}
	var fed sync.WaitGroup
	fed.Go(func() {
		_, _ = io.WriteString(c.input, input+"\n") // a program may end without reading, and a shell reads lines
		_ = c.input.Close()
	})
	select {
	case <-c.Done():
	case <-limited.Done():
		c.Kill()
	}
	status, err := c.end()
	fed.Wait()
	switch {
	case ctx.Err() != nil:
		return r.failed("was ended"), ctx.Err()
	case limited.Err() != nil:
		failed := r.failed(fmt.Sprintf("took longer than %s and was ended", timeout))
		failed.Detail["timed_out"] = true
		return failed, nil
	case err != nil:
		return r.failed("was ended"), err
	case status.ExitCode != 0:
		failed := r.failed(ended(status))
		failed.Detail["exit_code"] = status.ExitCode
		return failed, nil
	}
	return r.done(limited), nil
}

// done is the result of a program that has done its work.
func (r *running) done(ctx context.Context) tools.Result {
	_ = r.stderr.Take().Close()
	result := tools.Result{}
	if items, are := r.stdout.items(); are {
		result = resultOf(ctx, items)
	} else if result.Printed = r.stdout.capture.Take(); result.Printed.Bytes() == 0 {
		result = tools.Result{Output: r.name + " printed nothing."}
	}
	if result.Detail == nil {
		result.Detail = map[string]any{}
	}
	result.Detail["exit_code"] = 0
	if words := r.last.String(); words != "" {
		result.Detail["stderr"] = words
	}
	return result
}

// failed is the result of a program that has not: what it said of that on standard error, or,
// where it said nothing, what else it printed.
func (r *running) failed(how string) tools.Result {
	if !r.stdout.text {
		r.stdout.release()
	}
	said, printed := r.stderr.Take(), r.stdout.capture.Take()
	from := "standard error"
	if said.Bytes() == 0 {
		said, printed, from = printed, said, "standard output"
	}
	_ = printed.Close()
	result := tools.Result{Output: fmt.Sprintf("%s %s, and printed nothing.", r.name, how), Failed: true, Detail: map[string]any{}}
	if said.Bytes() > 0 {
		result.Output, result.Printed = fmt.Sprintf("%s %s. On its %s:\n", r.name, how, from), said
	}
	return result
}

// tail keeps the end of what is written to it.
type tail struct{ end []byte }

// tailLength is how many bytes a tail keeps.
const tailLength = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.end = append(t.end, p[max(0, len(p)-tailLength):]...)
	t.end = t.end[max(0, len(t.end)-tailLength):]
	return len(p), nil
}

func (t *tail) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(t.end), "\uFFFD"))
}
