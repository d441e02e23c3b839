package worker

import (
	"context"
	"slices"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools/search"
)

// reservedNames returns the names that tools of servers must not have: those of the job's and the embedding program's
// tools.
func (a *Agent) reservedNames() (names []string) {
	for _, tool := range a.dynamic.Described() {
		names = append(names, tool.Spec.Name)
	}
	for _, tool := range a.Tools {
		names = append(names, tool.Spec.Name)
	}
	return names
}

// startServers starts the MCP servers that do not run, and adds their tools.
func (a *Agent) startServers(ctx context.Context, box *sandbox.Sandbox) error {
	if len(a.Job.MCPServers) == 0 {
		return nil
	}
	if !a.Sandboxes.AllowsConcurrent() { // the end of the agent's sandbox kills what servers leave behind, so it must exist
		if err := box.Ready(); err != nil {
			return err
		}
	}
	if err := a.servers.Start(ctx, box); err != nil {
		return err
	}
	return a.useTools(ctx, a.toolbox)
}

// fixDefinitions asks the hooks about the tools' definitions, and sets the definitions for the rest of the run.
func (a *Agent) fixDefinitions(ctx context.Context) (err error) {
	if a.definitionsFixed {
		return nil
	}
	if err := a.askHooksForDescriptions(ctx); err != nil {
		return err
	}
	a.definitionsFixed = true
	if len(a.hookAnswers.descriptions) > 0 && (len(a.deferred) > 0 || a.toolset.Code) { // they are found, and declared, by the words that hooks gave
		if err := a.useTools(ctx, a.toolbox); err != nil {
			return err
		}
	}
	a.conversation.Settings.Tools, err = definitions(a.specsToDefine(), a.Job.Tools.Hosted)
	return err
}

// withoutUnknown removes names from allowed or denied tools that the registry may not know. These are search tools, and
// tools of servers that did not start yet.
func (a *Agent) withoutUnknown(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return search.Names(name) || !a.servers.ToolsFixed() && a.servers.MayBelongToUnstarted(name)
	})
}

// allowedNames returns the names of the tools that the job allows; none means all. It adds script tools, or the search tools,
// which find only allowed tools.
func (a *Agent) allowedNames(external externalTools) []string {
	named := a.Job.Tools.Allow
	allow := a.withoutUnknown(named)
	switch {
	case len(named) > 0 && a.toolset.Code:
		return append(allow, scriptTools...)
	case len(named) > 0 && external.searchTool != "":
		return append(allow, search.BuiltinName, search.FunctionName)
	case len(allow) == 0 && !slices.ContainsFunc(named, a.servers.MayBelongToUnstarted):
		return named // only search tools or unknown tools are allowed: keep the names, since none would mean all
	}
	return allow
}

// Close ends the servers that outlive attempts. The agent must not work afterwards.
func (a *Agent) Close() { a.warnOfProcesses(a.servers.Close()) }
