package agent

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// foundTools are tools that the model looked for, in the order in which they were found. Those of
// a function stand behind the tools of each request from then on, so that what the provider
// has cached holds; those of a tool_search_call stand in its output, which is in the history.
type foundTools struct {
	Added   []string // by the function
	Answers []string // by a tool_search_call
}

// searchOutput answers a tool_search_call.
type searchOutput struct {
	Type      string            `json:"type"`
	CallID    string            `json:"call_id"`
	Execution string            `json:"execution"`
	Tools     []json.RawMessage `json:"tools"`
	Status    string            `json:"status"`
}

// additionalTools tell the model of tools in the history.
type additionalTools struct {
	Type  string            `json:"type"`
	Role  string            `json:"role"`
	Tools []json.RawMessage `json:"tools"`
}

// The types of the items that tell a model of tools.
const (
	searchOutputType    = "tool_search_output"
	additionalToolsType = "additional_tools"
)

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

// definitions are those of tools by their names; what is not there, or switched off, is left
// out.
func (c *Conversation) definitions(names []string, deferred bool) ([]json.RawMessage, error) {
	all := make([]json.RawMessage, 0, len(names))
	for _, name := range names {
		for _, spec := range c.Tools.Registry.Specs([]string{name}) {
			d := definitionOf(spec)
			d.Defer = deferred
			raw, err := model.Encode(d)
			if err != nil {
				return nil, err
			}
			all = append(all, raw)
		}
	}
	return all, nil
}

// adopt takes what a call found.
func (f *foundTools) adopt(call tools.Call, result tools.Result) {
	for _, name := range result.Found {
		switch {
		case slices.Contains(f.Added, name):
		case call.Form == tools.Search:
			if !slices.Contains(f.Answers, name) {
				f.Answers = append(f.Answers, name)
			}
		default:
			f.Added = append(f.Added, name)
		}
	}
}

// withFound are settings with what was found behind the tools.
func (c *Conversation) withFound(s model.Settings) (model.Settings, error) {
	if len(c.found.Added) == 0 {
		return s, nil
	}
	added, err := c.definitions(c.found.Added, false)
	if err != nil {
		return s, err
	}
	s.Tools = slices.Concat(s.Tools, added)
	return s, nil
}

// retold puts behind the items of a conversation that was made shorter what tool_search_calls
// found and no item tells of any more.
func (c *Conversation) retold(items []json.RawMessage) ([]json.RawMessage, error) {
	items = slices.DeleteFunc(items, func(item json.RawMessage) bool { return kindOf(item).Type == additionalToolsType })
	gone := slices.DeleteFunc(slices.Clone(c.found.Answers), func(name string) bool { return slices.ContainsFunc(items, tellsOf(name)) })
	definitions, err := c.definitions(gone, true)
	if err != nil || len(definitions) == 0 {
		return items, err
	}
	raw, err := model.Encode(additionalTools{additionalToolsType, "developer", definitions})
	return append(items, raw), err
}

// tellsOf says of an item whether it has the definition of a tool.
func tellsOf(name string) func(item json.RawMessage) bool {
	return func(item json.RawMessage) bool {
		var told struct {
			Type  string
			Tools []struct{ Name string }
		}
		return kindOf(item).Type == searchOutputType && json.Unmarshal(item, &told) == nil &&
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
