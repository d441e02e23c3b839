package sandboxcommand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// machine is where commands of a test run.
type machine struct {
	gittest.Repo
	state   string // where working files go
	options Options
}

// newMachine has a checkout whose base commit has these files; nil makes a folder
// without git.
func newMachine(t *testing.T, files map[string]string) machine {
	t.Helper()
	repo := gittest.Repo{T: t, Dir: filepath.Join(realTemp(t), "work")}
	must.Do(t, os.Mkdir(repo.Dir, 0o755))
	repo.WriteAll(files)
	if files != nil {
		repo.Git("init", "--quiet", "--initial-branch=main")
		repo.Git("add", "--all")
		repo.Git("commit", "--quiet", "--allow-empty", "--message=first")
	}
	state := t.TempDir()
	environ := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + state}
	return machine{repo, state, Options{Dir: repo.Dir, Environ: environ}}
}

// realTemp is a folder without links on its way.
func realTemp(t *testing.T) string {
	t.Helper()
	return must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
}

// with has more variables.
func (m machine) with(variables ...string) machine {
	m.options.Environ = slices.Concat(m.options.Environ, variables)
	return m
}

// wantNothingLeft makes sure that no working files are there.
func (m machine) wantNothingLeft(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(m.state, "agent-ci", "runs"))
	if len(left) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, %v is left", left, err)
	}
}

func TestReadsSandboxConfiguration(t *testing.T) {
	const file = ".github/agent-ci.yml"
	readOnly := map[string]string{file: "version: 1\npolicy: {sandbox: read-only, network: none}\n"}
	for name, c := range map[string]struct {
		files   map[string]string
		change  func(m *machine)
		sandbox string
		network string
		reason  string
	}{
		"nothing":              {map[string]string{}, nil, "workspace-write", "loopback", ""},
		"a folder without git": {nil, nil, "workspace-write", "loopback", ""},
		"the base commit":      {readOnly, nil, "read-only", "none", ""},
		"not the work tree":    {map[string]string{}, func(m *machine) { m.Write(file, readOnly[file]) }, "workspace-write", "loopback", ""},
		"a variable":           {readOnly, func(m *machine) { *m = m.with("AGENT_CI_POLICY_NETWORK=full") }, "read-only", "full", ""},
		"what is asked":        {readOnly, func(m *machine) { m.options.Mode, m.options.Network = "workspace-write", "full" }, "workspace-write", "full", ""},
		"built in":             {readOnly, func(m *machine) { m.options = m.with("AGENT_CI_POLICY_NETWORK=full").options.BuiltIn() }, "workspace-write", "loopback", ""},
		"a mistake":            {map[string]string{file: "version: 1\npolicy: {sandbox: everything}\n"}, nil, "", "", "job"},
		"past the mistake":     {map[string]string{file: "version: 1\npolicy: {sandbox: everything}\n"}, func(m *machine) { m.options = m.options.BuiltIn() }, "workspace-write", "loopback", ""},
		"no folder":            {nil, func(m *machine) { m.options.Dir += "/none" }, "", "", "no_such_path"},
		"files in the checkout": {readOnly, func(m *machine) {
			*m = m.with("XDG_STATE_HOME=" + m.Dir + "/state")
		}, "", "", "run_directory"},
		"a bare repository": {map[string]string{}, func(m *machine) { m.Git("config", "core.bare", "true") }, "", "", "unsupported_checkout"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, c.files)
			if c.change != nil {
				c.change(&m)
			}
			p, err := Prepare(t.Context(), m.options)
			defer m.wantNothingLeft(t)
			if c.reason != "" {
				outcometest.Want(t, err, c.reason)
				return
			}
			must.Do(t, err)
			if got := p.Job.Policy; got.Sandbox != c.sandbox || got.Network.String() != c.network {
				t.Errorf("it is %s and %s", got.Sandbox, got.Network)
			}
			must.Do(t, p.Close())
		})
	}
}

func TestPreparesFolderWithAndWithoutCheckout(t *testing.T) {
	m := newMachine(t, map[string]string{"sub/file": ""})
	link := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink(m.Dir, link))
	unborn := newMachine(t, nil)
	unborn.Git("init", "--quiet")
	plain := newMachine(t, nil)
	for name, c := range map[string]struct {
		machine
		from, root string
		noCheckout error
	}{
		"the checkout":    {m, m.Dir, m.Dir, nil},
		"a folder of it":  {m, filepath.Join(link, "sub"), m.Dir, nil},
		"without git":     {plain, plain.Dir, plain.Dir, gitops.ErrNotRepository},
		"without commits": {unborn, unborn.Dir, unborn.Dir, gitops.ErrNoCommit},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Dir = c.from
			p := must.Get(Prepare(t.Context(), c.options))(t)
			real, err := filepath.EvalSymlinks(c.from)
			if err != nil || p.Dir != real || p.Workspace.Root() != c.root {
				t.Errorf("it is %s in %s, %v", p.Dir, p.Workspace.Root(), err)
			}
			if !errors.Is(p.NoCheckout, c.noCheckout) || (p.Workspace.Checkout() == nil) != (c.noCheckout != nil) {
				t.Errorf("there is %v, since %v", p.Workspace.Checkout(), p.NoCheckout)
			}
			boxes, err := p.Sandboxes(nil)
			if err != nil || boxes.Root != c.root || boxes.Dir != real || !p.Record.Has(confine.ProgramsFolder) {
				t.Errorf("%v, %v", boxes, err)
			}
			must.Do(t, p.Close())
			c.wantNothingLeft(t)
		})
	}
}

