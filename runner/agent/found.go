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

// foundTools are the names of the tools that the model's searches found, with duplicates. A model
// searches in one of two forms. The search function's finds are added to the tools of every later
// request. The finds of a tool_search_call item are defined in its output, in the history.
type foundTools struct {
	byFunction []string // found by the search function; the best match of each search is last
	byItem     []string // found by a tool_search_call; the best match is first
	called     []string // tools called since the last compaction
}

// definition returns a tool's definition in JSON, or nil if the tool is missing or disabled. deferred sets its
// field defer_loading.
func (c *Conversation) definition(name string, deferred bool) (json.RawMessage, error) {
	specs := c.Tools.Registry.Specs([]string{name})
	if len(specs) == 0 {
		return nil, nil
	}
	d := callitem.DefinitionOf(specs[0])
	d.Defer = deferred
	return rawitem.Encode(d)
}

// definitions returns the definitions of the tools called names, in that order. If all together exceed
// maxFoundBytes, it leaves out the last ones.
func (c *Conversation) definitions(names []string, deferred bool) ([]json.RawMessage, error) {
	return c.fittingDefinitions(names, names, deferred)
}

// fittingDefinitions returns the definitions of the tools called names, in that order, up to maxFoundBytes.
// byPriority has the same names, most important first, and decides which tools are left out. The first one always
// fits.
func (c *Conversation) fittingDefinitions(names, byPriority []string, deferred bool) ([]json.RawMessage, error) {
	fitting, size := map[string]json.RawMessage{}, 0
	for _, name := range distinct(byPriority) {
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

// foundBytesLimit is the maximum size of all definitions of found tools, in bytes.
const foundBytesLimit = 128 << 10

// maxFoundBytes returns foundBytesLimit, or a quarter of the model's window if that is smaller.
func (c *Conversation) maxFoundBytes() int {
	if c.Window > 0 {
		return int(min(foundBytesLimit, c.Window*rawitem.BytesInToken/4))
	}
	return foundBytesLimit
}

// noteCall notes that a tool was called and, if it was a search, the tools that it found. In byFunction the best
// match comes last, because the size limit leaves out the first ones.
func (f *foundTools) noteCall(call tools.Call, result tools.Result) {
	if call.Form == tools.Search {
		f.byItem = append(f.byItem, result.Found...)
	} else {
		for _, name := range slices.Backward(result.Found) {
			f.byFunction = append(f.byFunction, name)
		}
	}
	if name := strings.TrimPrefix(call.Name, "functions."); !slices.Contains(f.called, name) {
		f.called = append(f.called, name)
	}
}

// calledNames returns those of names that were called since the last compaction, without duplicates.
func (f *foundTools) calledNames(names []string) []string {
	return distinct(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(f.called, name) }))
}

// survivesCompaction returns the tools of byFunction to keep after a compaction: those the model has called, and
// those it has not seen yet. It has seen the first reportedTools.
func (f *foundTools) survivesCompaction(reportedTools int) []string {
	return append(f.calledNames(f.byFunction[:reportedTools]), f.byFunction[reportedTools:]...)
}

// forgetUnused drops the found tools that need not survive a compaction, since a search can find them again. items
// are the shortened conversation. reportedTools is the number of tools of byFunction that the model has seen.
func (f *foundTools) forgetUnused(items []json.RawMessage, reportedTools int) {
	stillDefined := slices.DeleteFunc(distinct(f.byItem), func(name string) bool { return !slices.ContainsFunc(items, definesTool(name)) })
	*f = foundTools{byFunction: f.survivesCompaction(reportedTools), byItem: stillDefined}
}

// distinct returns the names without duplicates, in order of their first use.
func distinct(names []string) (all []string) {
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// newestDefinitions returns the definitions of the tools called names, in that order. If all together exceed
// maxFoundBytes, it leaves out the first ones, which were found earliest.
func (c *Conversation) newestDefinitions(names []string) ([]json.RawMessage, error) {
	newest := slices.Clone(names)
	slices.Reverse(newest)
	return c.fittingDefinitions(names, newest, false)
}

// withFoundTools returns the settings with the tools that the search function found after the other tools.
func (c *Conversation) withFoundTools(s model.Settings) (model.Settings, error) {
	added, err := c.newestDefinitions(c.found.byFunction)
	if err == nil && len(added) > 0 {
		s.Tools = slices.Concat(s.Tools, added)
	}
	return s, err
}

// foundTokens returns the estimated tokens that the definitions of these found tools take in a request.
func (c *Conversation) foundTokens(names []string) int64 {
	added, err := c.newestDefinitions(names)
	if err != nil {
		return 0 // the request fails with the same error
	}
	return rawitem.EstimateTokens(added)
}

// withSearchedTools appends one item that defines the called tools of earlier tool_search_calls, as far as items
// do not define them any more. It replaces such an item of an earlier compaction.
func (c *Conversation) withSearchedTools(items []json.RawMessage) ([]json.RawMessage, error) {
	items = slices.DeleteFunc(items, func(item json.RawMessage) bool { return rawitem.FieldsOf(item).Type == rawitem.AdditionalToolsType })
	removed := slices.DeleteFunc(c.found.calledNames(c.found.byItem), func(name string) bool { return slices.ContainsFunc(items, definesTool(name)) })
	definitions, err := c.definitions(removed, true)
	if err != nil {
		return nil, err
	}
	if len(definitions) == 0 {
		return items, nil
	}
	raw, err := rawitem.AdditionalTools(definitions)
	return append(items, raw), err
}

// definesTool returns a function that reports whether an item defines the tool called name.
func definesTool(name string) func(item json.RawMessage) bool {
	return func(item json.RawMessage) bool {
		var defined struct{ Tools []struct{ Name string } }
		kind := rawitem.FieldsOf(item).Type
		definesTools := kind == rawitem.SearchOutputType || kind == rawitem.AdditionalToolsType
		if !definesTools || json.Unmarshal(item, &defined) != nil {
			return false
		}
		return slices.ContainsFunc(defined.Tools, func(t struct{ Name string }) bool { return t.Name == name })
	}
}

// toolsFoundBy returns the names of the tools that a recorded search call found.
func toolsFoundBy(search transcript.ToolFinished) (all []string) {
	names, _ := search.Detail[foundDetail].([]any)
	for _, name := range names {
		if text, isText := name.(string); isText {
			all = append(all, text)
		}
	}
	return all
}

// foundDetail is the key of the tools that a call found, in its recorded details.
const foundDetail = "found"
