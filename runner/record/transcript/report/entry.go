package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// entry is an item of the timeline: an event, or a turn or call with its final event.
type entry struct {
	Seq   int64 // of the event that began it
	Until int64 // of the event that ended it; 0 for an event alone or one without end
	At    string
	Kind  string // its class: turn, call, note
	Agent string // empty for the run's own
	Name  string
	Topic string        // its subject in one line
	Line  document.Text // of a note, all of it in a line
	End   string        // how it ended and how long it took
	Bad   bool
	Open  bool // shown unfolded

	Nested bool  // a script made it
	By     int64 // the event that began that call; 0 if it is missing

	Message []excerpt // what the agent says in it: Markdown
	Parts   []part
	Diff    *diff
	File    string // of the whole output

	open    bool // its end is awaited
	refused string
	seconds float64
	paths   []string // that its patch names
}

type part struct {
	Seq   int64 // of the event that it came with, where that is another than the entry's
	Title string
	Text  excerpt
}

// addResult adds the result of a call: its end in words, its output, and the file with the whole output.
func (e *entry) addResult(c cutter, f transcript.ToolFinished) {
	e.seconds, e.refused = f.Seconds, refusal(f)
	code, exited := f.Detail["exit_code"].(float64)
	result := "ok"
	switch {
	case e.refused != "":
		result = "refused"
	case exited && code != 0:
		result = fmt.Sprintf("exit %.0f", code)
	case f.Failed:
		result = "failed"
	}
	e.Bad = result != "ok"
	e.End = result + " · " + transcript.Duration(f.Seconds)
	e.Parts = append(e.Parts, part{Seq: e.Until, Title: "Output", Text: cut(c, transcript.ReadableOutput(f.Output))})
	if f.File != "" {
		e.File = fmt.Sprintf("The whole output, %s bytes, is %s in the run directory.", transcript.Thousands(f.Bytes), f.File)
	}
}

// refusal returns the rule of a refused call, or "".
func refusal(f transcript.ToolFinished) string {
	switch rule := f.Detail["denied"].(type) {
	case nil:
		return ""
	case string:
		return rule
	case bool:
		if !rule {
			return ""
		}
	}
	return "policy"
}

// item is the shown part of a Responses API item. Fields of an unexpected shape are empty.
type item struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Summary json.RawMessage `json:"summary"`
}

// contents returns the text of a message or summary: a string or parts.
func contents(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return transcript.PartsText(raw)
}

// sent returns the model's new information in a request's item, or "" for items elsewhere in the
// timeline, such as call outputs.
func sent(raw json.RawMessage) (role, text string) {
	var i item
	if json.Unmarshal(raw, &i) != nil || i.Role == "" || i.Role == "assistant" {
		return "", ""
	}
	if text = contents(i.Content); strings.HasPrefix(text, transcript.WrittenResultsPrefix) {
		return "", ""
	}
	return i.Role, text
}

// shownElsewhere lists items of calls, which have their own entries.
var shownElsewhere = []string{
	"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call",
	"function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output",
}

// output adds an item of a response to its turn's entry. Items of calls are left out: calls have entries.
func (a *assembler) output(n *entry, raw json.RawMessage) {
	var i item
	if json.Unmarshal(raw, &i) != nil {
		a.part(n, "Item", string(raw))
		return
	}
	switch {
	case i.Type == "message":
		a.message(n, contents(i.Content))
	case i.Type == "reasoning":
		a.part(n, "Reasoning, summarised by the model", contents(i.Summary))
	case !slices.Contains(shownElsewhere, i.Type):
		a.part(n, "Item "+i.Type, indented(raw))
	}
}

// settings shows the instructions and tools of a request.
func (a *assembler) settings(n *entry, raw json.RawMessage) {
	var settings struct {
		Instructions string        `json:"instructions"`
		Tools        []offeredTool `json:"tools"`
		Input        []struct {    // with which each begins
			Tools   []offeredTool   `json:"tools"`
			Content json.RawMessage `json:"content"`
		} `json:"input"`
	}
	if json.Unmarshal(raw, &settings) != nil {
		return
	}
	instructions, tools := settings.Instructions, settings.Tools
	for _, item := range settings.Input {
		tools = append(tools, item.Tools...)
		instructions += contents(item.Content)
	}
	a.part(n, "Instructions", instructions)
	a.part(n, "Tools offered", strings.Join(toolNames(tools), ", "))
}

// offeredTool is a tool or a namespace of tools offered to a model.
type offeredTool struct {
	Type  string        `json:"type"`
	Name  string        `json:"name"`
	Tools []offeredTool `json:"tools"`
}

func toolNames(all []offeredTool) (names []string) {
	for _, tool := range all {
		if len(tool.Tools) > 0 {
			names = append(names, toolNames(tool.Tools)...)
		} else {
			names = append(names, cmp.Or(tool.Name, tool.Type))
		}
	}
	return names
}

// offeredInInput lists the tools in an item of a request.
func offeredInInput(raw json.RawMessage) string {
	var item struct {
		Type  string        `json:"type"`
		Tools []offeredTool `json:"tools"`
	}
	if json.Unmarshal(raw, &item) != nil || item.Type != "additional_tools" {
		return ""
	}
	return strings.Join(toolNames(item.Tools), ", ")
}
