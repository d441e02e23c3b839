package worker

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/opencode"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/plan"
)

// family is a set of tools that models know from another agent, in the place of agent-ci's own.
type family struct {
	ways agent.Ways
	// works makes the tools by which an agent works, and reads those of an agent that changes nothing. A
	// tool that the model is not told of answers all the same.
	works func(a *Agent, box *toolbox, o files.Options, patcher *patch.Patcher) []tools.Tool
	reads func(a *Agent, o files.Options) []tools.Tool
}

// families are by model.tools, which is the name that their tools have in package dialect.
var families = map[string]family{dialect.OpenCode: {openCodeWays(), (*Agent).openCodeTools, (*Agent).openCodeReads}}

// borrowed reports whether the model has the tools of another agent.
func (s toolset) borrowed() bool {
	_, known := families[s.family]
	return known
}

// openCodeWays are how a model with the tools of OpenCode does what every agent does.
func openCodeWays() agent.Ways {
	ways := agent.Calling()
	ways.Plan, ways.Edit, ways.Read = "call `todowrite`", "with `edit`, and `write` for whole files", "with read"
	return ways
}

func (a *Agent) openCodeTools(box *toolbox, o files.Options, patcher *patch.Patcher) []tools.Tool {
	all := opencode.New(opencode.Options{
		Files: o, Seen: &a.files, Sees: a.suits.sees, Patcher: patcher, Take: a.takePlan, Plan: a.currentPlan,
	})
	return append([]tools.Tool{box.commands.Bash()}, append(all, patcher.Tool())...)
}

func (a *Agent) openCodeReads(o files.Options) []tools.Tool {
	return opencode.New(opencode.Options{Files: o, Seen: &a.files, Sees: a.suits.sees})
}

// currentPlan is the plan that the agent told last.
func (a *Agent) currentPlan() plan.Plan {
	var now plan.Plan
	for _, step := range a.work.Plan.Steps {
		now.Steps = append(now.Steps, plan.Step(step))
	}
	return now
}

// changesFiles says whether the tool of a name changes files by itself.
func changesFiles(name string) bool { return dialect.Is(name, dialect.Patches, dialect.Edits) }

// denied are the names that the job denies, as far as the model has tools for them. Who denies
// patches denies other edits as well.
func (s toolset) denied(names []string) []string {
	if !s.borrowed() {
		return names
	}
	denied := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == dialect.WriteStdin })
	if slices.Contains(names, patchTool) {
		denied = append(denied, dialect.Named(dialect.Edits)...)
	}
	return denied
}

// names says whether one of some names is that of a tool. The tools of another agent answer to those of
// agent-ci's that do the same.
func (s toolset) names(some []string, tool string) bool {
	return slices.ContainsFunc(some, func(name string) bool {
		return name == tool || s.borrowed() && (tools.Means(name, tool) || name == patchTool && dialect.Is(tool, dialect.Edits))
	})
}
