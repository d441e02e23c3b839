package worker

import (
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/tools"
)

// patchTool is the name of the tool that applies patches, and questionTool of that
// by which a model asks a person.
const (
	patchTool    = "apply_patch"
	questionTool = "request_user_input"
)

// toolset says with which tools a model runs commands and changes files. Tools
// that a model is not told of answer all the same.
type toolset struct {
	runs  []string   // tools that run commands
	shell tools.Form // of shell, where that is one of them
	patch tools.Form // of apply_patch
}

// commandTools are the tools that run commands, by the name that a profile has
// for them.
var commandTools = map[string][]string{
	"exec_command":  {"exec_command", "write_stdin"},
	"shell":         {"shell"},
	"shell_command": {"shell_command"},
}

var (
	shellForms = map[string]tools.Form{"function": tools.Function, "local_shell": tools.LocalShellAction}
	patchForms = map[string]tools.Form{"freeform": tools.Freeform, "function": tools.Function}
)

// toolsetOf are the tools that suit a model, in the form that the job asks for:
// auto, freeform, function or builtin.
func toolsetOf(p model.Profile, form string) toolset {
	s := toolset{runs: commandTools[p.Commands], shell: shellForms[p.Shell], patch: patchForms[p.Patch]}
	switch form {
	case "freeform", "function":
		s.patch = patchForms[form]
	case "builtin":
		s.patch, s.runs = tools.Operation, commandTools["shell"]
		if s.shell == tools.Function {
			s.shell = tools.ShellAction
		}
	}
	return s
}

// offered are the tools that the model is told of: those that every model gets,
// those that suit it, that for questions where there are people to ask, and those that
// the job names.
func (s toolset) offered(people bool, named []string) []string {
	all := append([]string{"update_plan", "read_file", "list_dir", "grep_files", "view_image"}, s.runs...)
	if all = append(all, patchTool); people {
		all = append(all, questionTool)
	}
	return append(all, named...)
}

// definitions are the tools that the model is told of: those that run here, and
// the hosted ones, which the API runs.
func definitions(here []tools.Spec, hosted []map[string]any) ([]json.RawMessage, error) {
	definitions, err := agent.Definitions(here)
	if err != nil {
		return nil, err
	}
	for _, tool := range hosted {
		raw, err := json.Marshal(tool)
		if err != nil {
			return nil, fmt.Errorf("encode tools.hosted: %w", err)
		}
		definitions = append(definitions, raw)
	}
	return definitions, nil
}
