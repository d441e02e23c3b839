package worker

import (
	"context"
	"slices"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools/search"
)

// newServers are the servers of tools of a job. None is started yet.
func (a *Agent) newServers() *extensions.Servers {
	return extensions.New(extensions.Options{
		Record: a.Record, Sandboxes: a.Sandboxes, Job: a.Job, Environ: a.Sandboxes.Environ, WorkDir: a.workDir(), Recorded: a.Recorded, Taken: a.taken(),
	})
}

// taken are names that no tool of a server gets.
func (a *Agent) taken() (names []string) {
	for _, tool := range a.dynamic.Told() {
		names = append(names, tool.Spec.Name)
	}
	for _, tool := range a.Tools {
		names = append(names, tool.Spec.Name)
	}
	return names
}

// startServers starts the servers of tools that do not run. What the model is told of tools
// stays as it is from then on.
func (a *Agent) startServers(ctx context.Context, box *sandbox.Sandbox) error {
	if len(a.Job.MCPServers) == 0 {
		return nil
	}
	if !a.Sandboxes.Apart() { // what servers leave behind ends with the agent's commands, though there may be none
		if err := box.Ready(); err != nil {
			return err
		}
	}
	if err := a.servers.Start(ctx, box); err != nil {
		return err
	}
	return a.useTools(ctx, a.tools)
}

// freezeTools settles what the model is told of tools, once.
func (a *Agent) freezeTools(ctx context.Context) (err error) {
	if a.frozen {
		return nil
	}
	if err := a.askDefinitions(ctx); err != nil {
		return err
	}
	a.frozen = true
	if len(a.hooked.descriptions) > 0 && (len(a.deferred) > 0 || a.suits.code) { // they are found, and declared, by the words that hooks gave
		if err := a.useTools(ctx, a.tools); err != nil {
			return err
		}
	}
	a.conversation.Settings.Tools, err = definitions(a.specs(), a.Job.Tools.Hosted)
	return err
}

// known leaves out of names those that may be of servers which were not started yet, and those by
// which models look for tools: there may be none to be looked for.
func (a *Agent) known(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return search.Names(name) || !a.servers.Settled() && a.servers.MayBe(name)
	})
}

// allow are the names that the job allows alone; none for all. What looks for others is one of
// them: it finds nothing that is not allowed.
func (a *Agent) allow(outside outsiders) []string {
	named := a.Job.Tools.Allow
	allow := a.known(named)
	switch {
	case len(named) > 0 && a.suits.code:
		return append(allow, scriptTools...)
	case len(named) > 0 && outside.search != "":
		return append(allow, search.BuiltinName, search.FunctionName)
	case len(allow) == 0 && !slices.ContainsFunc(named, a.servers.MayBe):
		return named // with nothing but what looks for others nothing could be called
	}
	return allow
}

// endServers ends the servers that live as long as the agent's sandbox.
func (a *Agent) endServers() {
	if err := a.servers.EndAttempt(); err != nil {
		a.Record.Warn("processes_left", "%s.", outcome.Sentence(err.Error()))
	}
}

// Servers are those of tools that were started, with what became of them.
func (a *Agent) Servers() []transcript.MCPServer { return a.servers.Known() }

// Close ends what lives longer than an attempt. The agent works no more after that.
func (a *Agent) Close() {
	if err := a.servers.Close(); err != nil {
		a.Record.Warn("processes_left", "%s.", outcome.Sentence(err.Error()))
	}
}
