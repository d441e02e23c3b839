package worker

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/opencode"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/plan"
)

// family is another agent's set of tools, replacing agent-ci's own.
type family struct {
	ways briefing.Ways
	// writingTools makes the tools of a writing agent, reads those of a read-only agent. Tools hidden from
	// the model still answer calls.
	writingTools func(a *Agent, box *toolbox, o files.Options, patcher *patch.Patcher) []tools.Tool
	readingTools func(a *Agent, o files.Options) []tools.Tool
}

// families maps model.tools, also the family's name in package dialect, to families.
var families = map[string]family{dialect.OpenCode: {openCodeWays(), (*Agent).openCodeTools, (*Agent).openCodeReads}}

// usesFamily reports whether the model has the tools of another agent.
func (s toolset) usesFamily() bool {
	_, known := families[s.Family]
	return known
}

// openCodeWays describes the usual actions in OpenCode's tools.
func openCodeWays() briefing.Ways {
	ways := briefing.Calling()
	ways.Plan, ways.Edit, ways.Read = "call `todowrite`", "with `edit`, and `write` for whole files", "with read"
	return ways
}

func (a *Agent) openCodeTools(box *toolbox, o files.Options, patcher *patch.Patcher) []tools.Tool {
	all := opencode.New(opencode.Options{
		Files: o, KnownFiles: &a.seenFiles, AcceptsImages: a.toolset.Sees, Patcher: patcher, SetPlan: a.recordPlan, Plan: a.currentPlan,
	})
	return append([]tools.Tool{box.commands.Bash()}, append(all, patcher.Tool())...)
}

func (a *Agent) openCodeReads(o files.Options) []tools.Tool {
	return opencode.New(opencode.Options{Files: o, KnownFiles: &a.seenFiles, AcceptsImages: a.toolset.Sees})
}

// currentPlan returns the agent's latest plan.
func (a *Agent) currentPlan() plan.Plan {
	var now plan.Plan
	for _, step := range a.work.Plan.Steps {
		now.Steps = append(now.Steps, plan.Step(step))
	}
	return now
}

// changesFiles says whether the tool of a name changes files by itself.
func changesFiles(name string) bool { return dialect.Is(name, dialect.Patches, dialect.Edits) }

// denied returns the tools denied by the job, translated to the model's family. Denying patches
// denies all edits.
func (s toolset) denied(names []string) []string {
	if !s.usesFamily() {
		return names
	}
	denied := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == dialect.WriteStdin })
	if slices.Contains(names, patchTool) {
		denied = append(denied, dialect.Named(dialect.Edits)...)
	}
	return denied
}

// includes reports whether some includes a tool, by its own name or its agent-ci equivalent.
func (s toolset) includes(some []string, tool string) bool {
	return slices.ContainsFunc(some, func(name string) bool {
		return name == tool || s.usesFamily() && (tools.NamesTool(name, tool) || name == patchTool && dialect.Is(tool, dialect.Edits))
	})
}
