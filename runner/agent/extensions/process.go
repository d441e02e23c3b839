package extensions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/attached"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
	"github.com/agent-ci/agent-ci/tools/mcp"
)

// mostLog limits a server's saved standard error, in bytes.
const mostLog = 4 << 20

// process is a server in its own sandbox.
type process struct {
	box               *sandbox.Sandbox
	log               *os.File
	*attached.Program // nil until it is started
}

// start starts the server's program.
func (one *server) start(ctx context.Context) (*mcp.Process, error) {
	base, err := one.baseTree(ctx)
	if err != nil {
		return nil, err
	}
	argv, err := one.argv(base)
	if err != nil {
		return nil, err
	}
	p := new(process)
	if p.log, err = one.openLog(); err != nil {
		return nil, err
	}
	p.box, err = one.Sandboxes.OpenBeside(ctx, one.box, confine.Beside{
		Name: "mcp-" + one.name, Network: one.Network, Key: "mcp_servers." + one.name + ".network", Workspace: one.Workspace, BaseTree: true,
	})
	if err != nil {
		return nil, errors.Join(err, p.log.Close())
	}
	kept := record.NewLogWriter(p.log, mostLog, one.Record.Redact)
	p.Program, err = attached.Start(p.box.Start, sandbox.Command{Argv: argv, Dir: one.dir(base), Env: one.environment(base)}, attached.Streams{Errors: func(r io.Reader) error {
		defer kept.Flush()
		return attached.To(kept)(r)
	}})
	if err != nil {
		return nil, errors.Join(one.notLaunched(err), p.end())
	}
	return &mcp.Process{Output: io.NopCloser(p.Output), Input: p.Input, End: p.end}, nil
}

// baseTree returns the tree of the base commit; "" without one.
func (one *server) baseTree(ctx context.Context) (string, error) {
	if one.Sandboxes.BaseTree == nil {
		return "", nil
	}
	return one.Sandboxes.BaseTree(ctx)
}

// argv returns the program with arguments. Programs writable by the agent or a pull request are
// refused.
func (one *server) argv(base string) ([]string, error) {
	env := one.environment(base)
	home := settings.Environment(env).Get("HOME")
	program := job.ExpandHome(one.Command, home)
	if !strings.Contains(program, "/") {
		if found := one.Sandboxes.Linked(program, env); found != "" {
			return nil, one.changeable(found)
		}
	} else {
		if filepath.IsAbs(program) && one.Sandboxes.InWorkspace(program) {
			return nil, one.changeable(program)
		}
		found, why := findProgram(program, base, one.Sandboxes.InWorkspace)
		if why != "" {
			return nil, errors.New(why + one.SplitHint())
		}
		program = found
	}
	argv, filled := []string{program}, one.filled(base)
	for _, argument := range one.Args {
		argv = append(argv, filled.Replace(job.ExpandHome(argument, home)))
	}
	return argv, nil
}

func (one *server) changeable(program string) error {
	return outcome.Stopf(outcome.InvalidInput, "mcp_command",
		"The program of the server %s, %s, is in the checkout or in a folder of policy.writable, where the agent could change it; give a relative path, which is read from the base commit, or a program outside.", one.name, program)
}

// dir returns the server's working directory. Many programs load code from there, so the job must
// ask for the agent's.
func (one *server) dir(base string) string {
	switch {
	case one.Cwd != "":
		return filepath.Join(one.Sandboxes.Seen(confine.Agent()), filepath.FromSlash(one.Cwd))
	case base != "":
		return base
	}
	return "/"
}

// notLaunched is why the program did not start. The kernel reports a missing folder as a missing
// program.
func (one *server) notLaunched(err error) error {
	switch {
	case !sandbox.IsMissing(err):
		return err
	case one.Cwd != "":
		return fmt.Errorf("%w; its program, or the folder %s that it is started in (cwd), is not there", err, one.Cwd)
	case strings.Contains(one.Command, "/"):
		return fmt.Errorf("%w%s", err, one.SplitHint())
	}
	return fmt.Errorf("%w; name a program outside of PATH by its path, such as ~/.local/bin/%s", err, one.Command)
}

// filled puts the folders into arguments.
func (one *server) filled(base string) *strings.Replacer {
	pairs := []string{"${" + confine.BaseTreeVariable + "}", base}
	if one.Workspace != confine.BesideNone {
		pairs = append(pairs, "${"+confine.WorkspaceVariable+"}", one.WorkDir)
	}
	return strings.NewReplacer(pairs...)
}

// environment returns the server's environment.
func (one *server) environment(base string) []string {
	env := one.Sandboxes.BesideEnv(one.Env.Pass, one.Env.Set)
	if base != "" {
		env = append(env, confine.BaseTreeVariable+"="+base)
	}
	if one.Workspace != confine.BesideNone {
		env = append(env, confine.WorkspaceVariable+"="+one.WorkDir)
	}
	return env
}

// openLog creates a file for the server's standard error.
func (one *server) openLog() (log *os.File, err error) {
	if _, err := one.Record.MakeFolder(folder); err != nil {
		return nil, err
	}
	name := ""
	for n := 1; name == "" || one.Record.Has(name); n++ {
		name = fmt.Sprintf("%s/%s-%d.log", folder, one.name, n)
	}
	if log, err = one.Record.Create(name); err != nil {
		return nil, fmt.Errorf("make log of the server %s: %w", one.name, err)
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.log = name
	return log, nil
}

// lastWords quotes the end of the server's standard error, for a log nobody will see.
func (one *server) lastWords() string {
	if lines := one.lastLines(); lines != "" {
		return " The last lines that it wrote are: " + lines + "."
	}
	return ""
}

// end closes the sandbox, kills everything started inside, and waits.
func (p *process) end() error {
	err := p.box.Close()
	if p.Program != nil {
		p.Close()
	}
	return errors.Join(err, p.log.Close())
}
