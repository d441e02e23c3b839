package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// foundTools are tools that the model looked for, as it found them: one may come again. Those of
// a function stand behind the tools of each request from then on; those of a tool_search_call stand
// in its output, which is in the history.
type foundTools struct {
	Added   []string // by the function
	Answers []string // by a tool_search_call
	Called  []string // tools that were called since the conversation was made shorter
}

// searchOutput answers a tool_search_call.
type searchOutput struct {
	Type      string            `json:"type"`
	CallID    string            `json:"call_id"`
	Execution string            `json:"execution"`
	Tools     []json.RawMessage `json:"tools"`
	Status    string            `json:"status"`
}

// searchOutputType is the type of an item that tells a model of tools, beside model.AdditionalToolsType.
const searchOutputType = "tool_search_output"

// define gives the definitions of tools by their names.
type define func(names []string, deferred bool) ([]json.RawMessage, error)

func searchOutputOf(call tools.Call, result tools.Result, define define) (json.RawMessage, error) {
	out := searchOutput{searchOutputType, call.ID, "client", []json.RawMessage{}, "completed"}
	if result.Failed {
		out.Status = "incomplete"
	}
	if len(result.Found) > 0 {
		var err error
		if out.Tools, err = define(result.Found, true); err != nil {
			return nil, err
		}
	}
	return model.Encode(out)
}

// definition is that of a tool; nil of one that is not there, or switched off.
func (c *Conversation) definition(name string, deferred bool) (json.RawMessage, error) {
	specs := c.Tools.Registry.Specs([]string{name})
	if len(specs) == 0 {
		return nil, nil
	}
	d := definitionOf(specs[0])
	d.Defer = deferred
	return model.Encode(d)
}

// fitting are the definitions of tools by their names, as far as there is room: those that come
// first go first.
func (c *Conversation) fitting(names []string, deferred bool) (map[string]json.RawMessage, error) {
	told, size := map[string]json.RawMessage{}, 0
	for _, name := range distinct(names) {
		raw, err := c.definition(name, deferred)
		if err != nil {
			return nil, err
		}
		if raw != nil && (len(told) == 0 || size+len(raw) <= c.mostFound()) {
			told[name] = raw
			size += len(raw)
		}
	}
	return told, nil
}

// definitions are those that fit, in the order of the names.
func (c *Conversation) definitions(names []string, deferred bool) ([]json.RawMessage, error) {
	told, err := c.fitting(names, deferred)
	return inOrder(names, told), err
}

func inOrder(names []string, told map[string]json.RawMessage) []json.RawMessage {
	all := make([]json.RawMessage, 0, len(told))
	for _, name := range distinct(names) {
		if raw := told[name]; raw != nil {
			all = append(all, raw)
		}
	}
	return all
}

// mostFoundBytes is how many bytes the definitions of tools that were found have at most.
const mostFoundBytes = 128 << 10

// mostFound is how many they may have together in this conversation: a quarter of the window.
func (c *Conversation) mostFound() int {
	if c.Window > 0 {
		return int(min(mostFoundBytes, c.Window*bytesInToken/4))
	}
	return mostFoundBytes
}

// adopt takes a call, and what it found.
func (f *foundTools) adopt(call tools.Call, result tools.Result) {
	if call.Form == tools.Search {
		f.Answers = append(f.Answers, result.Found...)
	} else {
		for _, name := range slices.Backward(result.Found) { // the first fits best, and is the last to go
			f.Added = append(f.Added, name)
		}
	}
	if name := strings.TrimPrefix(call.Name, "functions."); !slices.Contains(f.Called, name) {
		f.Called = append(f.Called, name)
	}
}

// used are those of names that were called since the conversation was made shorter.
func (f *foundTools) used(names []string) []string {
	return distinct(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(f.Called, name) }))
}

// kept is what the function found and a shorter conversation keeps: what was called, and what the
// model was not told of yet, which is all but the first ones, told.
func (f *foundTools) kept(told int) []string {
	return append(f.used(f.Added[:told]), f.Added[told:]...)
}

// shortened forgets what was found and not used: it can be looked for again. items are the
// conversation that was made shorter, told what the model was told of by then.
func (f *foundTools) shortened(items []json.RawMessage, told int) {
	inItems := slices.DeleteFunc(distinct(f.Answers), func(name string) bool { return !slices.ContainsFunc(items, tellsOf(name)) })
	*f = foundTools{Added: f.kept(told), Answers: inItems}
}

// distinct are names without those that came before.
func distinct(names []string) []string {
	var all []string
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// added are the definitions behind the tools of a request: of what was found by the function the
// last, as far as there is room, in the order in which they were found first.
func (c *Conversation) added(names []string) ([]json.RawMessage, error) {
	newest := slices.Clone(names)
	slices.Reverse(newest)
	told, err := c.fitting(newest, false)
	return inOrder(names, told), err
}

// withFound are settings with what was found behind the tools.
func (c *Conversation) withFound(s model.Settings) (model.Settings, error) {
	added, err := c.added(c.found.Added)
	if err == nil && len(added) > 0 {
		s.Tools = slices.Concat(s.Tools, added)
	}
	return s, err
}

// foundTokens is how much of a request is what was found by the function.
func (c *Conversation) foundTokens(names []string) int64 {
	added, err := c.added(names)
	if err != nil {
		return 0 // the request tells of it
	}
	return estimate(added)
}

// retold puts behind the items of a conversation that was made shorter what tool_search_calls
// found, the model has called since, and no item tells of any more.
func (c *Conversation) retold(items []json.RawMessage) ([]json.RawMessage, error) {
	items = slices.DeleteFunc(items, func(item json.RawMessage) bool { return kindOf(item).Type == model.AdditionalToolsType })
	gone := slices.DeleteFunc(c.found.used(c.found.Answers), func(name string) bool { return slices.ContainsFunc(items, tellsOf(name)) })
	definitions, err := c.definitions(gone, true)
	if err != nil || len(definitions) == 0 {
		return items, err
	}
	raw, err := model.AdditionalTools(definitions)
	return append(items, raw), err
}

// tellsOf says of an item whether it has the definition of a tool.
func tellsOf(name string) func(item json.RawMessage) bool {
	return func(item json.RawMessage) bool {
		var told struct {
			Type  string
			Tools []struct{ Name string }
		}
		kind := kindOf(item).Type
		return (kind == searchOutputType || kind == model.AdditionalToolsType) && json.Unmarshal(item, &told) == nil &&
			slices.ContainsFunc(told.Tools, func(t struct{ Name string }) bool { return t.Name == name })
	}
}

// withoutTools is the output of a tool_search_call that tells of nothing.
func withoutTools(item json.RawMessage) (json.RawMessage, error) {
	var out searchOutput
	if err := json.Unmarshal(item, &out); err != nil {
		return nil, fmt.Errorf("read output item: %w", err)
	}
	out.Tools = []json.RawMessage{}
	return model.Encode(out)
}

// foundBy is what a call found, by what the transcript has of its end.
func foundBy(end transcript.ToolFinished) []string {
	names, _ := end.Detail[foundDetail].([]any)
	var all []string
	for _, name := range names {
		if text, ok := name.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// foundDetail is under what name the transcript has what a call found.
const foundDetail = "found"
