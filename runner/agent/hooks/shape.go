package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/policy/shell"
	"github.com/agent-ci/agent-ci/policy/shellword"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/dialect"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// inputDocument returns the JSON that a hook gets on standard input, in Claude Code's format.
func (h *Hooks) inputDocument(hook Hook, q question) ([]byte, error) {
	all := map[string]any{
		"session_id": h.Record.ID, "transcript_path": "", "cwd": h.Facts.WorkDir, "permission_mode": "dontAsk", "hook_event_name": hook.Event,
	}
	if hook.Trusted { // other hooks cannot read the run directory
		all["transcript_path"] = h.Record.Join(record.TranscriptFile)
	}
	if hook.Event == job.OnSessionStart {
		all["model"] = h.Facts.Model
	}
	if q.call.Agent != "" {
		all["agent_id"] = q.call.Agent
	}
	maps.Copy(all, q.eventInput)
	text, err := encodeJSON(all)
	if err != nil {
		return nil, fmt.Errorf("what it is asked can't be written: %w", err)
	}
	return []byte(text + "\n"), nil
}

// claudeCall is a tool call as Claude Code would make it.
type claudeCall struct {
	tool  string
	input map[string]any
}

// toClaudeCall converts a call of agent-ci's tool to the call that Claude Code would make.
func (h *Hooks) toClaudeCall(tool string, call tools.Call) claudeCall {
	t, input := dialect.Of(tool), objectOf(call)
	switch {
	case t.Kind == dialect.Commands:
		commandInput := map[string]any{"command": commandText(tool, call)}
		for _, name := range []string{"timeout_ms", "timeout"} {
			if ms, given := input[name]; given {
				commandInput["timeout"] = ms
			}
		}
		return claudeCall{t.Claude, commandInput}
	case input == nil:
		input = map[string]any{"input": call.Input}
	case input["plan"] != nil && t.Kind == dialect.Plans:
		input = todoInput(input)
	}
	if name, isText := input[t.Path].(string); isText {
		input[t.Path] = h.inWorkDir(name)
	}
	return claudeCall{t.Hooked(), t.AsClaude(input)}
}

// inWorkDir returns the absolute path of a file. A relative name is looked up in the agent's working directory.
func (h *Hooks) inWorkDir(name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(h.Facts.WorkDir, name)
}

// todoInput converts the steps of a plan to the input of Claude Code's TodoWrite.
func todoInput(input map[string]any) map[string]any {
	list := []any{}
	steps, _ := input["plan"].([]any)
	for _, entry := range steps {
		if step, isObject := entry.(map[string]any); isObject {
			list = append(list, map[string]any{"content": step["step"], "activeForm": step["step"], "status": step["status"]})
		}
	}
	return map[string]any{"todos": list}
}

// objectOf returns a call's input as a JSON object, or nil if it is none.
func objectOf(call tools.Call) map[string]any {
	if call.Form == tools.Freeform {
		return nil
	}
	return parseObject([]byte(call.Input))
}

// parseObject parses a text that is one JSON object, and returns nil for any other text. It keeps numbers as
// written.
func parseObject(raw []byte) map[string]any {
	var object map[string]any
	if !json.Valid(raw) || schema.Exactly(string(raw), &object) != nil {
		return nil
	}
	return object
}

// commandText returns the commands of a call as one script. A command such as bash -c SCRIPT becomes SCRIPT. If there
// are several commands, it wraps each unclear script in bash -c again, so that it cannot seem to continue another
// command. For an invalid call it returns the input.
func commandText(tool string, call tools.Call) string {
	if tool == dialect.WriteStdin {
		return typedText(call)
	}
	requested, err := command.CommandsOf(tool, call)
	if err != nil {
		return call.Input
	}
	lines := make([]string, len(requested))
	for i, each := range requested {
		script, isScript := each.Script, len(each.Argv) == 0
		if !isScript {
			script, isScript = command.ScriptOf(each.Argv)
		}
		switch {
		case !isScript:
			lines[i] = shellword.Quote(each.Argv...)
		case len(requested) > 1 && shell.ReadScript(script).Unclear != "":
			lines[i] = shellword.Quote("bash", "-c", script)
		default:
			lines[i] = script
		}
	}
	return strings.Join(lines, "\n")
}

