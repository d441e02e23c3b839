package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/callitem"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// foundTools are the tools found by the model's searches, with duplicates. Tools found by the
// search function follow the other tools in each later request. Tools found by a tool_search_call
// stay in its output in the history.
type foundTools struct {
	added   []string // by the search function, the best match of each search last
	answers []string // by a tool_search_call, best match first
	called  []string // tools that were called since the conversation was made shorter
}

// definition returns a tool's definition; nil if missing or disabled.
func (c *Conversation) definition(name string, deferred bool) (json.RawMessage, error) {
	specs := c.Tools.Registry.Specs([]string{name})
	if len(specs) == 0 {
		return nil, nil
	}
	d := callitem.DefinitionOf(specs[0])
	d.Defer = deferred
	return rawitem.Encode(d)
}

// definitions returns the definitions of tools up to the size limit, in the order of names. Those first in names
// fit first.
func (c *Conversation) definitions(names []string, deferred bool) ([]json.RawMessage, error) {
	return c.fittingDefinitions(names, names, deferred)
}

// fittingDefinitions returns the definitions of tools up to the size limit, in the order of names. They are fitted in
// the order of first.
func (c *Conversation) fittingDefinitions(names, first []string, deferred bool) ([]json.RawMessage, error) {
	fitting, size := map[string]json.RawMessage{}, 0
	for _, name := range distinct(first) {
		raw, err := c.definition(name, deferred)
		if err != nil {
			return nil, err
		}
		if raw != nil && (len(fitting) == 0 || size+len(raw) <= c.maxFoundBytes()) {
			fitting[name] = raw
			size += len(raw)
		}
	}
	all := make([]json.RawMessage, 0, len(fitting))
	for _, name := range distinct(names) {
		if raw := fitting[name]; raw != nil {
			all = append(all, raw)
		}
	}
	return all, nil
}

// foundBytesLimit limits the definitions of found tools, in bytes.
const foundBytesLimit = 128 << 10

// maxFoundBytes limits the definitions of found tools in this conversation: at most a quarter of the window.
func (c *Conversation) maxFoundBytes() int {
	if c.Window > 0 {
		return int(min(foundBytesLimit, c.Window*rawitem.BytesInToken/4))
	}
	return foundBytesLimit
}

// recordCall notes that a tool was called, and the tools that the call found, if any. Added is cut at its
// front, so the best match comes last.
func (f *foundTools) recordCall(call tools.Call, result tools.Result) {
	if call.Form == tools.Search {
		f.answers = append(f.answers, result.Found...)
	} else {
		for _, name := range slices.Backward(result.Found) {
			f.added = append(f.added, name)
		}
	}
	if name := strings.TrimPrefix(call.Name, "functions."); !slices.Contains(f.called, name) {
		f.called = append(f.called, name)
	}
}

// calledNames returns those of names that were called since the last compaction.
func (f *foundTools) calledNames(names []string) []string {
	return distinct(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(f.called, name) }))
}

// survivesCompaction returns the found tools to keep after compaction: those called, and those not
// announced to the model yet. announced is the number of tools already announced.
func (f *foundTools) survivesCompaction(announced int) []string {
	return append(f.calledNames(f.added[:announced]), f.added[announced:]...)
}

// forgetUnused forgets found but unused tools after a compaction; a search can find them again. items
// are the shortened conversation. announced is the number of tools already announced.
func (f *foundTools) forgetUnused(items []json.RawMessage, announced int) {
	inItems := slices.DeleteFunc(distinct(f.answers), func(name string) bool { return !slices.ContainsFunc(items, definesTool(name)) })
	*f = foundTools{added: f.survivesCompaction(announced), answers: inItems}
}

// distinct removes duplicate names.
func distinct(names []string) []string {
	var all []string
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// definitionsAfterTools returns the definitions following a request's tools: the function's latest finds, up to the
// size limit, in order of discovery.
func (c *Conversation) definitionsAfterTools(names []string) ([]json.RawMessage, error) {
	newest := slices.Clone(names)
	slices.Reverse(newest)
	return c.fittingDefinitions(names, newest, false)
}

// withFoundTools returns settings with found tools after the others.
func (c *Conversation) withFoundTools(s model.Settings) (model.Settings, error) {
	added, err := c.definitionsAfterTools(c.found.added)
	if err == nil && len(added) > 0 {
		s.Tools = slices.Concat(s.Tools, added)
	}
	return s, err
}

// foundTokens returns the estimated tokens of the function's finds.
func (c *Conversation) foundTokens(names []string) int64 {
	added, err := c.definitionsAfterTools(names)
	if err != nil {
		return 0 // the request fails with the same error
	}
	return rawitem.Estimate(added)
}

// withSearchedTools appends tools found by tool_search_calls and called since, but missing from a shortened
// conversation's items.
func (c *Conversation) withSearchedTools(items []json.RawMessage) ([]json.RawMessage, error) {
	items = slices.DeleteFunc(items, func(item json.RawMessage) bool { return rawitem.FieldsOf(item).Type == rawitem.AdditionalToolsType })
	gone := slices.DeleteFunc(c.found.calledNames(c.found.answers), func(name string) bool { return slices.ContainsFunc(items, definesTool(name)) })
	definitions, err := c.definitions(gone, true)
	if err != nil || len(definitions) == 0 {
		return items, err
	}
	raw, err := rawitem.AdditionalTools(definitions)
	return append(items, raw), err
}

// definesTool returns a predicate for items that define the tool called name.
func definesTool(name string) func(item json.RawMessage) bool {
	return func(item json.RawMessage) bool {
		var told struct {
			Type  string
			Tools []struct{ Name string }
		}
		kind := rawitem.FieldsOf(item).Type
		return (kind == rawitem.SearchOutputType || kind == rawitem.AdditionalToolsType) && json.Unmarshal(item, &told) == nil &&
			slices.ContainsFunc(told.Tools, func(t struct{ Name string }) bool { return t.Name == name })
	}
}

// foundBy returns a call's finds from the transcript.
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

// foundDetail is the transcript's key for a call's finds.
const foundDetail = "found"
