package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/shell"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// document returns a hook's standard input, in Claude Code's form.
func (h *Hooks) document(one Hook, q question) ([]byte, error) {
	all := map[string]any{
		"session_id": h.Facts.RunID, "transcript_path": "", "cwd": h.Facts.WorkDir, "permission_mode": "dontAsk", "hook_event_name": one.On,
	}
	if one.trusted { // the run directory is closed to the others
		all["transcript_path"] = h.Facts.Transcript
	}
	if one.On == job.OnSessionStart {
		all["model"] = h.Facts.Model
	}
	if q.call.Agent != "" {
		all["agent_id"] = q.call.Agent
	}
	maps.Copy(all, q.input)
	text, err := encode(all)
	if err != nil {
		return nil, fmt.Errorf("what it is asked can't be written: %w", err)
	}
	return []byte(text + "\n"), nil
}

// claudeCall is a call as Claude Code would have made it.
type claudeCall struct {
	tool  string
	input map[string]any
}

// toClaudeCall returns a call in the form of Claude Code.
func (h *Hooks) toClaudeCall(tool string, call tools.Call) claudeCall {
	t, input := dialect.Of(tool), objectOf(call)
	switch {
	case t.Kind == dialect.Commands:
		as := map[string]any{"command": commandText(tool, call)}
		for _, name := range []string{"timeout_ms", "timeout"} {
			if ms, given := input[name]; given {
				as["timeout"] = ms
			}
		}
		return claudeCall{t.Claude, as}
	case input == nil:
		input = map[string]any{"input": call.Input}
	case input["plan"] != nil && t.Kind == dialect.Plans:
		input = todos(input)
	}
	if name, is := input[t.Path].(string); is {
		input[t.Path] = h.inWorkDir(name)
	}
	return claudeCall{t.Hooked(), t.AsClaude(input)}
}

// inWorkDir returns a path as an absolute one.
func (h *Hooks) inWorkDir(name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(h.Facts.WorkDir, name)
}

// todos returns the steps of a plan as Claude Code has them.
func todos(input map[string]any) map[string]any {
	list := []any{}
	steps, _ := input["plan"].([]any)
	for _, each := range steps {
		if step, ok := each.(map[string]any); ok {
			list = append(list, map[string]any{"content": step["step"], "activeForm": step["step"], "status": step["status"]})
		}
	}
	return map[string]any{"todos": list}
}

// objectOf returns a call's input object; nil for text.
func objectOf(call tools.Call) map[string]any {
	if call.Form == tools.Freeform {
		return nil
	}
	return parseObject([]byte(call.Input))
}

// parseObject parses a JSON object spanning the whole text and keeps numbers as written; nil otherwise.
func parseObject(raw []byte) map[string]any {
	var read map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&read) != nil {
		return nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return read
}

// commandText returns a call's commands as a script, as run. For a shell with a script it returns
// the script. Complex commands among several include their shell, so none can look like a part of
// another. Unreadable calls return the input.
func commandText(tool string, call tools.Call) string {
	if tool == dialect.WriteStdin {
		return typedText(call)
	}
	asked, err := command.CommandsOf(tool, call)
	if err != nil {
		return call.Input
	}
	lines := make([]string, len(asked))
	for i, each := range asked {
		script, is := each.Script, len(each.Argv) == 0
		if !is {
			script, is = command.ScriptOf(each.Argv)
		}
		switch {
		case !is:
			lines[i] = tools.Quoted(each.Argv)
		case len(asked) > 1 && shell.ReadScript(script).Unclear != "":
			lines[i] = tools.Quoted([]string{"bash", "-c", script})
		default:
			lines[i] = script
		}
	}
	return strings.Join(lines, "\n")
}

// typedText returns the text typed by a write_stdin call.
func typedText(call tools.Call) string {
	text, _ := objectOf(call)[dialect.Of(dialect.WriteStdin).Command].(string)
	return text
}

func refOf(call tools.Call) transcript.CallRef { return transcript.CallRef(call.Ref()) }

// claudeInput returns a hook's input about a call.
func (as claudeCall) claudeInput(call tools.Call) map[string]any {
	id := call.ID // which may come twice, or not at all
	if id == "" {
		id = "call_" + refOf(call).String()
	}
	return map[string]any{"tool_name": as.tool, "tool_input": as.input, "tool_use_id": id}
}

// claudeResponse returns the result of a call, in the form of Claude Code.
func (as claudeCall) claudeResponse(result tools.Result) map[string]any {
	switch as.tool {
	case "Bash":
		printed := map[string]any{"stdout": printedOutput(result), "stderr": "", "interrupted": result.Detail["timed_out"] == true, "isImage": false}
		if code, there := result.Detail["exit_code"]; there {
			printed["exit_code"] = code
		}
		return printed
	case "Edit", "Write":
		all := map[string]any{"success": !result.Failed}
		for mine, theirs := range map[string]string{"file_path": "filePath", "content": "content", "old_string": "oldString", "new_string": "newString"} {
			if value, there := as.input[mine]; there {
				all[theirs] = value
			}
		}
		return all
	}
	return map[string]any{"content": result.Output, "is_error": result.Failed}
}

// headings begin the command tools' notes before the printed output.
var headings = []string{"Chunk ID: ", "Exit code: ", "Wall time: "}

// printedOutput returns a command's output, without the tools' notes.
func printedOutput(result tools.Result) string {
	text := result.Output
	if _, printed, ok := strings.Cut(text, "\nOutput:\n"); ok && slices.ContainsFunc(headings, func(heading string) bool { return strings.HasPrefix(text, heading) }) {
		return printed
	}
	return text
}

// rewrite returns a call's input changed by a hook's replacement.
func rewrite(tool string, call tools.Call, shown claudeCall, by json.RawMessage) (string, error) {
	changed, input := parseObject(by), objectOf(call)
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
		return encode(input)
	case call.Form == tools.Freeform:
		text, isText := changed["input"].(string)
		if !isText {
			return "", errors.New("the input that it gives instead has no text as input, which the call has")
		}
		return text, nil
	}
	made := map[string]any{}
	for name, value := range changed {
		own := name
		for mine, theirs := range t.Renamed {
			if theirs == name {
				own = mine
			}
		}
		if was, given := input[own]; given && reflect.DeepEqual(value, shown.input[name]) { // a path as the model wrote it
			value = was
		}
		made[own] = value
	}
	return encode(made)
}

// setCommand puts a command in the place of a call's.
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

func encode(value any) (string, error) {
	var text strings.Builder
	write := json.NewEncoder(&text)
	write.SetEscapeHTML(false) // scripts look for && and < as they are
	if err := write.Encode(value); err != nil {
		return "", fmt.Errorf("write it as JSON: %w", err)
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}
