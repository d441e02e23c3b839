package assembly

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/search"
)

// externalTools are the tools of MCP servers, the job and the embedding program.
type externalTools struct {
	all         []search.Candidate
	deferred    []string     // names of the tools that the model has to search for
	searchTool  string       // name of the offered search tool, or ""
	searchTools []tools.Tool // both forms of the search tool, if there are deferred tools
}

// externalTools returns the tools of MCP servers, the job and the embedding program. Those of servers are missing before
// the servers start.
func (a *Agent) externalTools(outputs *tools.Outputs) (externalTools, error) {
	all := append(a.dynamic.Tools(outputs), a.servers.Tools()...)
	for _, tool := range a.Tools {
		tool.Foreign = true
		all = append(all, search.Candidate{Tool: tool, Source: "the program"})
	}
	for i, tool := range all {
		if text, changed := a.hookAnswers.descriptions[tool.Spec.Name]; changed {
			all[i].Spec.Description = text
		}
	}
	external := externalTools{all: all}
	allowed := a.allowedCandidates(all)
	deferred := search.Deferred(allowed)
	deniesSearch := slices.ContainsFunc(a.Job.Tools.Deny, search.Names)
	switch {
	case len(deferred) == 0:
		return external, nil
	case a.toolset.Code: // scripts find deferred tools without a search tool
	case deniesSearch && len(allowed) > search.MaxOffered:
		return external, outcome.Stopf(outcome.InvalidInput, "too_many_tools",
			"tools.deny has the tool that searches for others (%s, or %s), and there are %d tools of servers and the job, and a model gets at most %d; remove the name from tools.deny, or offer fewer by tools.allow.",
			search.BuiltinName, search.FunctionName, len(allowed), search.MaxOffered)
	case deniesSearch:
		return external, nil
	default:
		external.searchTools, external.searchTool = search.Tools(deferred), search.FunctionName
		if a.Model.SupportsToolSearch() {
			external.searchTool = search.BuiltinName
		}
	}
	for _, c := range deferred {
		external.deferred = append(external.deferred, c.Spec.Name)
	}
	return external, nil
}

// allowedCandidates returns those of all tools that the job allows.
func (a *Agent) allowedCandidates(all []search.Candidate) []search.Candidate {
	return slices.DeleteFunc(slices.Clone(all), func(t search.Candidate) bool { return !allowsTool(a.Job, t.Spec.Name) })
}

// tools returns all external tools, including the search tools.
func (e externalTools) tools() []tools.Tool {
	all := make([]tools.Tool, len(e.all))
	for i, t := range e.all {
		all[i] = t.Tool
	}
	return append(all, e.searchTools...)
}

// offeredNames returns the names of the tools to offer: ownTools, the external tools that are not deferred, and the search
// tool. ownTools may name deferred tools from tools.allow, which it leaves out.
func (e externalTools) offeredNames(ownTools []string) []string {
	offered := slices.DeleteFunc(ownTools, func(name string) bool { return slices.Contains(e.deferred, name) || search.Names(name) })
	for _, t := range e.all {
		if !slices.Contains(e.deferred, t.Spec.Name) {
			offered = append(offered, t.Spec.Name)
		}
	}
	if e.searchTool != "" {
		offered = append(offered, e.searchTool)
	}
	return offered
}
