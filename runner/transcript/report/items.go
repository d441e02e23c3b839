package report

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// item is what the page shows of an item of the Responses API. Fields that an
// item has in another shape than expected are empty.
type item struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Summary json.RawMessage `json:"summary"`
}

// contents is the text of a message or of a summary: a string, or parts.
func contents(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return transcript.PartsText(raw)
}

// sent is what a new item of a request tells the model; nothing of one that
// stands in the timeline already, such as the output of a call.
func sent(raw json.RawMessage) (role, text string) {
	var i item
	if json.Unmarshal(raw, &i) != nil || i.Role == "" || i.Role == "assistant" {
		return "", ""
	}
	return i.Role, contents(i.Content)
}

// shownElsewhere are the items that are calls, each with entries of its own.
var shownElsewhere = []string{
	"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call",
	"function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output",
}

func (a *assembler) output(n *entry, raw json.RawMessage) {
	var i item
	if json.Unmarshal(raw, &i) != nil {
		a.part(n, "Item", string(raw))
		return
	}
	switch {
	case i.Type == "message":
		n.Message = append(n.Message, prose(cutProse(a.cut, contents(i.Content)))...)
	case i.Type == "reasoning":
		a.part(n, "Reasoning, summarised by the model", contents(i.Summary))
	case !slices.Contains(shownElsewhere, i.Type):
		a.part(n, "Item "+field(i.Type), indented(raw))
	}
}

// settings shows under which instructions and with which tools the model was
// asked.
func (a *assembler) settings(n *entry, raw json.RawMessage) {
	var settings struct {
		Instructions string `json:"instructions"`
		Tools        []struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tools"`
	}
	if json.Unmarshal(raw, &settings) != nil {
		return
	}
	a.part(n, "Instructions", settings.Instructions)
	var names []string
	for _, tool := range settings.Tools {
		names = append(names, cmp.Or(tool.Name, tool.Type))
	}
	a.part(n, "Tools offered", strings.Join(names, ", "))
}