func TestPreparesNothingAfterCancel(t *testing.T) {
	m := newMachine(t, map[string]string{})
	stopped, stop := context.WithCancel(t.Context())
	stop()
	must.Is(t, context.Canceled, must.Err(Prepare(stopped, m.options)), "the error")
	m.wantNothingLeft(t)
}

// unconfined opens a session that any machine has.
func unconfined(t *testing.T, m machine) *Session {
	t.Helper()
	m.options.Mode = "danger-full-access"
	return must.Get(Open(t.Context(), m.options))(t)
}

func TestConfinesCommandsLikeAgents(t *testing.T) {
	m := newMachine(t, map[string]string{
		".github/agent-ci.rules": `prefix_rule(pattern = ["env"], decision = "forbidden", justification = "show nothing")` + "\n",
	}).with("GITHUB_TOKEN=ghs_0123456789abcdef0123456789abcdef0123", "AGENT_CI_LIMITS_TURN=3")
	s := unconfined(t, m)
	outcometest.Want(t, must.Err(s.Start(sandbox.Command{Argv: []string{"env"}})), "command")
	must.Is(t, sandbox.ErrNotStarted, must.Err(s.Start(sandbox.Command{Argv: []string{"no-such-program"}})), "a program that is not there")
	var out bytes.Buffer
	started, err := s.Start(sandbox.Command{
		Argv: []string{"sh", "-c", `pwd; echo "token: ${GITHUB_TOKEN:-none}"; basename $(command -v apply_patch)`}, Output: &out,
		Dir: "/", Env: []string{"GITHUB_TOKEN=of-the-caller"}, // neither is the caller's to say
	})
	must.Do(t, err)
	must.Same(t, 0, must.Get(started.Wait())(t).ExitCode)
	must.Same(t, m.Dir+"\ntoken: none\napply_patch\n", out.String())
	warnings := s.Warnings()
	if len(warnings) != 2 || !strings.Contains(warnings[0], "AGENT_CI_LIMITS_TURN is set") || warnings[1] != confine.UnconfinedNotice {
		t.Errorf("the warnings are %q", warnings)
	}
	must.Do(t, s.Close())
	m.wantNothingLeft(t)
}

func TestCloseEndsOnlyOwnCommands(t *testing.T) {
	m := newMachine(t, nil)
	first, second := unconfined(t, m), unconfined(t, m)
	started := must.Get(first.Start(sandbox.Command{Argv: []string{"sleep", "1000"}}))(t)
	must.Do(t, second.Close())
	select {
	case <-started.Done():
		t.Error("the end of another session ends it")
	default:
	}
	must.Same(t, 1, len(must.Get(os.ReadDir(filepath.Dir(first.prepared.Record.Path())))(t)), "is left of two")
	must.Do(t, first.Close())
	<-started.Done()
	m.wantNothingLeft(t)
}

func TestFailedOpenLeavesNothing(t *testing.T) {
	m := newMachine(t, map[string]string{".github/agent-ci.rules": "nonsense("})
	_, err := Open(t.Context(), m.options)
	outcometest.Want(t, err, "rules")
	m.wantNothingLeft(t)
	m = newMachine(t, map[string]string{"licence": "", ".github/agent-ci.yml": "version: 1\npolicy: {deny_read: [licence]}\n"})
	_, err = Open(t.Context(), m.options)
	outcometest.Want(t, err, "deny_read_tracked")
	m.wantNothingLeft(t)
	m.options.Environ = []string{"XDG_STATE_HOME=" + filepath.Join(m.Dir, "licence")} // a file
	m.options.Dir = t.TempDir()
	_, err = Open(t.Context(), m.options)
	outcometest.Want(t, err, "run_directory")
	if text := fmt.Sprint(err); strings.Contains(text, "--out") || !strings.Contains(text, "XDG_STATE_HOME") {
		t.Errorf("%s: agent-ci sandbox has no flag --out, and needs XDG_STATE_HOME", text)
	}
}

func TestRemovesFilesOfKilledCommands(t *testing.T) {
	m := newMachine(t, nil)
	old := filepath.Join(m.state, "agent-ci", "runs", record.CommandFolderPrefix+"20200101T000000Z-00000000")
	must.Do(t, os.MkdirAll(filepath.Join(old, "state"), 0o700))
	p := must.Get(Prepare(t.Context(), m.options))(t)
	if err := os.RemoveAll(p.Record.Path()); err != nil { // by somebody who cleans up
		t.Fatal(err)
	}
	must.Do(t, p.Close())
	m.wantNothingLeft(t)
}
