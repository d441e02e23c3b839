package hooks

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
)

// documentVersion is the version of agent-ci's own form.
const documentVersion = 1

// document is what a hook reads on its standard input.
func (h *Hooks) document(one Hook, q question) ([]byte, error) {
	all := map[string]any{}
	switch one.Compat {
	case "":
		all["version"], all["event"], all["hook"], all["run_id"] = documentVersion, one.On, one.Name, h.Facts.RunID
		all["workspace"], all["path"] = h.Facts.Root, h.Facts.Path
		maps.Copy(all, q.own)
	default:
		all["session_id"], all["hook_event_name"], all["cwd"], all["permission_mode"] = h.Facts.RunID, otherNames[one.On], h.Facts.WorkDir, "dontAsk"
		all["transcript_path"] = h.transcriptPath(one)
		if one.Compat == job.CompatCodex || one.On == job.OnRunStart {
			all["model"] = h.Facts.Model
		}
		maps.Copy(all, q.compat)
	}
	text, err := encode(all)
	if err != nil {
		return nil, fmt.Errorf("what it is asked can't be written: %w", err)
	}
	return []byte(text + "\n"), nil
}

// transcriptPath is where a hook finds the transcript: the run directory is closed to those in
// the sandbox. Scripts for Claude Code take it for text, those for Codex know that there may be
// none.
func (h *Hooks) transcriptPath(one Hook) any {
	switch {
	case one.trusted:
		return h.Facts.Transcript
	case one.Compat == job.CompatCodex:
		return nil
	}
	return ""
}

// ownCall is a call in agent-ci's own form.
func ownCall(tool string, call tools.Call) map[string]any {
	own := map[string]any{"id": call.ID, "tool": tool, "name": call.Name}
	numbered(own, call)
	own["input"] = call.Input
	if object := objectOf(call); object != nil {
		own["input"] = object
	}
	if tools.RunsCommands(tool) {
		own["command"] = commandText(tool, call)
	}
	return own
}

// numbered says in an object which call it is of.
func numbered(own map[string]any, call tools.Call) {
	if own["number"] = call.Number; call.Caller > 0 {
		own["caller"] = call.Caller
	}
	if call.Agent != "" {
		own["agent"] = call.Agent
	}
}

func refOf(call tools.Call) transcript.CallRef { return transcript.CallRef(call.Ref()) }

// objectOf is the input of a call that is an object; nil for another. Of the API's own tools it has
// commands as they are run, under no name that only looks like theirs.
func objectOf(call tools.Call) map[string]any {
	var object map[string]any
	read := json.NewDecoder(strings.NewReader(call.Input))
	read.UseNumber()
	if call.Form == tools.Freeform || read.Decode(&object) != nil || object == nil {
		return nil
	}
	name := map[tools.Form]string{tools.ShellAction: "commands", tools.LocalShellAction: "command"}[call.Form]
	if name == "" {
		return object
	}
	maps.DeleteFunc(object, func(key string, _ any) bool { return strings.EqualFold(key, name) })
	asked, _ := command.Of("shell", call)
	var scripts []string
	for _, each := range asked {
		if scripts = append(scripts, each.Script); len(each.Argv) > 0 {
			scripts = each.Argv
		}
	}
	object[name] = scripts
	return object
}

// compatCall is a call in the form of the others.
func compatCall(as shaped, call tools.Call) map[string]any {
	return map[string]any{"tool_name": as.Tool, "tool_input": as.Input, "tool_use_id": useID(call)}
}

// useID tells calls apart, whose own ids may come twice.
func useID(call tools.Call) string {
	if call.ID == "" {
		return "call_" + refOf(call).String()
	}
	return call.ID
}

// response is what came of a call, in the form of the others.
func response(compat string, as shaped, result tools.Result) any {
	switch {
	case compat == job.CompatCodex:
		return result.Output
	case as.Tool == "Bash":
		printed := map[string]any{"stdout": printedBy(result), "stderr": "", "interrupted": result.Detail["timed_out"] == true, "isImage": false}
		if code, there := result.Detail["exit_code"]; there {
			printed["exit_code"] = code
		}
		return printed
	}
	return map[string]any{"content": result.Output, "is_error": result.Failed}
}

// headings begin what the tools that run commands say of them before what was printed.
var headings = []string{"Chunk ID: ", "Exit code: ", "Wall time: "}

// printedBy is what commands printed, without what the tools say of them.
func printedBy(result tools.Result) string {
	text := result.Output
	if _, printed, ok := strings.Cut(text, "\nOutput:\n"); ok && slices.ContainsFunc(headings, func(heading string) bool { return strings.HasPrefix(text, heading) }) {
		return printed
	}
	return text
}
