package command

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
	"github.com/agent-ci/agent-ci/tools"
)

// defaultLimit is the default time limit of a command.
const defaultLimit = 30 * time.Minute

// Options configure the command tools.
type Options struct {
	Sandbox *sandbox.Sandbox
	Outputs *tools.Outputs
	Dir     tools.Folder  // the working directory
	Env     []string      // the environment, without the variables in forcedEnv
	limit   time.Duration // time limit of one command; 0 means defaultLimit
	// Shell is the model's form of shell: Function, ShellAction or LocalShellAction.
	Shell tools.Form
	// Judge decides whether a command may start. It is called from several goroutines. Nil allows all.
	Judge func(policy.Request) policy.Decision
	// Programs is a folder in PATH that is added again for login shells, which reset PATH. It may be "".
	Programs string
	// Patch applies a patch with paths relative to dir, an absolute path. It replaces commands that do nothing but
	// apply a patch. The calls with such commands mutate. It may be nil.
	Patch func(ctx context.Context, dir, text string) (tools.Result, error)
	// RecordedReturn tells how a replayed call of exec_command or write_stdin returned in the record, so that it
	// returns in the same way. It is nil outside a replay.
	RecordedReturn func(ctx context.Context, call tools.Call) RecordedReturn
}

// RecordedReturn is how a recorded call returned. The zero value means unknown.
type RecordedReturn struct {
	Ended   bool // its command had ended
	Session int  // session in which its command continued; 0 for none
}

// forcedEnv overrides variables of commands, as in the reference implementation: no colours, no pager, no translated
// messages.
var forcedEnv = []string{
	"NO_COLOR=1", "TERM=dumb", "COLORTERM=",
	"LANG=C.UTF-8", "LC_CTYPE=C.UTF-8", "LC_ALL=C.UTF-8",
	"PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat",
}

// Tools runs the commands of an agent. Close kills those still running.
type Tools struct {
	options  Options
	env      []string
	shell    string // default shell: bash, or sh if there is no bash
	sessions sessions
}

// New returns the command tools. It starts nothing.
func New(o Options) *Tools {
	if o.limit <= 0 {
		o.limit = defaultLimit
	}
	t := &Tools{options: o, shell: "sh"}
	t.env = append(append(t.env, o.Env...), forcedEnv...)
	if _, err := stage.LookPath("bash", o.Dir.Path, t.env); err == nil {
		t.shell = "bash"
	}
	return t
}

// All returns the tools exec_command, write_stdin, shell_command and shell.
func (t *Tools) All() []tools.Tool {
	return []tools.Tool{
		t.tool(execSpec, t.execRequests, t.execCommand),
		{Spec: stdinSpec, Run: tools.Decoded(t.writeStdin)},
		t.tool(shellCommandSpec, t.shellLineRequests, t.runShell),
		t.tool(shellSpec(t.options.Shell), t.shellRequests, t.runShell),
	}
}

// tool returns a tool for commands. requestsIn parses a call and returns its commands, run runs them. A call mutates if
// one of its commands only applies a patch.
func (t *Tools) tool(
	spec tools.Spec, requestsIn func(tools.Call) ([]commandRequest, error), run func(context.Context, tools.Call, []commandRequest) (tools.Result, error),
) tools.Tool {
	isPatch := func(request commandRequest) bool {
		_, isPatch := t.patchIn(request.argv)
		return isPatch
	}
	return tools.Tool{
		Spec: spec,
		Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
			all, err := requestsIn(call)
			switch {
			case err != nil && call.Form != tools.Function:
				return tools.Refuse(fmt.Sprintf("the action cannot be carried out: %v", err)), nil
			case err != nil:
				return tools.Result{}, err
			}
			return run(ctx, call, all)
		},
		MutatesCall: func(call tools.Call) bool {
			all, err := requestsIn(call)
			return err == nil && slices.ContainsFunc(all, isPatch)
		},
	}
}

