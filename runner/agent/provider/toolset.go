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

// WrittenCommands is the tool that runs the shell blocks in a model's text. It waits until they end.
const WrittenCommands = dialect.ShellCommand

// Toolset names the tools for commands and edits that a model is offered. Other tools still answer calls.
type Toolset struct {
	CommandTools []string   // tools that run commands
	Shell        tools.Form // form of the tool shell, if CommandTools has it
	Patch        tools.Form // form of apply_patch
	ReadsImages  bool       // the model reads images
	Code         bool       // the model calls all tools in scripts
	// Family is a family of package dialect, or a format of edits in text. It is "" for agent-ci's own tools.
	Family string
}

var (
	shellForms = map[string]tools.Form{"function": tools.Function, "local_shell": tools.LocalShellAction}
	patchForms = map[string]tools.Form{"freeform": tools.Freeform, "function": tools.Function}
)

// ToolsetOf returns the tools for a model with profile p. form is the job's model.tools: auto, freeform, function,
// builtin, code, a format of edits in text, or a family of package dialect.
func ToolsetOf(p catalog.Profile, form string) Toolset {
	s := Toolset{CommandTools: dialect.Together(p.Commands), Shell: shellForms[p.Shell], Patch: patchForms[p.Patch], ReadsImages: p.Images}
	if form == "code" || form == "auto" && p.Code {
		s.Code, s.CommandTools, s.Shell, s.Patch = true, dialect.Together(dialect.ExecCommand), tools.Function, tools.Freeform
		return s
	}
	switch form {
	case "freeform", "function":
		s.Patch = patchForms[form]
	case "builtin":
		s.Patch, s.CommandTools = tools.Operation, dialect.Together(dialect.Shell)
		if s.Shell == tools.Function {
			s.Shell = tools.ShellAction
		}
	case job.ToolsAiderDiff, job.ToolsAiderUdiff, job.ToolsAiderWhole:
		return Toolset{Family: form, CommandTools: []string{WrittenCommands}, Patch: tools.Freeform}
	}
	if slices.Contains(dialect.Families(), form) {
		s.Family = form
	}
	return s
}

// String names the tools that differ between models.
func (s Toolset) String() string {
	form := "a function"
	if s.Patch == tools.Freeform {
		form = "freeform"
	}
	return fmt.Sprintf("%s, apply_patch as %s", strings.Join(s.CommandTools, " and "), form)
}
