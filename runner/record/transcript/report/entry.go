package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// entry is an item of the timeline: an event, or a turn or call with its last event.
type entry struct {
	Seq        int64 // the event that began it
	Until      int64 // the event that completed it; 0 if there is none
	At         string
	incomplete bool
	entryLine
	entryTexts
	entryFacts
}

// entryLine is what an entry shows in one line.
type entryLine struct {
	Kind   string // its CSS class: turn, call, note
	Agent  string // empty for the run's own
	Name   string
	Topic  string        // its subject in one line
	Line   document.Text // the whole text of a note
	End    string        // how it ended and how long it took
	Bad    bool
	Nested bool  // a script made the call
	By     int64 // the event that began the script's call; 0 if it is missing
}

// entryTexts has the longer texts of an entry.
type entryTexts struct {
	Message g.Group         // the agent's messages
	Titles  []document.Text // of the texts in Parts
	Parts   g.Group         // titled texts, and the diff of a patch
	Open    bool            // unfolded at first
}

// entryFacts is what the overview counts of an entry.
type entryFacts struct {
	refused string // the rule that refused the call or host
	seconds float64
	paths   []string // the paths in its patch
}

// addPart adds a titled text. seq is the number of a later event that contains the text, or 0 for the entry's first.
func (t *entryTexts) addPart(seq int64, title string, text excerpt) {
	t.Titles = append(t.Titles, document.Words(title))
	t.Parts = append(t.Parts, h.P(h.Class("part"), g.If(seq != 0, h.ID(sections.EventID(seq))), Line(document.Words(title))), text.node())
}

// addResult adds the result of a call: how it ended, its output, and the file with the whole
// output.
func (e *entry) addResult(limit textLimit, f transcript.ToolFinished) {
	e.seconds, e.refused = f.Seconds, refusal(f)
	result := f.DescribeResult()
	if e.refused != "" {
		result = "refused"
	}
	e.Bad = result != "ok"
	e.End = result + " · " + transcript.FormatSeconds(f.Seconds)
	e.addPart(e.Until, "Output", plainWeights.cut(limit, transcript.ReadableOutput(f.Output)))
	if f.File != "" {
		e.Parts = append(e.Parts, cutNote(fmt.Sprintf("The whole output, %s bytes, is %s in the run directory.", transcript.GroupThousands(f.Bytes), f.File)))
	}
}

// refusal returns the rule that refused a call, or "".
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

// item has the fields of a Responses API item that are shown. Fields of an unexpected type stay
// empty.
type item struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Summary json.RawMessage `json:"summary"`
}

// itemText returns the text of a message or summary, which is a string or a list of parts.
func itemText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return transcript.PartsText(raw)
}

// sentText returns the role and text of an input item that the timeline shows with the request. It returns ""
// for items that have entries of their own, such as outputs of calls.
func sentText(raw json.RawMessage) (role, text string) {
	var i item
	if json.Unmarshal(raw, &i) != nil || i.Role == "" || i.Role == "assistant" {
		return "", ""
	}
	text = itemText(i.Content)
	if strings.HasPrefix(text, transcript.WrittenResultsPrefix) {
		return "", ""
	}
	return i.Role, text
}

// shownElsewhere lists item types of calls. Calls have entries of their own.
var shownElsewhere = []string{
	"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call",
	"function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output",
}

// addOutput adds an item of a response to the entry of its turn. Items of calls are left out, because
// calls have entries.
func (a *assembler) addOutput(n *entry, raw json.RawMessage) {
	var i item
	if json.Unmarshal(raw, &i) != nil {
		a.addPart(n, "Item", string(raw))
		return
	}
	switch {
	case i.Type == "message":
		a.addMessage(n, itemText(i.Content))
	case i.Type == "reasoning":
		a.addPart(n, "Reasoning, summarised by the model", itemText(i.Summary))
	case !slices.Contains(shownElsewhere, i.Type):
		a.addPart(n, "Item "+i.Type, indentJSON(raw))
	}
}

// addSettings adds the instructions and tools of a request.
func (a *assembler) addSettings(n *entry, raw json.RawMessage) {
	var settings struct {
		Instructions string        `json:"instructions"`
		Tools        []offeredTool `json:"tools"`
		Input        []struct {    // items at the head of the conversation, which repeat them
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
		instructions += itemText(item.Content)
	}
	a.addPart(n, "Instructions", instructions)
	a.addPart(n, "Tools offered", strings.Join(toolNames(tools), ", "))
}

// offeredTool is a tool offered to the model, or a namespace of tools.
type offeredTool struct {
	Type  string        `json:"type"`
	Name  string        `json:"name"`
	Tools []offeredTool `json:"tools"`
}

// toolNames returns the names of tools, including those in namespaces.
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

// offeredInInput returns the names of the tools that an item of a request offers, or "".
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
