package assembly

import (
	"context"
	"slices"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools/search"
)

// reservedNames returns the names of the job's and the embedding program's tools, which tools of MCP servers must not
// have.
func (a *Agent) reservedNames() (names []string) {
	for _, tool := range a.Job.Tools.Dynamic {
		names = append(names, tool.Name)
	}
	for _, tool := range a.Tools {
		names = append(names, tool.Spec.Name)
	}
	return names
}

// startServers starts the MCP servers that do not run, and offers their tools.
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

// fixDefinitions asks the hooks about the tools' definitions, and sets the definitions for the rest of the run. Later
// calls do nothing.
func (a *Agent) fixDefinitions(ctx context.Context) (err error) {
	if a.definitionsFixed {
		return nil
	}
	if err := a.askHooksForDescriptions(ctx); err != nil {
		return err
	}
	a.definitionsFixed = true
	isSearchedByDescription := len(a.deferred) > 0 || a.toolset.Code
	if len(a.hookAnswers.descriptions) > 0 && isSearchedByDescription { // search must use the new descriptions
		if err := a.useTools(ctx, a.toolbox); err != nil {
			return err
		}
	}
	a.conversation.Settings.Tools, err = toolDefinitions(a.specsToDefine(), a.Job.Tools.Hosted)
	return err
}

// withoutUnknown removes the names that the registry may not know: those of search tools, and of tools of servers that
// have not started yet.
func (a *Agent) withoutUnknown(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		mayAppearLater := !a.servers.ToolsFixed() && a.servers.MayBelongToUnstarted(name)
		return search.Names(name) || mayAppearLater
	})
}

// allowedNames returns the names of the tools that the job allows; an empty list means all. It adds the script tools
// or the search tools if the model needs them to reach allowed tools.
func (a *Agent) allowedNames(external externalTools) []string {
	named := a.Job.Tools.Allow
	if len(named) == 0 {
		return named
	}
	allow := a.withoutUnknown(named)
	switch {
	case a.toolset.Code:
		return append(allow, scriptTools...)
	case external.searchTool != "":
		return append(allow, search.BuiltinName, search.FunctionName)
	case len(allow) == 0 && !slices.ContainsFunc(named, a.servers.MayBelongToUnstarted):
		return named // only search tools or unknown tools are allowed: keep the names, since none would mean all
	}
	return allow
}

// Close stops all MCP servers. Call it when the agent will not work again.
func (a *Agent) Close() { a.warnOfProcesses(a.servers.Close()) }
