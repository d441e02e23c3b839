package hooks

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/tools"
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
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("what it is asked can't be written: %w", err)
	}
	return append(text, '\n'), nil
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
	own := map[string]any{"number": call.Number, "id": call.ID, "tool": tool, "name": call.Name}
	var object map[string]any
	if call.Form != tools.Freeform && json.Unmarshal([]byte(call.Input), &object) == nil && object != nil {
		own["input"] = json.RawMessage(call.Input)
	} else {
		own["input"] = call.Input
	}
	if commandTools[tool] {
		own["command"] = commandText(tool, call)
	}
	return own
}

// compatCall is a call in the form of the others.
func compatCall(as shaped, call tools.Call) map[string]any {
	return map[string]any{"tool_name": as.Tool, "tool_input": as.Input, "tool_use_id": useID(call)}
}

// useID tells calls apart, whose own ids may come twice.
func useID(call tools.Call) string {
	if call.ID == "" {
		return fmt.Sprintf("call_%d", call.Number)
	}
	return call.ID
}

// response is what came of a call, in the form of the others.
func response(compat string, as shaped, result tools.Result) any {
	switch {
	case compat == job.CompatCodex:
		return result.Output
	case as.Tool == "Bash":
		printed := map[string]any{"stdout": result.Output, "stderr": "", "interrupted": false, "isImage": false}
		if code, there := result.Detail["exit_code"]; there {
			printed["exit_code"] = code
		}
		return printed
	}
	return map[string]any{"content": result.Output, "is_error": result.Failed}
}
