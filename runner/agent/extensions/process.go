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

// maxLogBytes is the maximum size of a server's saved standard error, in bytes.
const maxLogBytes = 4 << 20

// process is a server's program in its own sandbox.
type process struct {
	sandbox           *sandbox.Sandbox
	log               *os.File
	*attached.Program // nil before it starts
}

// start opens a sandbox beside the agent's and starts the server's program in it. The program's standard error goes
// to a log in the run directory.
func (s *server) start(ctx context.Context) (*mcp.Process, error) {
	base, err := s.baseTree(ctx)
	if err != nil {
		return nil, err
	}
	argv, err := s.argv(base)
	if err != nil {
		return nil, err
	}
	p := new(process)
	if p.log, err = s.openLog(); err != nil {
		return nil, err
	}
	p.sandbox, err = s.Sandboxes.OpenSidecar(ctx, s.agentSandbox, confine.Sidecar{
		Name: "mcp-" + s.name, Network: s.Network, Key: "mcp_servers." + s.name + ".network", Workspace: s.Workspace, BaseTree: true,
	})
	if err != nil {
		return nil, errors.Join(err, p.log.Close())
	}
	logWriter := record.NewLogWriter(p.log, maxLogBytes, s.Record.Redact)
	p.Program, err = attached.Start(p.sandbox.Start, sandbox.Command{Argv: argv, Dir: s.dir(base), Env: s.environment(base)}, attached.Streams{Errors: func(r io.Reader) error {
		defer logWriter.Flush()
		return attached.To(logWriter)(r)
	}})
	if err != nil {
		return nil, errors.Join(s.launchError(err), p.end())
	}
	return &mcp.Process{Output: io.NopCloser(p.Output), Input: p.Input, End: p.end}, nil
}

// baseTree returns the folder with the base commit's tree, or "" if there is none.
func (s *server) baseTree(ctx context.Context) (string, error) {
	if s.Sandboxes.BaseTree == nil {
		return "", nil
	}
	return s.Sandboxes.BaseTree(ctx)
}

// argv returns the server's program and arguments. It returns an error for a program that the agent or a pull
// request could change. base is the folder with the base commit's tree.
func (s *server) argv(base string) ([]string, error) {
	env := s.environment(base)
	home := settings.Environment(env).Get("HOME")
	program := job.ExpandHome(s.Command, home)
	if !strings.Contains(program, "/") {
		if found := s.Sandboxes.LinkedProgram(program, env); found != "" {
			return nil, s.changeableError(found)
		}
	} else {
		if filepath.IsAbs(program) && s.Sandboxes.InWorkspace(program) {
			return nil, s.changeableError(program)
		}
		found, problem := findProgram(program, base, s.Sandboxes.InWorkspace)
		if problem != "" {
			return nil, errors.New(problem + s.SplitHint())
		}
		program = found
	}
	argv, replacer := []string{program}, s.placeholders(base)
	for _, argument := range s.Args {
		argv = append(argv, replacer.Replace(job.ExpandHome(argument, home)))
	}
	return argv, nil
}

// changeableError returns the error for a program that the agent could change.
func (s *server) changeableError(program string) error {
	return outcome.Stopf(outcome.InvalidInput, "mcp_command",
		"The program of the server %s, %s, is in the checkout or in a folder of policy.writable, where the agent could change it; give a relative path, which is read from the base commit, or a program outside.", s.name, program)
}

// dir returns the server's working directory: the job's cwd in the agent's workspace, or else the base commit's
// tree, or else "/". The default is not the workspace, because many programs load code from their working directory.
func (s *server) dir(base string) string {
	switch {
	case s.Cwd != "":
		return filepath.Join(s.Sandboxes.SandboxPath(confine.AgentPlace()), filepath.FromSlash(s.Cwd))
	case base != "":
		return base
	}
	return "/"
}

// launchError adds a hint to the error of a program that did not start. The kernel reports a missing
// working directory as a missing program, so the hint names both.
func (s *server) launchError(err error) error {
	switch {
	case !sandbox.IsMissing(err):
		return err
	case s.Cwd != "":
		return fmt.Errorf("%w; its program, or the folder %s that it is started in (cwd), is not there", err, s.Cwd)
	case strings.Contains(s.Command, "/"):
		return fmt.Errorf("%w%s", err, s.SplitHint())
	}
	return fmt.Errorf("%w; name a program outside of PATH by its path, such as ~/.local/bin/%s", err, s.Command)
}

// placeholders returns the replacer of the variables for folders in the server's arguments.
func (s *server) placeholders(base string) *strings.Replacer {
	pairs := []string{"${" + confine.BaseTreeVariable + "}", base}
	if s.Workspace != confine.SidecarNone {
		pairs = append(pairs, "${"+confine.WorkspaceVariable+"}", s.WorkDir)
	}
	return strings.NewReplacer(pairs...)
}

// environment returns the environment of the server's program.
func (s *server) environment(base string) []string {
	env := s.Sandboxes.SidecarEnv(s.Env.Pass, s.Env.Set)
	if base != "" {
		env = append(env, confine.BaseTreeVariable+"="+base)
	}
	if s.Workspace != confine.SidecarNone {
		env = append(env, confine.WorkspaceVariable+"="+s.WorkDir)
	}
	return env
}

// openLog creates the next unused log file for the server's standard error.
func (s *server) openLog() (log *os.File, err error) {
	name := ""
	for n := 1; name == "" || s.Record.Has(name); n++ {
		name = fmt.Sprintf("%s/%s-%d.log", extensionsFolder, s.name, n)
	}
	if log, err = s.Record.Create(name); err != nil {
		return nil, fmt.Errorf("make log of the server %s: %w", s.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = name
	return log, nil
}

// lastWords returns a sentence with the end of the server's standard error, or "" if it wrote nothing. It is for the
// user of DescribeAll, who gets no log file.
func (s *server) lastWords() string {
	if _, lines := s.lastLines(); lines != "" {
		return " The last lines that it wrote are: " + lines + "."
	}
	return ""
}

// end kills everything in the sandbox, waits for it, and closes the log.
func (p *process) end() error {
	err := p.sandbox.Close()
	if p.Program != nil {
		p.Close()
	}
	return errors.Join(err, p.log.Close())
}
