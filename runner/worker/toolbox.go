package worker

import (
	"context"
	"io"
	"os"
	"sync"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/patch"
)

// toolbox is what the agent works with until its change is taken: the tools,
// and the processes that they started.
type toolbox struct {
	sandbox  *sandbox.Sandbox
	commands *command.Tools
	root     *os.Root // the working directory
}

// equip makes the tools. Each attempt has new ones: those of the last attempt
// died with its processes.
func (a *Agent) equip(ctx context.Context) (err error) {
	box := &toolbox{sandbox: sandbox.Later(ctx, a.Sandboxes.Options(confine.Agent()))}
	if box.root, err = a.Workspace.OpenWorkDir(a.Job.Repository.Path); err != nil {
		return err
	}
	a.tools = box
	outputs := &tools.Outputs{Store: outputStore{a.Record.Directory}, Redact: a.Record.Redact}
	registry, err := a.suits.registry(a.kit(ctx, box, outputs))
	if err != nil {
		return err
	}
	if a.unpatchable == "" {
		a.Sandboxes.LinkProgram(patchTool)
	}
	a.use(registry, outputs)
	return nil
}

// use has the calls of the conversation run by the tools of a registry.
func (a *Agent) use(registry *tools.Registry, outputs *tools.Outputs) {
	dispatcher := &tools.Dispatcher{Registry: registry, Outputs: outputs, Observer: a.conversation, Offered: a.suits.offered()}
	if a.Job.Policy.Network.Listed() {
		dispatcher.Hooks = append(dispatcher.Hooks, a.Sandboxes.Hosts())
	}
	a.conversation.Tools = dispatcher
}

// kit has what the tools of a toolbox work with.
func (a *Agent) kit(ctx context.Context, box *toolbox, outputs *tools.Outputs) kit {
	dir, view, ignored := a.workDir(), a.Sandboxes.View(), ignoredBy(ctx, a.Workspace.Checkout())
	patcher := patch.New(patch.Options{
		Dir: dir, Root: box.root, Offer: a.suits.patch, View: view, Protect: a.whyProtected, Ignored: ignoredFile(ignored, dir),
		Keep: a.keepPatch, Journal: a.Workspace.JournalPatch(box.root, view),
	})
	box.commands = command.New(command.Options{
		Sandbox: box.sandbox, Outputs: outputs, Dir: dir, Env: a.Sandboxes.AgentEnv(), Programs: a.Record.Join(confine.ProgramsFolder),
		Shell: a.suits.shell, Patch: a.patchInCommand(patcher), Judge: a.Sandboxes.Judge(),
	})
	k := kit{
		takePlan: a.takePlan, commands: box.commands, patcher: patcher,
		files: files.Options{Dir: dir, Root: box.root, Outputs: a.Record.Join(record.OutputsFolder), Checkout: ignored, View: view},
	}
	if a.Ask != nil {
		k.ask = a.ask
	}
	return k
}

// ignoredBy says what searches and listings leave out: what git would not commit.
// An index that can't be read ends the run elsewhere; here patterns decide alone.
func ignoredBy(ctx context.Context, checkout *gitops.Checkout) files.Checkout {
	return files.Checkout{
		Top: checkout.Root(), Exclude: checkout.Exclude(), IgnoreCase: checkout.IgnoresCase(),
		Tracked: sync.OnceValue(func() []string {
			tracked, _ := checkout.Tracked(ctx)
			return tracked
		}),
	}
}

// ignoredFile says of a file below dir whether git ignores it. A file of which that
// can't be found out is not said to be.
func ignoredFile(checkout files.Checkout, dir string) func(name string) bool {
	return func(name string) bool {
		ignored, err := checkout.Ignores(dir, name)
		return err == nil && ignored
	}
}

// close ends what the agent's commands left running.
func (t *toolbox) close() error {
	t.commands.Close()
	err := t.sandbox.Close()
	_ = t.root.Close()
	return err
}

// outputStore keeps whole outputs in the run directory.
type outputStore struct{ dir *record.Directory }

func (s outputStore) Create(name string) (io.WriteCloser, string, error) {
	f, err := s.dir.Create(name)
	if err != nil {
		return nil, "", err
	}
	return f, s.dir.Join(name), nil
}
