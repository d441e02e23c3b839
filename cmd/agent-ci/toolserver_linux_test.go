package main_test

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
)

// toolServerRun is a checkout and a server of tools that leaves a grandchild with a pipe open.
type toolServerRun struct {
	workshop
	pipe *os.File // to the grandchild; opened by reach
	path string
}

func newToolServerRun(t *testing.T, session string) toolServerRun {
	t.Helper()
	if confines() != sandbox.LevelFull {
		t.Skip("needs confinement with all layers")
	}
	server := must.Get(helper("toolserver"))(t)
	seen := sandboxtest.Place(t, sandbox.RemoveScratch) // /tmp is not what it is to servers
	r := toolServerRun{workshop: newWorkshop(t), path: filepath.Join(seen, "pipe")}
	program := filepath.Join(seen, "toolserver")
	r.write(program, read(t, server))
	must.Do(t, errors.Join(os.Chmod(program, 0o755), unix.Mkfifo(r.path, 0o644)))
	r.write("job.yml", "version: 1\nname: killed\ntask: {prompt: x}\nmcp_servers: {a: {command: "+program+", args: [-leave="+r.path+"], tools: [hang, echo], start_timeout: 10m}}\n")
	r.write("session.yml", session)
	r.prepare()
	return r
}

// reach opens the pipe to the grandchild. Opening waits until the grandchild reads it.
func (r *toolServerRun) reach(t *testing.T) {
	t.Helper()
	var err error
	if r.pipe, err = os.OpenFile(r.path, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.pipe.Close() })
}

// answer has a scripted model answer the run.
func (r *toolServerRun) answer(t *testing.T) {
	t.Helper()
	const key = "sk-test-0123456789abcdef"
	server := must.Get(modeltest.Start(filepath.Join(r.dir, "session.yml"), modeltest.Options{Key: key}))(t)
	t.Cleanup(server.Close)
	r.env = append(r.env, "OPENAI_BASE_URL="+server.BaseURL(), "OPENAI_API_KEY="+key)
}

// TestRunEndsMCPServers has a server leave a grandchild in a session of its own. No command is
// run in that.
func TestRunEndsMCPServers(t *testing.T) {
	t.Parallel()
	look := []string{"validate", "../job.yml", "--mcp"}
	for _, mode := range []string{"workspace-write", "danger-full-access"} {
		t.Run(mode, func(t *testing.T) { serverEndsWith(t, mode, prepared) })
		t.Run("looked at in "+mode, func(t *testing.T) { serverEndsWith(t, mode, look) })
	}
}

func serverEndsWith(t *testing.T, mode string, args []string) {
	t.Parallel()
	r := newToolServerRun(t, "version: 1\nturns:\n  - output: [{call: mcp__a__echo, arguments: {text: x}}]\n  - output: [{say: Done.}]\n")
	r.env = append(r.env, "AGENT_CI_POLICY_SANDBOX="+mode)
	run, _ := r.command(args...)
	if args[0] == "validate" {
		run.Dir = filepath.Join(run.Dir, "checkout")
	}
	must.Do(t, run.Start())
	r.reach(t)
	must.Is(t, nil, run.Wait(), "the run")
	must.Same(t, true, gone(t, r.pipe, 0), "the grandchild is there after the run")
}

// TestRunResumesAfterKillInCall kills a run in the middle of a call of a server.
func TestRunResumesAfterKillInCall(t *testing.T) {
	t.Parallel()
	r := newToolServerRun(t, `version: 1
turns:
  - output: [{call: mcp__a__hang, arguments: {text: x}}]
  - expect: ["The runner was killed while this call ran"]
    output: [{call: mcp__a__echo, id: again, arguments: {text: said after that}}]
  - output: [{say: Done.}]
  - output: [{say: There is nothing to change.}]
`)
	r.answer(t)
	run, _ := r.command("run", "job.yml", "--repo", "checkout", "--out", "out", "--publish", "none")
	run.Stderr = nil
	said, err := run.StderrPipe()
	if err == nil {
		err = run.Start()
	}
	must.Do(t, err)
	r.reach(t)
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.Contains(lines.Text(), "mcp__a__hang") {
	}
	must.Is(t, nil, run.Process.Kill())
	_ = run.Wait() // it was killed
	must.Same(t, true, gone(t, r.pipe, -1), "the grandchild is there after its run was killed")
	resume, told := r.command("resume", "out")
	must.Do(t, resume.Start())
	r.reach(t)
	if err := resume.Wait(); err != nil || !strings.Contains(told.String(), "no_changes/") {
		t.Errorf("it goes on: %v\n%s", err, told.String())
	}
	transcript, err := os.ReadFile(filepath.Join(r.dir, "out", "transcript.jsonl"))
	if err != nil || !strings.Contains(string(transcript), `"output":"said after that"`) {
		t.Errorf("the server was not asked again: %v", err)
	}
}
