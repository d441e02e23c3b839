package worker

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/opencode"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/plan"
)

// openCodeWays are how a model with the tools of OpenCode does what every agent does.
func openCodeWays() agent.Ways {
	ways := agent.Calling()
	ways.Plan, ways.Edit, ways.Read = "call `todowrite`", "with `edit`, and `write` for whole files", "with read"
	return ways
}

// openCode says whether the model has the tools of OpenCode in the place of agent-ci's own.
func (s toolset) openCode() bool { return s.family == job.ToolsOpenCode }

// openCodeTools are the tools by which a model looks at files, changes them, plans and runs
// commands, under the names of OpenCode. apply_patch answers beside them, untold.
func (a *Agent) openCodeTools(box *toolbox, o files.Options, patcher *patch.Patcher) []tools.Tool {
	all := opencode.New(opencode.Options{
		Files: o, Seen: &a.files, Sees: a.suits.sees, Patcher: patcher, Take: a.takePlan, Plan: a.currentPlan,
	})
	return append([]tools.Tool{box.commands.Bash()}, append(all, patcher.Tool())...)
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
	if !s.openCode() {
		return names
	}
	denied := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == dialect.WriteStdin })
	if slices.Contains(names, patchTool) {
		denied = append(denied, dialect.Named(dialect.Edits)...)
	}
	return denied
}

// names says whether one of some names is that of a tool. The tools of OpenCode answer to those of
// agent-ci's that do the same.
func (s toolset) names(some []string, tool string) bool {
	return slices.ContainsFunc(some, func(name string) bool {
		return name == tool || s.openCode() && (tools.Means(name, tool) || name == patchTool && tools.Edits(tool))
	})
}
