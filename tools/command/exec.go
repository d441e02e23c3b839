package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/tools"
)

// How long a call waits for its command. The reference implementation has the same values.
const (
	defaultYield = 10 * time.Second
	minYield     = 250 * time.Millisecond
	maxYield     = 30 * time.Second
)

var execSpec = tools.Spec{
	Name: "exec_command",
	Description: `Runs a command in a shell and returns its output. A command that still runs after yield_time_ms gives a session ID: poll it with write_stdin until it has exited. ` +
		`Standard input is empty unless tty is true.`,
	Parameters: json.RawMessage(`{"type":"object","properties":{` + execProperties +
		`},"required":["cmd"],"additionalProperties":false}`),
	// Published versions of the tool and other agents' tools have this too.
	Accepts: json.RawMessage(`{"type":"object","properties":{` + execProperties +
		`,"timeout_ms":{"type":"number"}},"required":["cmd"],"additionalProperties":false}`),
	Returns: returns,
}

const execProperties = `"cmd":{"type":"string","description":"Shell command to execute."},` +
	`"workdir":{"type":"string","description":"Directory to run it in, below the working directory; relative paths start there. Defaults to the working directory."},` +
	`"shell":{"type":"string","description":"Shell to launch. Defaults to bash, or sh where there is no bash."},` +
	`"login":{"type":"boolean","description":"Whether to start a login shell. Defaults to false."},` +
	`"tty":{"type":"boolean","description":"Whether to run it in a terminal of 80 columns, into which write_stdin types. Defaults to false: pipes."},` +
	`"yield_time_ms":{"type":"number","description":"How long to wait for the command, in milliseconds: 250 to 30000, by default 10000."},` +
	`"max_output_tokens":{"type":"number","description":"Most tokens of output to return: 10000, the default, or fewer; the middle of longer output is cut, and all of it is kept in a file."}`

// execRequests parses a call of exec_command and returns its single command.
func (t *Tools) execRequests(call tools.Call) ([]commandRequest, error) {
	var a struct {
		Cmd       string  `json:"cmd"`
		Workdir   string  `json:"workdir"`
		Shell     string  `json:"shell"`
		Login     bool    `json:"login"`
		TTY       bool    `json:"tty"`
		YieldMS   float64 `json:"yield_time_ms"`
		TimeoutMS float64 `json:"timeout_ms"`
		MaxTokens float64 `json:"max_output_tokens"`
	}
	if err := call.Arguments(&a); err != nil {
		return nil, err
	}
	request := commandRequest{
		callID: call.ID, argv: t.shellArgv(a.Shell, a.Login, a.Cmd), workdir: a.Workdir, limit: t.timeLimit(a.TimeoutMS, t.options.limit),
		tty: a.TTY, patience: yieldTime(a.YieldMS, a.TimeoutMS), budget: tools.AskedTokens(a.MaxTokens),
	}
	if a.Shell == "" { // policy reads scripts only for the default shell; another shell is judged as a program
		request.script = a.Cmd
	}
	return []commandRequest{request}, nil
}

// execCommand runs exec_command: it starts a command and waits for it up to the yield time. A command that is still
// running then continues as a session. If ctx ends first, the command is killed.
func (t *Tools) execCommand(ctx context.Context, call tools.Call, all []commandRequest) (tools.Result, error) {
	request, began := all[0], time.Now()
	running, patched, err := t.begin(ctx, request)
	switch {
	case running == nil && patched.notRun():
		return patched.refusedResult(fmt.Sprintf("exec_command failed for `%s`", request.argv[len(request.argv)-1])), nil
	case running == nil: // the command applied a patch, without a process
		took := patched.Took.Seconds()
		result := tools.Result{Output: fmt.Sprintf("Wall time: %.4f seconds\nOutput:\n%s", took, patched.Output), Failed: patched.ExitCode != 0, Detail: patched.detail}
		if !result.Failed {
			result.Object = map[string]any{"exit_code": 0, "output": patched.Output, "wall_time_seconds": took}
		}
		return result, err
	}
	w := t.waitModeFor(ctx, call, request.patience)
	ended, err := w.await(ctx, running)
	if err != nil {
		return tools.Result{Printed: running.kill()}, err
	}
	report := report{callID: call.ID, duration: time.Since(began), budget: request.budget}
	if ended {
		return report.endResult(running)
	}
	return report.runningResult(t.addSession(running, w.replayedSession)), nil
}

// shellArgv returns the program and arguments that run cmd in a shell. An empty shell means the default one.
func (t *Tools) shellArgv(shell string, login bool, cmd string) []string {
	shell = cmp.Or(shell, t.shell)
	if login {
		return []string{shell, "-l", "-c", cmd}
	}
	return []string{shell, "-c", cmd}
}

// addSession adds a session for a running command. Its number is id, or the next one if id is 0. If there are too many
// sessions, it kills an old one.
func (t *Tools) addSession(r *runningCommand, id int) *session {
	added, pushedOut := t.sessions.add(r, id)
	if pushedOut != nil {
		pushedOut.discard()
	}
	return added
}

// yieldTime returns how long a call waits for its command: yield_time_ms, or else timeout_ms, or else the default.
func yieldTime(yieldMS, timeoutMS float64) time.Duration {
	switch {
	case yieldMS > 0:
		return tools.Milliseconds(yieldMS, minYield, maxYield)
	case timeoutMS > 0:
		return tools.Milliseconds(timeoutMS, defaultYield, maxYield)
	}
	return defaultYield
}

// waitMode says how a call waits for its command.
type waitMode struct {
	timeout         time.Duration
	replayedSession int // in a replay, the number of the session that the recorded call left running; 0 for none
}

// waitModeFor returns how a call waits that waits up to patience. A replayed call must return in the same way as the
// recorded one, however fast the machine is: if the recorded command had ended, the call waits for the end.
func (t *Tools) waitModeFor(ctx context.Context, call tools.Call, patience time.Duration) waitMode {
	if t.options.RecordedReturn == nil {
		return waitMode{timeout: patience}
	}
	recorded := t.options.RecordedReturn(ctx, call)
	if recorded.Ended {
		patience = 2 * t.options.limit // longer than any command lives
	}
	return waitMode{patience, recorded.Session}
}

// await waits until the command has ended, the time is over, or ctx ends. ended is false if the command is still running,
// or if it was still running in the record of a replay.
func (w waitMode) await(ctx context.Context, r *runningCommand) (ended bool, err error) {
	select {
	case <-r.process.Done():
		return w.replayedSession == 0, nil
	case <-time.After(w.timeout):
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// kill kills the command, waits for its end, and returns its output.
func (r *runningCommand) kill() *tools.Printed {
	r.timer.Stop()
	r.process.Kill()
	<-r.process.Done()
	return r.output.Take()
}
