package search

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
)

func spec(name, about string, parameters ...string) tools.Spec {
	properties := map[string]any{}
	for _, p := range parameters {
		properties[p] = map[string]any{"type": "string"}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	if err != nil {
		panic(err)
	}
	return tools.Spec{Name: name, Description: about, Parameters: raw}
}

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"mcp__git-hub__list_issues": {"mcp", "git", "hub", "list", "issue"},
		"listOpenIssues":            {"list", "open", "issue"},
		"HTTPServer.getURL":         {"http", "server", "get", "url"},
		"search_tool_bm25":          {"search", "tool", "bm25"},
		"Queries a class, its bus.": {"query", "a", "class", "its", "bus"},
		"Größe-ändern":              {"größe", "ändern"},
		" -_. ":                     nil,
		"":                          nil,
	} {
		must.Same(t, want, splitWords(text), text)
	}
}

func TestFind(t *testing.T) {
	index := NewIndex([]tools.Spec{
		spec("mcp__git__create_issue", "Opens an issue.", "title", "body"),
		spec("mcp__git__list_issues", "Lists the issues of a repository.", "state"),
		spec("mcp__mail__send", "Sends a letter to somebody, with a copy.", "recipient"),
		spec("twin_b", "Does the same."),
		spec("twin_a", "Does the same."),
		{Name: "deep", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":{"properties":{"innermostThing":true}}}}}`)},
		{Name: "noSchema", Description: "x"},
	})
	for _, test := range []struct {
		query string
		most  int
		want  []string
	}{
		{"create an issue", 8, []string{"mcp__git__create_issue", "mcp__git__list_issues"}},
		{"LIST issues", 1, []string{"mcp__git__list_issues"}},
		{"recipients", 8, []string{"mcp__mail__send"}},
		{"thing", 8, []string{"deep"}},
		{"same", 8, []string{"twin_b", "twin_a"}},
		{"same same same", 1, []string{"twin_b"}},
		{"zebra", 8, []string{}},
	} {
		must.Same(t, test.want, index.Find(test.query, test.most), test.query)
	}
}

// TestScores holds BM25 to scores that were worked out by hand, with k1 = 1.2, b = 0.75 and
// rarity ln(1 + (N - n + 0.5) / (n + 0.5)): there are N = 3 tools of 3, 1 and 5 words, 3 in the
// mean.
func TestScores(t *testing.T) {
	index := NewIndex([]tools.Spec{
		{Name: "alpha", Description: "tide tide"},
		{Name: "tide"},
		{Name: "beta", Description: "moon moon moon moon"},
	})
	for query, want := range map[string][]float64{
		// tide is in 2 of 3: ln(1 + 1.5/2.5) = 0.470003629. alpha has the mean length:
		// 2·2.2/(2 + 1.2) = 1.375; tide has a third of it: 2.2/(1 + 1.2·(0.25 + 0.75/3)) = 1.375.
		"tide": {0.646254990, 0.646254990, 0},
		// moon is in 1: ln(1 + 2.5/1.5) = 0.980829253; 4·2.2/(4 + 1.2·(0.25 + 0.75·5/3)) = 1.517241379.
		"moon": {0, 0, 1.488154729},
		// beta is there once: 2.2/(1 + 1.8) = 0.785714286 of 0.980829253 more.
		"moon beta moon": {0, 0, 2.258806285},
		"alpha":          {0.980829253, 0, 0}, // 2.2/(1 + 1.2)
		"zebra":          {0, 0, 0},
	} {
		got := index.scores(query)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-8 {
				t.Errorf("%s: tool %d has %.9f, and by hand %.9f", query, i, got[i], want[i])
			}
		}
	}
}

func candidates(n int, from string) []Candidate {
	var all []Candidate
	for i := range n {
		all = append(all, Candidate{Tool: tools.Tool{Spec: spec(fmt.Sprintf("mcp__%s__tool_%d", from, i), fmt.Sprintf("Does the thing number %d.", i), "path")}, Source: from})
	}
	return all
}