// Close kills the running sessions and waits for their end. No call may be in progress.
func (t *Tools) Close() {
	for _, s := range t.sessions.removeAll() {
		s.discard()
	}
}

// runningCommand is a command whose process was started.
type runningCommand struct {
	sandbox *sandbox.Sandbox
	process *sandbox.Process
	output  *tools.Capture
	clues   *sandbox.RefusalClues // signs in its output that the sandbox refused something
	tty     bool
	limit   time.Duration
	timer   *time.Timer // kills the process at its limit
	expired atomic.Bool
}

// commandRequest is a requested command.
type commandRequest struct {
	callID  string
	argv    []string
	script  string   // script that argv runs in the default shell; "" if the call names a program
	workdir string   // as written in the call
	env     []string // variables in addition to those of all commands
	limit   time.Duration
	tty     bool
	// patience is how long exec_command waits for the end. budget is the maximum number of output tokens in the call,
	// or 0.
	patience time.Duration
	budget   int
}

// refusalFor asks Judge about a command and returns its decision. denied means that the command must not run.
func (t *Tools) refusalFor(request commandRequest) (decision policy.Decision, denied bool) {
	if t.options.Judge == nil {
		return decision, false
	}
	dir, problem := t.resolveFolder(request.workdir)
	if problem != "" {
		return decision, false // start reports the problem
	}
	question := policy.Request{Argv: request.argv, Dir: dir}
	if request.script != "" {
		question = policy.Request{Script: request.script, Dir: dir}
	}
	decision = t.options.Judge(question)
	return decision, decision.Action == policy.Refuse
}

// start starts a command. If it could not start, problem tells the model why.
func (t *Tools) start(request commandRequest) (r *runningCommand, problem string) {
	dir, problem := t.resolveFolder(request.workdir)
	if problem != "" {
		return nil, problem
	}
	r = &runningCommand{output: t.options.Outputs.Capture(request.callID), tty: request.tty, limit: request.limit}
	r.clues = sandbox.WatchRefusals(r.output)
	env := append(append(t.env[:len(t.env):len(t.env)], request.env...), "PWD="+dir)
	c := sandbox.Command{Argv: withPrograms(request.argv, t.options.Programs), Dir: dir, Env: env, Output: r.clues}
	if request.tty {
		c.TTY, c.Output = window, &plainLines{to: r.clues}
	}
	var err error
	r.sandbox = t.options.Sandbox
	if r.process, err = r.sandbox.Start(c); err != nil {
		return nil, strings.TrimPrefix(err.Error(), sandbox.ErrNotStarted.Error()+": ")
	}
	r.timer = time.AfterFunc(request.limit, func() {
		r.expired.Store(true)
		r.process.Kill()
	})
	return r, ""
}

// resolveFolder returns the absolute path of a call's working directory. problem tells the model why it cannot be used, or
// is "". This check only prevents mistakes: the sandbox confines commands.
func (t *Tools) resolveFolder(workdir string) (path, problem string) {
	if workdir == "" {
		return t.options.Dir.Path, ""
	}
	path = filepath.Clean(workdir)
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.options.Dir.Path, path)
	}
	info, err := t.options.Dir.Stat(path)
	switch {
	case tools.IsOutside(err):
		return "", fmt.Sprintf("workdir %q is outside %s; give a directory in it, or none and use cd", workdir, t.options.Dir.Path)
	case err != nil:
		return "", fmt.Sprintf("workdir %q: there is no such directory", workdir)
	case !info.IsDir():
		return "", fmt.Sprintf("workdir %q is not a directory", workdir)
	}
	return path, ""
}

// timeLimit returns the time limit of a command that asks for askedMS milliseconds. If it asks for none, the limit is
// byDefault. It never exceeds Options.limit.
func (t *Tools) timeLimit(askedMS float64, byDefault time.Duration) time.Duration {
	if askedMS <= 0 {
		return min(byDefault, t.options.limit)
	}
	return tools.Milliseconds(askedMS, time.Millisecond, t.options.limit)
}
