package worker

import (
	"context"
	"slices"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/tools/search"
)

// newServers are the servers of tools of a job. None is started yet.
func (a *Agent) newServers() *extensions.Servers {
	return extensions.New(extensions.Options{
		Record: a.Record, Sandboxes: a.Sandboxes, Job: a.Job, Environ: a.Sandboxes.Environ, WorkDir: a.workDir(), Recorded: a.Recorded, ReservedNames: a.reservedNames(),
	})
}

// reservedNames returns names forbidden to server tools.
func (a *Agent) reservedNames() (names []string) {
	for _, tool := range a.dynamic.Described() {
		names = append(names, tool.Spec.Name)
	}
	for _, tool := range a.Tools {
		names = append(names, tool.Spec.Name)
	}
	return names
}

// startServers starts missing tool servers. Tool descriptions are fixed afterwards.
func (a *Agent) startServers(ctx context.Context, box *sandbox.Sandbox) error {
	if len(a.Job.MCPServers) == 0 {
		return nil
	}
	if !a.Sandboxes.AllowsConcurrent() { // what servers leave behind ends with the agent's commands, though there may be none
		if err := box.Ready(); err != nil {
			return err
		}
	}
	if err := a.servers.Start(ctx, box); err != nil {
		return err
	}
	return a.useTools(ctx, a.toolbox)
}

// freezeTools fixes the tool descriptions, once.
func (a *Agent) freezeTools(ctx context.Context) (err error) {
	if a.toolsFrozen {
		return nil
	}
	if err := a.askDefinitions(ctx); err != nil {
		return err
	}
	a.toolsFrozen = true
	if len(a.hookAnswers.descriptions) > 0 && (len(a.deferred) > 0 || a.toolset.Code) { // they are found, and declared, by the words that hooks gave
		if err := a.useTools(ctx, a.toolbox); err != nil {
			return err
		}
	}
	a.conversation.Settings.Tools, err = definitions(a.specs(), a.Job.Tools.Hosted)
	return err
}

// withoutUnknown removes names of tools from servers not started yet, and of search tools, which may not
// exist.
func (a *Agent) withoutUnknown(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return search.Names(name) || !a.servers.ToolsFixed() && a.servers.MayBelongToUnstarted(name)
	})
}

// allow returns the names allowed by the job; none means all. It includes the search tool, which
// finds allowed tools only.
func (a *Agent) allow(outside externalTools) []string {
	named := a.Job.Tools.Allow
	allow := a.withoutUnknown(named)
	switch {
	case len(named) > 0 && a.toolset.Code:
		return append(allow, scriptTools...)
	case len(named) > 0 && outside.searchTool != "":
		return append(allow, search.BuiltinName, search.FunctionName)
	case len(allow) == 0 && !slices.ContainsFunc(named, a.servers.MayBelongToUnstarted):
		return named // with nothing but what looks for others nothing could be called
	}
	return allow
}

// Close ends servers that outlive an attempt. The agent must not work afterwards.
func (a *Agent) Close() { a.warnOfProcesses(a.servers.Close()) }