func TestDeferred(t *testing.T) {
	few := candidates(MaxOffered, "a")
	must.None(t, Deferred(few), len(few))
	few[3].Defer = true
	if got := Deferred(few); len(got) != 1 || got[0].Spec.Name != few[3].Spec.Name || len(few) != MaxOffered {
		t.Errorf("deferred are %v", got)
	}
	must.Same(t, MaxOffered+1, len(Deferred(candidates(MaxOffered+1, "a"))), "of one more", "are deferred")
}

func call(t *testing.T, input string) tools.Result {
	t.Helper()
	d := tools.Dispatcher{Registry: tools.New(Tools(append(candidates(40, "github"), candidates(20, "jira")...))...), Outputs: new(tools.Outputs)}
	results := d.Dispatch(t.Context(), []tools.Call{{Name: FunctionName, Input: input}, {Name: BuiltinName, Input: input, Form: tools.Search}})
	must.Same(t, strings.Replace(results[1].Output, BuiltinName, FunctionName, 1), results[0].Output, "the two tools answer otherwise")
	return results[0]
}

func TestLimits(t *testing.T) {
	for input, want := range map[string]int{
		`{"query":"thing"}`:                  defaultFound,
		`{"query":"thing","limit":null}`:     defaultFound,
		`{"query":"thing","limit":1}`:        1,
		`{"query":"thing","limit":"3"}`:      3,
		`{"query":"thing","limit":12.7}`:     12,
		`{"query":"thing","limit":1e300}`:    maxFound,
		`{"query":"github 7"}`:               defaultFound,
		`{"query":"what nobody has"}`:        0,
		`{"query":"does 19","limit":100}`:    maxFound,
		`{"query":"\u0000 thing","limit":2}`: 2,
	} {
		got := call(t, input)
		if got.Failed || len(got.Found) != want || strings.Count(got.Output, "\n- ") != want {
			t.Errorf("%s: %d found, want %d:\n%s", input, len(got.Found), want, got.Output)
		}
	}
	must.Same(t, "mcp__jira__tool_19", call(t, `{"query":"jira 19"}`).Found[0], "found")
}

func TestRefusals(t *testing.T) {
	for input, want := range map[string]string{
		`{"query":""}`:               "query has no words: say in a few what the tool is to do",
		`{"query":" _- "}`:           "query has no words",
		`{"query":"x","limit":0}`:    "limit is 0: give how many tools you want, from 1 to 30",
		`{"query":"x","limit":-2}`:   "limit is -2: give",
		`{"limit":2}`:                `expected "query", got nothing by that name`,
		`{"query":["x"]}`:            "query: expected string",
		`{"query":"x","limit":"no"}`: "limit: expected number",
	} {
		if got := call(t, input); !got.Failed || len(got.Found) > 0 || !strings.Contains(got.Output, want) {
			t.Errorf("%s: got %q, want %q", input, got.Output, want)
		}
	}
}

func TestDescriptionCountsToolsBySource(t *testing.T) {
	about := description(append(candidates(3, "jira"), candidates(20, "github")...))
	must.Contain(t, about, "There are 23, of: github (20), jira (3).")
	var many []Candidate
	for i := range 30 {
		many = append(many, candidates(20, fmt.Sprintf("%s%d", strings.Repeat("x", 60), i))...)
	}
	about = description(many)
	if !strings.Contains(about, "22 more") || len(about) > 700 {
		t.Errorf("%d bytes: %s", len(about), about)
	}
}

func BenchmarkSearch500(b *testing.B) {
	var specs []tools.Spec
	for i := range 500 {
		about := fmt.Sprintf("Gives the state of the number %d and of what belongs to it. ", i) + strings.Repeat("It takes a project, a page and a filter. ", 10)
		specs = append(specs, spec(fmt.Sprintf("mcp__server_%d__get_state_%d", i%7, i), about, "project", "page", "filter", "sort_order"))
	}
	index := NewIndex(specs)
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			NewIndex(specs)
		}
	})
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			if len(index.Find("get the state of number 77 in a project, by page and filter", defaultFound)) != defaultFound {
				b.Fatal("nothing was found")
			}
		}
	})
}
