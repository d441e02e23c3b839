package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
)

// The names of both tools: the API's and the function.
const (
	BuiltinName  = "tool_search"
	FunctionName = "search_tool_bm25"
)

// MaxOffered is the maximum number of external tools that requests describe. If there are more, the model has to search
// for them.
const MaxOffered = 30

// The default and maximum number of results.
const (
	defaultFound = 8
	maxFound     = 30
)

// Candidate is a tool of an MCP server, the job or the embedding program, which may be deferred.
type Candidate struct {
	tools.Tool
	Source string // who offers it, such as "this job"
	Defer  bool   // the model has to search for it, however few tools there are
}

// Deferred returns the candidates that the model has to search for: all if there are more than MaxOffered, or else those
// with Defer.
func Deferred(all []Candidate) []Candidate {
	if len(all) > MaxOffered {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool { return !c.Defer })
}

// Names reports whether a name is that of a search tool.
func Names(name string) bool { return name == BuiltinName || name == FunctionName }

// Tools returns the two forms of the search tool for the deferred tools. A model sees one tool. The first search builds
// the index, because most models never search.
func Tools(deferred []Candidate) []tools.Tool {
	specs := make([]tools.Spec, len(deferred))
	for i, c := range deferred {
		specs[i] = c.Spec
	}
	index := sync.OnceValue(func() *Index { return NewIndex(specs) })
	run := tools.Decoded(func(_ context.Context, _ tools.Call, a arguments) (tools.Result, error) {
		return search(index(), specs, a), nil
	})
	about := description(deferred)
	builtin := tools.Spec{Name: BuiltinName, Builtin: BuiltinName, Description: about, Accepts: parameters}
	function := tools.Spec{Name: FunctionName, Description: about, Parameters: parameters}
	return []tools.Tool{{Spec: builtin, Run: run}, {Spec: function, Run: run}}
}

// parameters has no limits: find explains an empty query or invalid number better than a schema.
var parameters = json.RawMessage(`{"type":"object","properties":{` +
	`"query":{"type":"string","description":"What the tool is to do, in a few words."},` +
	`"limit":{"type":"number","description":"How many tools, at most 30. Default 8."}` +
	`},"required":["query"],"additionalProperties":false}`)

type arguments struct {
	Query string
	Limit *float64
}

// search runs a call of the search tool.
func search(index *Index, specs []tools.Spec, a arguments) tools.Result {
	limit := defaultFound
	switch {
	case len(splitWords(a.Query)) == 0:
		return tools.Refuse(`query has no words: say in a few what the tool is to do, such as {"query": "create issue comment"}`)
	case a.Limit != nil && *a.Limit < 1:
		return tools.Refuse(fmt.Sprintf("limit is %v: give how many tools you want, from 1 to %d, or leave it out for %d", *a.Limit, maxFound, defaultFound))
	case a.Limit != nil:
		limit = int(min(*a.Limit, maxFound))
	}
	found := index.Find(a.Query, limit)
	return tools.Result{Found: found, Output: describeFound(found, specs), Detail: map[string]any{"found": found}}
}

// describeFound lists the found tools for the model.
func describeFound(found []string, specs []tools.Spec) string {
	if len(found) == 0 {
		return fmt.Sprintf("No tool has any of these words. There are %d; try other words for what it is to do.", len(specs))
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%d found; they can be called from now on:\n", len(found))
	for _, name := range found {
		at := slices.IndexFunc(specs, func(spec tools.Spec) bool { return spec.Name == name })
		fmt.Fprintf(&s, "- %s: %s\n", name, clip.Line(specs[at].Description, maxAbout))
	}
	return s.String()
}

// maxAbout is the maximum length of a description in results, in bytes. The tool's definition contains everything.
const maxAbout = 200

// maxNamed is the maximum number of sources of tools named in the description.
const maxNamed = 8

// description returns the search tool's description: how many tools each source has. It is short, because every request
// contains it.
func description(deferred []Candidate) string {
	counts := map[string]int{}
	for _, c := range deferred {
		counts[c.Source]++
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	var counted []string
	for _, name := range names {
		counted = append(counted, fmt.Sprintf("%s (%d)", clip.Line(name, 40), counts[name]))
	}
	return fmt.Sprintf("Finds tools that are not listed here, by words of what they do. There are %d, of: %s. "+
		"Look here before you say that something can't be done; what is found can be called from then on.", len(deferred), clip.Some(counted, maxNamed))
}
