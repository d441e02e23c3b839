package confine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// withBase has a tree of the base in the run directory.
func (f forks) withBase(t *testing.T) forks {
	t.Helper()
	dir := f.Record.Join("state/base")
	base := must.Get(f.checkout.SetBase(gitops.BaseSpec{}))(t)
	must.Do(t, f.checkout.Materialise(t.Context(), gitops.MaterialiseOptions{Dir: dir, TreeForCommands: gitops.TreeForCommands{Tree: base.Tree, Base: base}}))
	f.BaseTree = func(context.Context) (string, error) { return dir, nil }
	return f
}

func (f forks) beside(t *testing.T, box *sandbox.Sandbox, b Sidecar) *sandbox.Sandbox {
	t.Helper()
	opened := must.Get(f.OpenSidecar(t.Context(), box, b))(t)
	t.Cleanup(func() { opened.Close() })
	return opened
}

func TestSidecarSeesPermittedWorkspace(t *testing.T) {
	f := forking(t).withBase(t)
	f.Job.MCPServers = map[string]job.MCPServer{
		"reads": {Command: "x", Workspace: SidecarRead}, "writes": {Command: "x", Workspace: SidecarWrite},
	}
	must.Do(t, f.parent.Close())
	agent := f.open(t, AgentPlace())
	f.run(t, agent, "echo agent >dir/file")
	base := f.Record.Join("state/base")

	none := f.beside(t, agent, Sidecar{Name: "mcp-none", BaseTree: true})
	must.Same(t, "old\ndir\ntext\nold\nbase\n", f.run(t, none, "cat dir/file; ls; ! echo x 2>/dev/null >dir/file; cat "+base+"/dir/file; ls "+filepath.Dir(base)), "without a workspace it sees")
	reads := f.beside(t, agent, Sidecar{Name: "mcp-reads", Workspace: SidecarRead, BaseTree: true})
	must.Same(t, "agent\nsetup\nold\n", f.run(t, reads, "cat dir/file made/one; ! echo x 2>/dev/null >dir/file; ! echo x 2>/dev/null >new; cat "+base+"/dir/file"), "one that reads sees")
	writes := f.beside(t, agent, Sidecar{Name: "mcp-writes", Workspace: SidecarWrite})
	f.run(t, writes, "cat dir/file; echo server >dir/file; ! echo x 2>/dev/null >.git/HEAD; ! ls "+base+" 2>/dev/null")
	must.Same(t, "server\n", f.run(t, agent, "cat dir/file"), "the agent sees")
	must.Same(t, "server\n", f.run(t, reads, "cat dir/file"), "one that reads sees")
	alone := f.beside(t, nil, Sidecar{Name: "hooks", Workspace: SidecarRead})
	must.Same(t, "server\nsetup\n", f.run(t, alone, "cat dir/file made/one"), "without the agent's sandbox it sees")
}

func TestSidecarSeesSetupFiles(t *testing.T) {
	f := forking(t).withBase(t)
	must.Do(t, f.parent.Close())
	home := f.Environ.Home()
	if home == "" {
		t.Skip("there is no home folder")
	}
	setup := f.open(t, Place{Scratch: SetupScratch})
	f.run(t, setup, "mkdir -p ~/.agent-ci-installed && echo here >~/.agent-ci-installed/program")
	must.Do(t, setup.Close())
	agent := f.open(t, AgentPlace())
	for _, name := range []string{"mcp-one", "mcp-two"} {
		box := f.beside(t, agent, Sidecar{Name: name, BaseTree: true})
		must.Same(t, "here\n", f.run(t, box, "cat ~/.agent-ci-installed/program; echo "+name+" >~/.agent-ci-installed/program"), name)
	}
	must.Same(t, "here\n", f.run(t, agent, "cat ~/.agent-ci-installed/program"), "the agent sees")
	if _, err := os.Lstat(filepath.Join(home, ".agent-ci-installed")); !strings.Contains(err.Error(), "no such") {
		t.Errorf("the user's folder was changed: %v", err)
	}
}

// A server may be started three times until a revision is settled, and as often once it has ended.
// What is lent to none any more is no copy in silence.
func TestLendsWorkspacePerServerStart(t *testing.T) {
	f := forking(t)
	f.Job.MCPServers = map[string]job.MCPServer{"reads": {Command: "x", Workspace: SidecarRead}}
	must.Do(t, f.parent.Close())
	agent, reads := f.open(t, AgentPlace()), Sidecar{Name: "mcp-reads", Workspace: SidecarRead}
	for i := range 6 {
		box := f.beside(t, agent, reads)
		want := string(rune('a' + i))
		f.run(t, agent, "echo "+want+" >dir/file")
		must.Same(t, want+"\n", f.run(t, box, "cat dir/file"), i+1)
		must.Do(t, box.Close())
	}
	if box, err := f.OpenSidecar(t.Context(), agent, reads); err == nil || !strings.Contains(err.Error(), "too often") {
		t.Errorf("it is opened once more: %v", err)
		box.Close()
	}
}
