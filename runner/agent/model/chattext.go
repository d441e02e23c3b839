package model

import (
	"encoding/json"
	"slices"
	"strings"
)

// asReasoning is how thoughts came that stood in the field reasoning.
const asReasoning = "reasoning"

// thoughtTags are between which tags models think in their text, where their endpoint leaves the
// thoughts there.
var thoughtTags = map[string]string{"<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "[THINK]": "[/THINK]"}

// thoughtIn parts the thought with which a text begins from the rest. Tags in the midst of a text
// are the model's words, but for one by itself that ends a thought whose beginning the endpoint
// gave itself.
func thoughtIn(text string) (thought, cameAs, rest string) {
	begun := strings.TrimLeft(text, " \t\r\n")
	for tag, end := range thoughtTags {
		if after, is := strings.CutPrefix(begun, tag); is {
			thought, rest, _ = strings.Cut(after, end)
			return thought, tag, strings.TrimLeft(rest, "\r\n")
		}
	}
	const tag = "<think>"
	before, after, ended := strings.Cut("\n"+text, "\n"+thoughtTags[tag]+"\n")
	if ended && !strings.Contains(before, tag) && !strings.Contains(before, "```") {
		return strings.TrimPrefix(before, "\n"), tag, strings.TrimLeft(after, "\r\n")
	}
	return "", "", text
}

// callableInText are the tools of a request that may be called in the text of its answer; nil for
// none.
func callableInText(s Settings) map[string]bool {
	if s.Speaking || !slices.Contains(s.Chat, TextCalls) {
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

// callsIn takes the calls out of a text that ends in them, and gives the words before. All of a
// text is words unless everything from the first call on is calls of tools that are offered: what a
// model quotes is mostly in a fence, or has words behind it.
func (a *chatAnswer) callsIn(text string) (words string) {
	at := strings.Index("\n"+text, "\n"+callBegins)
	if at < 0 || strings.Contains(text[:at], "```") || strings.Contains(text[:at], "~~~") {
		return text
	}
	var calls []chatCall
	for rest := text[at:]; strings.TrimSpace(rest) != ""; {
		call, after, ok := callAt(strings.TrimSpace(rest))
		if !ok || !a.inText[call.Function.Name] {
			return text
		}
		calls, rest = append(calls, call), after
	}
	for _, call := range calls {
		arguments := new(strings.Builder)
		arguments.WriteString(textOf(call.Function.Arguments))
		a.calls, a.written = append(a.calls, call), append(a.written, arguments)
	}
	return strings.TrimSpace(text[:at])
}

// callAt reads the call that a text begins with. Where it ends is told by its JSON, not by the tag,
// which may stand in an argument.
func callAt(text string) (call chatCall, rest string, ok bool) {
	inner, begins := strings.CutPrefix(text, callBegins)
	if !begins {
		return call, "", false
	}
	reader := json.NewDecoder(strings.NewReader(inner))
	if err := reader.Decode(&call.Function); err != nil {
		return call, "", false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(inner[reader.InputOffset():], " \t\r\n"), callEnds)
	return call, rest, ok
}
