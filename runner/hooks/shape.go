package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/shell"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/patch"
)

// shaped is a call as Codex or Claude Code would have made it.
type shaped struct {
	Tool  string
	Input map[string]any
}

// The tools of agent-ci that others have under other names.
const (
	applyPatch = "apply_patch"
	writeStdin = "write_stdin"
)

// shape is a call in the form of Codex or Claude Code.
func shape(compat, tool string, call tools.Call) shaped {
	input := map[string]any{}
	if json.Unmarshal([]byte(call.Input), &input) != nil || input == nil {
		input = map[string]any{"input": call.Input}
	}
	switch {
	case tools.RunsCommands(tool):
		as := map[string]any{"command": commandText(tool, call)}
		for _, name := range []string{"timeout_ms", "timeout"} {
			if ms, ok := input[name].(float64); ok {
				as["timeout"] = ms
			}
		}
		return shaped{"Bash", as}
	case tool == applyPatch && compat == job.CompatCodex:
		return shaped{applyPatch, map[string]any{"command": patchText(call)}}
	case compat == job.CompatCodex:
		return shaped{tool, input}
	}
	return claudeShape(tool, input)
}

// claudeShape is a call of a tool that Claude Code has under another name.
func claudeShape(tool string, input map[string]any) shaped {
	switch tool {
	case "read_file":
		return shaped{"Read", some(input, "file_path", "offset", "limit")}
	case "read":
		as := some(input, "offset", "limit")
		as["file_path"] = input["filePath"]
		return shaped{"Read", as}
	case "list":
		return shaped{"LS", some(input, "path")}
	case "glob":
		return shaped{"Glob", some(input, "pattern", "path")}
	case "task":
		return shaped{"Task", some(input, "description", "prompt", "subagent_type")}
	case "todowrite":
		return shaped{"TodoWrite", some(input, "todos")}
	case "view_image":
		return shaped{"Read", map[string]any{"file_path": input["path"]}}
	case "list_dir":
		return shaped{"LS", map[string]any{"path": input["dir_path"]}}
	case "grep_files", "grep":
		as := some(input, "pattern", "path")
		if glob, there := input["include"]; there {
			as["glob"] = glob
		}
		return shaped{"Grep", as}
	case "update_plan":
		return shaped{"TodoWrite", todos(input)}
	}
	return shaped{tool, input}
}

func some(from map[string]any, names ...string) map[string]any {
	kept := map[string]any{}
	for _, name := range names {
		if value, there := from[name]; there {
			kept[name] = value
		}
	}
	return kept
}

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

// patchText is the patch of a call of apply_patch, however it was made.
func patchText(call tools.Call) string {
	if call.Form == tools.Operation {
		return patch.OfOperation(call.Input)
	}
	var as struct {
		Input string `json:"input"`
	}
	if call.Form != tools.Freeform && json.Unmarshal([]byte(call.Input), &as) == nil && as.Input != "" {
		return as.Input
	}
	return call.Input
}

// shellForm is the form that a recorded call of shell was made in.
func shellForm(input string) tools.Form {
	var as struct {
		Type     string
		Commands []string
	}
	switch _ = json.Unmarshal([]byte(input), &as); { // what can't be read has the form of all others
	case len(as.Commands) > 0:
		return tools.ShellAction
	case as.Type == "exec":
		return tools.LocalShellAction
	}
	return tools.Function
}

// commandText are the commands of a call as a script, as they are run. Of a shell with a script it
// is the script; of several commands those that are no plain line are shown with their shell, so
// that none can look like a part of another. What can't be read is the input.
func commandText(tool string, call tools.Call) string {
	if tool == writeStdin {
		in, _ := typing(tool, call)
		return in.Chars
	}
	asked, err := command.Of(tool, call)
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
			lines[i] = quotedWords(each.Argv)
		case len(asked) > 1 && shell.ReadScript(script).Unclear != "":
			lines[i] = quotedWords([]string{"bash", "-c", script})
		default:
			lines[i] = script
		}
	}
	return strings.Join(lines, "\n")
}

func quotedWords(words []string) string {
	quotes := make([]string, len(words))
	for i, word := range words {
		quotes[i] = quoted(word)
	}
	return strings.Join(quotes, " ")
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%=", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// rewrite is the input of a call by what a hook gave instead: in the tool's own form, or in that
// which the hook was asked in.
func rewrite(compat, tool string, call tools.Call, by json.RawMessage) (string, error) {
	if compat == "" {
		return ownInput(call, by)
	}
	var changed map[string]any
	if err := json.Unmarshal(by, &changed); err != nil || changed == nil {
		return "", errors.New("the input that it gives instead is no JSON object")
	}
	input := map[string]any{}
	_ = json.Unmarshal([]byte(call.Input), &input) // text is no object
	switch {
	case tools.RunsCommands(tool):
		command, ok := changed["command"].(string)
		if !ok || strings.TrimSpace(command) == "" {
			return "", errors.New("the input that it gives instead has no command")
		}
		return rewrittenCommand(tool, call, input, command)
	case tool == applyPatch && compat == job.CompatCodex:
		text, ok := changed["command"].(string)
		if !ok || call.Form != tools.Freeform && call.Form != tools.Function {
			return "", errors.New("the patch that it gives instead can't stand in for this call")
		}
		if call.Form == tools.Freeform {
			return text, nil
		}
		input["input"] = text
	case compat == job.CompatClaude:
		changed = ownNames(tool, changed)
		fallthrough
	default:
		input = changed
	}
	return encode(input)
}

// ownInput is what a hook of agent-ci's own form gives: an object, or text where the call is
// text.
func ownInput(call tools.Call, by json.RawMessage) (string, error) {
	var text string
	isText := json.Unmarshal(by, &text) == nil
	switch {
	case call.Form == tools.Freeform && isText:
		return text, nil
	case call.Form == tools.Freeform:
		return "", errors.New("the input that it gives instead is no text, which the call has")
	case isText || by[0] != '{':
		return "", errors.New("the input that it gives instead is no JSON object, which the call has")
	}
	return string(by), nil
}

// rewrittenCommand puts a command in the place of a call's.
func rewrittenCommand(tool string, call tools.Call, input map[string]any, command string) (string, error) {
	script := []string{"bash", "-lc", command}
	switch {
	case tool == writeStdin:
		input["chars"] = command
	case call.Form == tools.ShellAction:
		input["commands"] = []string{command}
	case call.Form == tools.LocalShellAction:
		input["command"] = script
	case tool == "exec_command":
		input["cmd"] = command
	case tool == "shell_command", tool == "bash":
		input["command"] = command
	default:
		input["command"] = script
	}
	return encode(input)
}

// ownNames gives arguments that Claude Code calls otherwise agent-ci's names.
func ownNames(tool string, input map[string]any) map[string]any {
	renamed := map[string]map[string]string{
		"list_dir": {"path": "dir_path"}, "grep_files": {"glob": "include"}, "grep": {"glob": "include"}, "read": {"file_path": "filePath"}, "view_image": {"file_path": "path"},
	}[tool]
	own := map[string]any{}
	for name, value := range input {
		if other := renamed[name]; other != "" {
			name = other
		}
		own[name] = value
	}
	return own
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
