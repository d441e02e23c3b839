package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/internal/exchange"
)

// reasoningField marks reasoning that came in the field reasoning.
const reasoningField = "reasoning"

// thoughtTags maps opening to closing tags, for endpoints that leave the model's reasoning in the text.
var thoughtTags = map[string]string{"<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "[THINK]": "[/THINK]"}

// splitThought splits a text that begins with reasoning in tags into the reasoning, its opening tag and the rest. It
// ignores tags elsewhere. The opening tag may be missing, since some endpoints put it into the prompt.
func splitThought(text string) (thought, openingTag, rest string) {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	for tag, end := range thoughtTags {
		if after, hasTag := strings.CutPrefix(trimmed, tag); hasTag {
			thought, rest, _ = strings.Cut(after, end)
			return thought, tag, strings.TrimLeft(rest, "\r\n")
		}
	}
	const tag = "<think>"
	before, after, ended := strings.Cut("\n"+text, "\n"+thoughtTags[tag]+"\n") // the tag is a line, possibly the first one
	if ended && !strings.Contains(before, tag) && !strings.Contains(before, "```") {
		return strings.TrimPrefix(before, "\n"), tag, strings.TrimLeft(after, "\r\n")
	}
	return "", "", text
}

// callableInText returns the names of the tools that the model may call in the text of its answer. It returns nil if
// calls in text are not allowed.
func callableInText(s model.Settings) map[string]bool {
	if s.WordsOnly || !slices.Contains(s.ChatQuirks, TextCalls) {
		return nil
	}
	tools, err := chatTools(s.Tools)
	if err != nil {
		return nil
	}
	names := map[string]bool{}
	for _, tool := range tools {
		name, _ := tool.Function["name"].(string)
		names[name] = true
	}
	return names
}

const (
	callBegins = "<tool_call>"
	callEnds   = "</tool_call>"
)

// takeCallsFrom adds the calls at the end of a text to the answer and returns the text before them. The model is
// probably only quoting calls if a code fence precedes them, or anything but calls of offered tools follows. Then
// takeCallsFrom returns the whole text.
func (a *chatAnswer) takeCallsFrom(text string) (textBefore string) {
	start := strings.Index("\n"+text, "\n"+callBegins) // a call must begin a line; the added newline lets the first line match
	if start < 0 || strings.Contains(text[:start], "```") || strings.Contains(text[:start], "~~~") {
		return text
	}
	var calls []*arrivingCall
	for rest := text[start:]; strings.TrimSpace(rest) != ""; {
		call, after, found := callAt(strings.TrimSpace(rest))
		if !found || !a.toolsInText[call.Function.Name] {
			return text
		}
		arrived := &arrivingCall{chatCall: call}
		arrived.arguments.WriteString(exchange.TextOf(call.Function.Arguments))
		calls, rest = append(calls, arrived), after
	}
	a.calls = append(a.calls, calls...)
	return strings.TrimSpace(text[:start])
}

// callAt parses the call at the start of a text. rest is the text after it. Without a call, found is false. It
// finds the call's end by the end of the JSON, since an argument may contain the closing tag.
func callAt(text string) (call chatCall, rest string, found bool) {
	inner, begins := strings.CutPrefix(text, callBegins)
	if !begins {
		return call, "", false
	}
	reader := json.NewDecoder(strings.NewReader(inner))
	if err := reader.Decode(&call.Function); err != nil {
		return call, "", false
	}
	rest, found = strings.CutPrefix(strings.TrimLeft(inner[reader.InputOffset():], " \t\r\n"), callEnds)
	return call, rest, found
}
