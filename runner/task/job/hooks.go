package job

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/form"
)

// Hook is a program called at one point of the run.
type Hook struct {
	On       string   `json:"on" config:"required" values:"$hook_events" about:"Event that starts it."`
	Run      []string `json:"run" config:"required,nonempty" form:"value" example:"[.github/guard.py, --strict]" about:"Program and arguments, without a shell. Relative paths are files of the base commit. ~/ and ${HOME} are replaced."`
	Tools    []string `json:"tools" form:"one_line" example:"['Bash|Edit|Write']" about:"Matchers of tools as in Claude Code: names with | between them, or a regular expression. Empty: all tools."`
	Argv     []string `json:"argv" form:"value" example:"[git, push]" about:"First words of the commands that it is asked about. Empty: all commands."`
	Timeout  Duration `json:"timeout" default:"10s" about:"Time limit of a call."`
	OnError  string   `json:"on_error" values:"fail|continue" default:"fail" about:"If the hook gives no valid answer: refuse (fail), or warn and continue."`
	MustFire bool     `json:"must_fire" about:"true: the run fails if the hook never gave a valid answer."`
	Trusted  string   `json:"trusted" values:"|operator" about:"operator: it runs outside the sandbox. Only the operator's file may say so."`
}

const maxHooks = 64

// The hook points of a run. Points of Claude Code have its names; the others are agent-ci's own.
const (
	OnSessionStart   = "SessionStart"
	OnUserPrompt     = "UserPromptSubmit"
	OnToolDefinition = "tool_definition"
	OnShellEnv       = "shell_env"
	OnPreToolUse     = "PreToolUse"
	OnPostToolUse    = "PostToolUse"
	OnPrePatch       = "pre_patch"
	OnPreCompact     = "PreCompact"
	OnSubagentStart  = "SubagentStart"
	OnSubagentStop   = "SubagentStop"
	OnStop           = "Stop"
	OnPrePublish     = "pre_publish"
	OnSessionEnd     = "SessionEnd"
)

// hookEvents lists all hook points in the order of a run.
var hookEvents = []string{
	OnSessionStart, OnUserPrompt, OnToolDefinition, OnShellEnv, OnPreToolUse, OnPostToolUse, OnPrePatch, OnPreCompact,
	OnSubagentStart, OnSubagentStop, OnStop, OnPrePublish, OnSessionEnd,
}

// OwnPoints lists the hook points unknown to other agents.
var OwnPoints = []string{OnToolDefinition, OnShellEnv, OnPrePatch, OnPrePublish}

// hookKey translates a hook key of Claude Code into agent-ci's. It is "" for an unknown name.
func hookKey(name string) string {
	return map[string]string{"matcher": "tools", "command": "run", "event": "on"}[name]
}

// eventsWithTools lists the events with a tools matcher, eventsWithArgv those with an argv matcher.
var (
	eventsWithTools = []string{OnToolDefinition, OnPreToolUse, OnPostToolUse}
	eventsWithArgv  = []string{OnPreToolUse, OnPostToolUse}
)

// TrustedOperator is the value of hooks.*.trusted for the operator's hooks. OnErrorContinue is the
// value of on_error that lets a run continue after a hook failure.
const (
	TrustedOperator = "operator"
	OnErrorContinue = "continue"
)

// checkHooks checks the keys of every hook against each other.
func (d *validator) checkHooks() {
	for _, name := range slices.Sorted(maps.Keys(d.job.Hooks)) {
		h, place := d.job.Hooks[name], config.JoinPath("hooks", name)
		if h.On == "" { // reported already
			continue
		}
		wrong := ""
		if len(h.Run) > 0 {
			wrong = programMistake(h.Run, formatYAMLList)
		}
		allowsTools := len(h.Tools) == 0 || slices.Contains(eventsWithTools, h.On)
		d.reportEach(place,
			mistake{wrong != "", "run", wrong},
			mistake{!allowsTools, "tools", "has no effect with on: " + h.On + ", an event without a tool; remove it"})
		if allowsTools {
			d.checkMatchers(place, h)
		}
		d.reportFirst(place,
			mistake{len(h.Argv) > 0 && !slices.Contains(eventsWithArgv, h.On), "argv", "has no effect with on: " + h.On + ", an event without a command; remove it"},
			mistake{len(h.Argv) > 0 && !h.matchesCommands(), "argv", "needs a tool that runs commands, and tools lists none, so the hook would never run; remove argv or tools"})
		d.reportEach(place,
			mistake{h.Trusted != "" && !d.HasLayer(config.OperatorLayer), "trusted", "is allowed only in the operator's file (--operator-file); remove it"},
			mistake{h.Timeout > maxHookTime, "timeout", "must be " + clip.Duration(time.Duration(maxHookTime)) + " at most"})
	}
}

const maxHookTime = Duration(10 * time.Minute)

// LoadOperator reads hooks from the operator's file. No job can change them.
func LoadOperator(name string, data []byte) (map[string]Hook, error) {
	file, err := LoadTemplate(config.Layer{Name: name, Kind: config.OperatorLayer, Data: data})
	if err != nil {
		return nil, err
	}
	return file.Hooks, nil
}

// CheckVariable returns an error if a hook may not set this variable for commands. The error text completes
// a sentence that starts with the name.
func (j *Job) CheckVariable(name, value string) error {
	d := validator{job: j}
	switch {
	case form.Variable.Check(name) != nil:
		return errors.New("is not the name of a variable")
	case form.VariableValue.Check(value) != nil:
		return errors.New("has a value that a variable cannot hold")
	case d.isCredential(name):
		return errors.New("holds a credential, which commands never see")
	case slices.ContainsFunc(j.Policy.Secrets, func(s Secret) bool { return s.Name == name }):
		return errors.New("is a secret of the job")
	}
	return nil
}
