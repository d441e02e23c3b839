package assembly

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

// family is the set of tools of another coding agent, which replaces agent-ci's own.
type family struct {
	phrases briefing.ActionPhrases
	// writingTools returns the tools of an agent that may change files, readingTools those of one that may not.
	// Tools that the model is not offered still answer calls.
	writingTools func(a *Agent, box *toolbox, o files.Options, patcher *patch.Patcher) []tools.Tool
	readingTools func(a *Agent, o files.Options) []tools.Tool
}

// families maps the value of model.tools to the family. Package dialect uses the same names.
var families = map[string]family{dialect.OpenCode: {openCodePhrases(), (*Agent).openCodeWritingTools, (*Agent).openCodeReadingTools}}

// usesFamily reports whether the model has the tools of another coding agent.
func (s toolset) usesFamily() bool {
	_, known := families[s.Family]
	return known
}

// openCodePhrases describes the usual actions with OpenCode's tools.
func openCodePhrases() briefing.ActionPhrases {
	phrases := briefing.ToolCallPhrases()
	phrases.Plan, phrases.Edit, phrases.Read = "call `todowrite`", "with `edit`, and `write` for whole files", "with read"
	return phrases
}

// openCodeWritingTools returns OpenCode's tools, and apply_patch.
func (a *Agent) openCodeWritingTools(box *toolbox, o files.Options, patcher *patch.Patcher) []tools.Tool {
	all := opencode.New(opencode.Options{
		Files: o, KnownFiles: &a.readFiles, AcceptsImages: a.toolset.ReadsImages, Patcher: patcher, SetPlan: a.recordPlan, Plan: a.currentPlan,
	})
	return append([]tools.Tool{box.commands.Bash()}, append(all, patcher.Tool())...)
}

// openCodeReadingTools returns OpenCode's tools that change nothing.
func (a *Agent) openCodeReadingTools(o files.Options) []tools.Tool {
	return opencode.New(opencode.Options{Files: o, KnownFiles: &a.readFiles, AcceptsImages: a.toolset.ReadsImages})
}

// currentPlan returns the agent's latest plan.
func (a *Agent) currentPlan() plan.Plan {
	var current plan.Plan
	for _, step := range a.work.Plan.Steps {
		current.Steps = append(current.Steps, plan.Step(step))
	}
	return current
}

// changesFiles reports whether a tool is for changing files.
func changesFiles(name string) bool { return dialect.Is(name, dialect.Patches, dialect.Edits) }

// deniedNames translates the names of denied tools to the model's family. If patches are denied, so are all of the
// family's edit tools.
func (s toolset) deniedNames(names []string) []string {
	if !s.usesFamily() {
		return names
	}
	denied := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == dialect.WriteStdin })
	if slices.Contains(names, patchTool) {
		denied = append(denied, dialect.NamesOfKind(dialect.Edits)...)
	}
	return denied
}

// includes reports whether names contain a tool, by its own name or by that of agent-ci's equivalent tool.
func (s toolset) includes(names []string, tool string) bool {
	if slices.Contains(names, tool) {
		return true
	}
	if !s.usesFamily() {
		return false
	}
	return slices.ContainsFunc(names, func(name string) bool {
		editsByPatch := name == patchTool && dialect.Is(tool, dialect.Edits)
		return editsByPatch || tools.NamesTool(name, tool)
	})
}
