package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/patch"
	"github.com/agent-ci/agent-ci/tools/plan"
	"github.com/agent-ci/agent-ci/tools/question"
)

// patchTool is the name of the tool that applies patches, and questionTool of that
// by which a model asks a person.
const (
	patchTool    = "apply_patch"
	questionTool = "request_user_input"
)

// toolset says with which tools a model runs commands and changes files, and which
// others the job has it told of. Tools that a model is not told of answer all the
// same, unless the job forbids them.
type toolset struct {
	runs  []string   // tools that run commands
	shell tools.Form // of shell, where that is one of them
	patch tools.Form // of apply_patch
	named []string   // by the job
	may   tools.Access
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
// auto, freeform, function or builtin. With people to ask, the model is told of the
// tool for that.
func toolsetOf(p model.Profile, j *job.Job, people bool) toolset {
	s := toolset{
		runs: commandTools[p.Commands], shell: shellForms[p.Shell], patch: patchForms[p.Patch],
		named: j.Tools.Allow, may: tools.Access{Allow: j.Tools.Allow, Deny: j.Tools.Deny},
	}
	if people {
		s.named = append([]string{questionTool}, s.named...)
	}
	switch form := j.Model.Tools; form {
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
// those that suit it, and those that the job names.
func (s toolset) offered() []string {
	all := append([]string{"update_plan", "read_file", "list_dir", "grep_files", "view_image"}, s.runs...)
	return append(append(all, patchTool), s.named...)
}

// kit has what tools do their work with.
type kit struct {
	takePlan func(plan.Plan) error
	files    files.Options
	commands *command.Tools
	patcher  *patch.Patcher
	ask      func(context.Context, []question.Question) error // nil where nobody will answer
}

// registry has all tools, also those that the model is not told of.
func (s toolset) registry(k kit) (*tools.Registry, error) {
	all := append([]tools.Tool{plan.New(k.takePlan)}, files.New(k.files)...)
	all = append(all, k.commands.All()...)
	registry := tools.New(append(all, k.patcher, question.New(k.ask))...)
	if err := registry.Restrict(s.may); err != nil {
		return nil, outcome.Stopf(outcome.InvalidInput, "unknown_tool", "%s.", outcome.Sentence(err.Error())).Because(err)
	}
	return registry, nil
}

// idle has the tools for an agent that calls none. Nothing is opened for them.
func (s toolset) idle() (*tools.Registry, error) {
	return s.registry(kit{commands: command.New(command.Options{Shell: s.shell}), patcher: patch.New(patch.Options{Offer: s.patch})})
}

// definitions are the tools that the model is told of: those that run here, and
// the hosted ones, which the API runs.
func (s toolset) definitions(registry *tools.Registry, hosted []map[string]any) ([]json.RawMessage, error) {
	definitions, err := agent.Definitions(registry.Specs(s.offered()))
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
