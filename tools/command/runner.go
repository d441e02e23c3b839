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

type Options struct {
	Sandbox *sandbox.Sandbox
	Outputs *tools.Outputs
	Dir     tools.Folder  // the working directory
	Env     []string      // all of the environment but what the tools force
	limit   time.Duration // of one command; 0 means defaultLimit
	// Shell is the model's form of shell: Function, ShellAction or LocalShellAction.
	Shell tools.Form
	// Judge is asked before a command starts, from several goroutines; nil lets all.
	Judge func(policy.Request) policy.Decision
	// Programs is a folder of Env's PATH to append for login shells, which reset PATH. May be "".
	Programs string
	// Patch applies a patch with paths relative to dir, an absolute path. It replaces commands that
	// only apply one; their calls mutate. May be nil.
	Patch func(ctx context.Context, dir, text string) (tools.Result, error)
	// RecordedReturn returns the earlier return of a replayed exec_command or write_stdin call, which then
	// returns alike. May be nil.
	RecordedReturn func(ctx context.Context, call tools.Call) RecordedReturn
}

// RecordedReturn is the earlier return of a replayed call. The zero value is unknown.
type RecordedReturn struct {
	Ended   bool // its command had ended
	Session int  // in which the command ran on; 0 for none
}

// forcedEnv overrides the commands' environment: output without colour, pager or other languages, like
// the reference implementation.
var forcedEnv = []string{
	"NO_COLOR=1", "TERM=dumb", "COLORTERM=",
	"LANG=C.UTF-8", "LC_CTYPE=C.UTF-8", "LC_ALL=C.UTF-8",
	"PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat",
}

// Tools runs the commands of a run. Close ends its sessions.
type Tools struct {
	options  Options
	env      []string
	shell    string // of commands that name none
	sessions sessions
}

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

// All returns the tools: exec_command, write_stdin, shell_command, shell.
func (t *Tools) All() []tools.Tool {
	return []tools.Tool{
		t.tool(execSpec, t.execLaunches, t.execCommand),
		{Spec: stdinSpec, Run: tools.Decoded(t.writeStdin)},
		t.tool(shellCommandSpec, t.shellCommandLaunches, t.runShell),
		t.tool(shellSpec(t.options.Shell), t.shellLaunches, t.runShell),
	}
}

// tool runs the commands found by launches. A call mutates if one of them only applies a patch.
func (t *Tools) tool(
	spec tools.Spec, launches func(tools.Call) ([]commandRequest, error), run func(context.Context, tools.Call, []commandRequest) (tools.Result, error),
) tools.Tool {
	patches := func(l commandRequest) bool {
		_, patches := t.patchIn(l.argv)
		return patches
	}
	return tools.Tool{
		Spec: spec,
		Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
			all, err := launches(call)
			switch {
			case err != nil && call.Form != tools.Function:
				return tools.Refuse(fmt.Sprintf("the action cannot be carried out: %v", err)), nil
			case err != nil:
				return tools.Result{}, err
			}
			return run(ctx, call, all)
		},
		MutatesCall: func(call tools.Call) bool {
			all, err := launches(call)
			return err == nil && slices.ContainsFunc(all, patches)
		},
	}
}

// Close kills running sessions and waits. No call may be in progress; later commands end with the
// sandbox.
func (t *Tools) Close() {
	for _, s := range t.sessions.removeAll() {
		s.discard()
	}
}

// startedCommand is a started command.
type startedCommand struct {
	sandbox *sandbox.Sandbox
	process *sandbox.Process
	output  *tools.Capture
	clues   *sandbox.RefusalClues // in what it prints
	tty     bool
	limit   time.Duration
	timer   *time.Timer // kills the process at its limit
	expired atomic.Bool
}

// commandRequest is a requested command.
type commandRequest struct {
	callID  string
	argv    []string
	script  string   // that argv has a shell of our choice run; "" where the call names a program
	workdir string   // as the call has it
	env     []string // besides the one that all commands have
	limit   time.Duration
	tty     bool
	// patience is how long exec_command waits for the end, and budget how many tokens of
	// output the call asks for; 0 for none.
	patience time.Duration
	budget   int
}

// refusalFor judges a command.
func (t *Tools) refusalFor(l commandRequest) (d policy.Decision, denied bool) {
	if t.options.Judge == nil {
		return d, false
	}
	dir, problem := t.folder(l.workdir)
	if problem != "" {
		return d, false // start says so
	}
	asked := policy.Request{Argv: l.argv, Dir: dir}
	if l.script != "" {
		asked = policy.Request{Script: l.script, Dir: dir}
	}
	d = t.options.Judge(asked)
	return d, d.Action == policy.Refuse
}

// start starts a command; problem is in words for the model.
func (t *Tools) start(l commandRequest) (r *startedCommand, problem string) {
	dir, problem := t.folder(l.workdir)
	if problem != "" {
		return nil, problem
	}
	r = &startedCommand{output: t.options.Outputs.Capture(l.callID), tty: l.tty, limit: l.limit}
	r.clues = sandbox.WatchRefusals(r.output)
	env := append(append(t.env[:len(t.env):len(t.env)], l.env...), "PWD="+dir)
	c := sandbox.Command{Argv: withPrograms(l.argv, t.options.Programs), Dir: dir, Env: env, Output: r.clues}
	if l.tty {
		c.TTY, c.Output = window, &plainLines{to: r.clues}
	}
	var err error
	r.sandbox = t.options.Sandbox
	if r.process, err = r.sandbox.Start(c); err != nil {
		return nil, strings.TrimPrefix(err.Error(), sandbox.ErrNotStarted.Error()+": ")
	}
	r.timer = time.AfterFunc(l.limit, func() {
		r.expired.Store(true)
		r.process.Kill()
	})
	return r, ""
}

// folder returns the absolute working directory of a call. It prevents mistakes; the sandbox
// confines commands.
func (t *Tools) folder(workdir string) (path, problem string) {
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

// limit returns the time limit for a requested number of milliseconds.
func (t *Tools) limit(askedMS float64, otherwise time.Duration) time.Duration {
	if askedMS <= 0 {
		return min(otherwise, t.options.limit)
	}
	return tools.Milliseconds(askedMS, time.Millisecond, t.options.limit)
}
