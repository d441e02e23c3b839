package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/model/catalog"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// WrittenCommands is the tool running a model's shell blocks, to their end.
const WrittenCommands = dialect.ShellCommand

// Toolset names a model's tools for commands and edits. Tools hidden from the model still answer
// calls.
type Toolset struct {
	Runs  []string   // tools that run commands
	Shell tools.Form // of shell, where that is one of them
	Patch tools.Form // of apply_patch
	Sees  bool       // images
	Code  bool       // the model calls all of them in scripts
	// family is a family of dialect, or a form of edits in text; "" for agent-ci's tools.
	Family string
}

var (
	shellForms = map[string]tools.Form{"function": tools.Function, "local_shell": tools.LocalShellAction}
	patchForms = map[string]tools.Form{"freeform": tools.Freeform, "function": tools.Function}
)

// ToolsetOf returns the tools for a model and a form: auto, freeform, function, builtin, code, or
// another agent's family.
func ToolsetOf(p catalog.Profile, form string) Toolset {
	s := Toolset{Runs: dialect.Together(p.Commands), Shell: shellForms[p.Shell], Patch: patchForms[p.Patch], Sees: p.Images}
	switch {
	case form == "code", form == "auto" && p.Code:
		s.Code, s.Runs, s.Shell, s.Patch = true, dialect.Together(dialect.ExecCommand), tools.Function, tools.Freeform
		return s
	}
	switch form {
	case "freeform", "function":
		s.Patch = patchForms[form]
	case "builtin":
		s.Patch, s.Runs = tools.Operation, dialect.Together(dialect.Shell)
		if s.Shell == tools.Function {
			s.Shell = tools.ShellAction
		}
	case job.ToolsAiderDiff, job.ToolsAiderUdiff, job.ToolsAiderWhole:
		return Toolset{Family: form, Runs: []string{WrittenCommands}, Patch: tools.Freeform}
	}
	if slices.Contains(dialect.Families(), form) {
		s.Family = form
	}
	return s
}

// String names the tools specific to a model.
func (s Toolset) String() string {
	form := map[bool]string{true: "freeform", false: "a function"}[s.Patch == patchForms["freeform"]]
	return fmt.Sprintf("%s, apply_patch as %s", strings.Join(s.Runs, " and "), form)
}