// typedText returns the text that a write_stdin call types into a running command.
func typedText(call tools.Call) string {
	text, _ := objectOf(call)[dialect.Of(dialect.WriteStdin).Command].(string)
	return text
}

// refOf returns the call's reference in the transcript.
func refOf(call tools.Call) transcript.CallRef { return transcript.CallRef(call.Ref()) }

// questionInput returns the parts of a hook's input that describe a call.
func (c claudeCall) questionInput(call tools.Call) map[string]any {
	id := call.ID // not unique, and missing for some calls
	if id == "" {
		id = "call_" + refOf(call).String()
	}
	return map[string]any{"tool_name": c.tool, "tool_input": c.input, "tool_use_id": id}
}

// toolResponse converts the result of a call to Claude Code's format.
func (c claudeCall) toolResponse(result tools.Result) map[string]any {
	switch c.tool {
	case dialect.ClaudeBash:
		printed := map[string]any{"stdout": printedOutput(result), "stderr": "", "interrupted": result.Detail["timed_out"] == true, "isImage": false}
		if code, exists := result.Detail["exit_code"]; exists {
			printed["exit_code"] = code
		}
		return printed
	case dialect.ClaudeEdit, dialect.ClaudeWrite:
		all := map[string]any{"success": !result.Failed}
		for inputName, responseName := range map[string]string{"file_path": "filePath", "content": "content", "old_string": "oldString", "new_string": "newString"} {
			if value, exists := c.input[inputName]; exists {
				all[responseName] = value
			}
		}
		return all
	}
	return map[string]any{"content": result.Output, "is_error": result.Failed}
}

// outputHeadings begin the notes that command tools put before a command's output.
var outputHeadings = []string{"Chunk ID: ", "Exit code: ", "Wall time: "}

// printedOutput returns a command's output without the notes that the command tool puts before it.
func printedOutput(result tools.Result) string {
	text := result.Output
	hasNotes := slices.ContainsFunc(outputHeadings, func(heading string) bool { return strings.HasPrefix(text, heading) })
	if _, printed, found := strings.Cut(text, "\nOutput:\n"); found && hasNotes {
		return printed
	}
	return text
}

// rewrite converts replacement, a hook's new input in Claude Code's form, to the new input of call. shown is the call
// as the hook saw it.
func rewrite(tool string, call tools.Call, shown claudeCall, replacement json.RawMessage) (string, error) {
	changed, input := parseObject(replacement), objectOf(call)
	if changed == nil {
		return "", errors.New("the input that it gives instead is no JSON object")
	}
	text, _ := changed["command"].(string)
	t := dialect.Of(tool)
	switch {
	case t.Kind == dialect.Commands && strings.TrimSpace(text) == "":
		return "", errors.New("the input that it gives instead has no command")
	case t.Kind == dialect.Commands:
		setCommand(t, call.Form, input, text)
		return encodeJSON(input)
	case call.Form == tools.Freeform:
		text, isText := changed["input"].(string)
		if !isText {
			return "", errors.New("the input that it gives instead has no text as input, which the call has")
		}
		return text, nil
	}
	newInput := map[string]any{}
	for name, value := range changed {
		ownName := name // of the field in the call's input
		for own, claudeName := range t.Renamed {
			if claudeName == name {
				ownName = own
			}
		}
		isUnchanged := reflect.DeepEqual(value, shown.input[name])
		if written, given := input[ownName]; given && isUnchanged { // keep it as the model wrote it, such as a relative path
			value = written
		}
		newInput[ownName] = value
	}
	return encodeJSON(newInput)
}

// setCommand sets the command in a call's input to text, in the form that the call has.
func setCommand(t dialect.Tool, form tools.Form, input map[string]any, text string) {
	switch {
	case form == tools.ShellAction:
		input["commands"] = []string{text}
	case form == tools.LocalShellAction, t.Name == dialect.Shell:
		input[t.Command] = []string{"bash", "-lc", text}
	default:
		input[t.Command] = text
	}
}

// encodeJSON returns a value as JSON without HTML escapes.
func encodeJSON(value any) (string, error) {
	text, err := plainjson.Marshal(value) // hook scripts search for && and < unescaped
	if err != nil {
		return "", fmt.Errorf("write it as JSON: %w", err)
	}
	return string(text), nil
}
