package job

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/form"
)

// Hook is a program that is asked at a point of the run.
type Hook struct {
	On       string   `json:"on"`  // one of hookEvents
	Run      []string `json:"run"` // argv
	Tools    []string `json:"tools"`
	Argv     []string `json:"argv"`
	Timeout  Duration `json:"timeout"`
	OnError  string   `json:"on_error"` // fail, continue
	MustFire bool     `json:"must_fire"`
	Trusted  string   `json:"trusted"` // "", operator
}

// mostHooks is how many a job may have.
const mostHooks = 64

// The points of a run at which hooks are asked, by the names of Claude Code, and those that agent-ci
// alone has.
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

// hookEvents are these points, in the order in which a run comes to them.
var hookEvents = []string{
	OnSessionStart, OnUserPrompt, OnToolDefinition, OnShellEnv, OnPreToolUse, OnPostToolUse, OnPrePatch, OnPreCompact,
	OnSubagentStart, OnSubagentStop, OnStop, OnPrePublish, OnSessionEnd,
}

// OwnPoints are those that no other agent has.
var OwnPoints = []string{OnToolDefinition, OnShellEnv, OnPrePatch, OnPrePublish}

// hookKey returns the key of a hook by the name that Claude Code has for it.
func hookKey(name string) string {
	return map[string]string{"matcher": "tools", "command": "run", "event": "on"}[name]
}

// The events whose hooks may be for some tools alone, and for some commands.
var (
	matchTools = []string{OnToolDefinition, OnPreToolUse, OnPostToolUse}
	matchArgv  = []string{OnPreToolUse, OnPostToolUse}
)

// Who is trusted, and what lets a run go on after a failure.
const (
	TrustedOperator = "operator"
	OnErrorContinue = "continue"
)

// fitHooks checks what no key of a hook can tell alone.
func (d *checks) fitHooks() {
	for _, name := range slices.Sorted(maps.Keys(d.job.Hooks)) {
		d.fitHook("hooks."+name, d.job.Hooks[name])
	}
}

func (d *checks) fitHook(path string, h Hook) {
	wrong := func(key, message string) { d.Wrong(path+"."+key, message) }
	if h.On == "" { // which is told already
		return
	}
	if len(h.Run) > 0 {
		if why := misnamed(h.Run, ListOf); why != "" {
			wrong("run", why)
		}
	}
	if len(h.Tools) > 0 && !slices.Contains(matchTools, h.On) {
		wrong("tools", "has no effect with on: "+h.On+", an event without a tool; remove it")
	} else {
		d.fitMatchers(path, h)
	}
	if len(h.Argv) > 0 && !slices.Contains(matchArgv, h.On) {
		wrong("argv", "has no effect with on: "+h.On+", an event without a command; remove it")
	} else if len(h.Argv) > 0 && !h.ofCommands() {
		wrong("argv", "needs a tool that runs commands, and tools lists none, so the hook would never run; remove argv or tools")
	}
	if h.Trusted != "" && !d.Has(config.Operator) {
		wrong("trusted", "is allowed only in the operator's file (--operator-file); remove it")
	}
	if h.Timeout > mostHookTime {
		wrong("timeout", "must be "+mostHookTime.String()+" at most")
	}
}

// mostHookTime is how long a hook may be given.
const mostHookTime = Duration(10 * time.Minute)

// LoadOperator reads the operator's file: hooks that no job changes.
func LoadOperator(name string, data []byte) (map[string]Hook, error) {
	file, err := LoadTemplate(config.Layer{Name: name, Kind: config.Operator, Data: data})
	if err != nil {
		return nil, err
	}
	return file.Hooks, nil
}

// MayBeVariable says what keeps a variable from being set for commands, by the rules of
// policy.env; the error reads as the end of a sentence about it.
func (j *Job) MayBeVariable(name, value string) error {
	d := checks{job: j}
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
