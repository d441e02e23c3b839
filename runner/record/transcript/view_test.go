package transcript_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

// outlines tell of each entry in a line: who said what, or how a call went.
func outlines(v *transcript.View) []string {
	var all []string
	for _, e := range v.Entries {
		if e.Call == nil {
			all = append(all, fmt.Sprintf("%s: %s", e.Agent, e.Message))
			continue
		}
		all = append(all, fmt.Sprintf("%s %s %s: %q %s", e.Agent, e.Call.Tool, e.Call.ID, e.Call.Output, ending(e.Call)))
	}
	return all
}

func ending(c *transcript.Call) string {
	if !c.Finished {
		return "did not end"
	}
	return c.Result
}

func TestProjectCalls(t *testing.T) {
	tests := []struct {
		name string
		run  []transcripttest.Happening
		want []string
	}{
		{
			"out of order",
			[]transcripttest.Happening{transcripttest.Called(1, "a", "x", ""), transcripttest.Called(1, "b", "x", ""), transcripttest.Ended(1, "b", "x", "B", 0), transcripttest.Ended(1, "a", "x", "A", 2)},
			[]string{`main x a: "A" exit 2`, `main x b: "B" ok`},
		},
		{
			"the same id twice at a time",
			[]transcripttest.Happening{transcripttest.Called(1, "a", "x", ""), transcripttest.Called(1, "a", "y", ""), transcripttest.Ended(1, "a", "x", "1", 0), transcripttest.Ended(1, "a", "y", "2", 0)},
			[]string{`main x a: "1" ok`, `main y a: "2" ok`},
		},
		{
			"without a beginning",
			[]transcripttest.Happening{transcripttest.Ended(1, "a", "x", "A", 0)},
			[]string{`main x a: "A" ok`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			view := transcripttest.Folded(t, test.run)
			must.Same(t, test.want, outlines(view), "entries")
			must.Same(t, len(test.want), view.Calls)
		})
	}
}

// withAgent changes who the events of a log are by; the chain is broken then.
func withAgent(log, agent string) string {
	return strings.ReplaceAll(log, `"agent":"main"`, `"agent":"`+agent+`"`)
}

func TestProjectAgents(t *testing.T) {
	mine := transcripttest.Recorded(t, []transcripttest.Happening{transcripttest.Called(1, "a", "x", ""), transcripttest.Said(1, "mine")})
	other := withAgent(transcripttest.Recorded(t, []transcripttest.Happening{transcripttest.Called(1, "a", "x", ""), transcripttest.Said(1, "theirs"), transcripttest.Ended(1, "a", "x", "A", 0)}), "reviewer")
	view := must.Get(transcript.FoldWithEntries(strings.NewReader(mine + other)))(t)
	want := []string{"main: mine", `main x a: "" did not end`, "reviewer: theirs", `reviewer x a: "A" ok`} // a response that stands behind its calls
	must.Same(t, want, outlines(view), "entries")
	must.Same(t, "mine", view.Summary(), "the summary is another agent's")
}

func TestProjectSkipsUnknownContent(t *testing.T) {
	view := transcripttest.Folded(t, []transcripttest.Happening{
		{Kind: "later.type", Data: map[string]any{"x": 1}},
		{Kind: transcript.TypeModelResponse, Data: transcript.ModelResponse{Turn: 1, Output: []json.RawMessage{
			json.RawMessage(`{"type":"reasoning","encrypted_content":"x"}`), json.RawMessage(`{"type":"message","content":"of a later shape"}`),
			json.RawMessage(`7`), transcripttest.Message(" \n"), transcripttest.Message("hello"),
		}}},
	})
	must.Same(t, []string{"main: hello"}, outlines(view), "entries")
}

func TestProjectNamesBadEvent(t *testing.T) {
	text := strings.Replace(transcripttest.Recorded(t, transcripttest.Greeting()), `"type":"plan","data":{`, `"type":"plan","data":{"steps":7},"x":{`, 1)
	view := must.Get(transcript.FoldWithEntries(strings.NewReader(text)))(t)
	must.Fail(t, "event 9 (plan): steps is a number, not a list", view.Damage)
	must.Same(t, transcripttest.Folded(t, transcripttest.Greeting()).Entries, view.Entries)
}

func TestProjectTornLog(t *testing.T) {
	text := transcripttest.Recorded(t, transcripttest.Greeting()) + `{"v":1,"seq":24,`
	view := must.Get(transcript.FoldWithEntries(strings.NewReader(text)))(t)
	if !view.Torn || view.EventCount != 22 {
		t.Errorf("torn %t, %d events", view.Torn, view.EventCount)
	}
}

func TestTopic(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"command", `{"workdir":".","cmd":"go test ./..."}`, "go test ./..."},
		{"argv", `{"command":["bash","-lc","ls"]}`, "bash -lc ls"},
		{"script", `{"cmd":"cd x \\\n && make"}`, "cd x …"},
		{"path", `{"file_path":"a/b.go","offset":1}`, "a/b.go"},
		{"number", `{"session_id":7}`, "7"},
		{"patch", "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** End Patch", "a, b"},
		{"patch as an argument", `{"input":"*** Begin Patch\n*** Update File: a\n*** End Patch"}`, "a"},
		{"patch of a built-in tool", `{"type":"update_file","path":"a/b.go","diff":"@@\n-x\n+y"}`, "a/b.go"},
		{"patch in a script", `{"cmd":"cd sub && apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF\n"}`, "a"},
		{"patch in an argv", `{"command":["apply_patch","*** Begin Patch\n*** Delete File: a\n*** End Patch\n"]}`, "a"},
		{"patch in a script in an argv", `{"command":["bash","-lc","apply_patch <<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF"]}`, "a"},
		{"patch after a command", `{"cmd":"make; apply_patch <<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF"}`, "make; apply_patch <<EOF …"},
		{"patch before a command", `{"cmd":"apply_patch <<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF\nmake"}`, "apply_patch <<EOF …"},
		{"patch in a substitution", `{"cmd":"cd $(make) && apply_patch <<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF"}`, "cd $(make) && apply_patch <<EOF …"},
		{"many files", "*** Begin Patch\n" + strings.Repeat("*** Delete File: f\n", 5), "f, f, f and 2 more"},
		{"nothing that is known", `{"x":1}`, ""},
		{"no JSON", `go test`, "go test"},
		{"JavaScript", "// @exec: {\"yield_time_ms\": 1}\n\nconst a = 1;\ntext(a);\n", "const a = 1; …"},
		{"JavaScript that is one line", "text(1);", "text(1);"},
		{"nothing but a pragma", "// @exec: {}", "// @exec: {}"},
		{"long", `{"cmd":"` + strings.Repeat("x", 200) + `"}`, strings.Repeat("x", 99) + "…"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			must.Same(t, test.want, transcript.ToolStarted{Input: test.input}.Topic(), test.input)
		})
	}
}

func TestReadable(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"one text", `{"cmd":"a\nb"}`, "a\nb"},
		{"several", `{"cmd":"a","n":[1, 2],"env":{"x":"é"}}`, "cmd: a\nn: [1,2]\nenv: {\"x\":\"é\"}\n"},
		{"a script among them", `{"workdir":".","cmd":"a\nb\n"}`, "workdir: .\ncmd:\n  a\n  b\n"},
		{"one number", `{"n":1.0}`, "n: 1.0\n"},
		{"nothing", `{}`, `{}`},
		{"a patch", "*** Begin Patch\n", "*** Begin Patch\n"},
		{"an array", `[1]`, `[1]`},
		{"half an object", `{"cmd":"a"`, `{"cmd":"a"`},
		{"two objects", `{"a":1}{"b":2}`, `{"a":1}{"b":2}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			must.Same(t, test.want, transcript.ReadableArguments(test.input))
		})
	}
}

func BenchmarkProject(b *testing.B) {
	text := transcripttest.Recorded(b, transcripttest.Long(10_000))
	for name, fold := range map[string]func(io.Reader) (*transcript.View, error){"cut": transcript.FoldWithEntries, "whole": transcript.FoldWithTexts} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				must.Get(fold(strings.NewReader(text)))(b)
			}
		})
	}
}

func BenchmarkVerifyChain(b *testing.B) {
	text := transcripttest.Recorded(b, transcripttest.Long(10_000))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		must.Get(eventlog.VerifyChain(strings.NewReader(text)))(b)
	}
}

func TestBooksAnswersAtTheirTier(t *testing.T) {
	list := &price.List{
		Rates:   price.Rates{Input: 1, Cached: 0.1, CacheWrite: 1.25, Output: 10},
		Tiers:   []price.Tier{{Above: 500_000, Rates: price.Rates{Input: 2, Output: 15}}},
		Service: map[string]price.Rates{"flex": {Input: 0.5, Output: 5}},
	}
	answered := func(u transcript.Usage) transcripttest.Happening {
		return transcripttest.Happening{Kind: transcript.TypeModelResponse, Data: transcript.ModelResponse{Status: "completed", Usage: u}}
	}
	for _, test := range []struct {
		name string
		list *price.List
		run  []transcripttest.Happening
		want float64
	}{
		{"no answer", list, nil, 0},
		{"what the cache has", list, []transcripttest.Happening{answered(transcript.Usage{Input: 400_000, Cached: 200_000, CacheWrite: 100_000, Output: 10_000})}, 0.1 + 0.02 + 0.125 + 0.1},
		{"two short answers are no long one", list, []transcripttest.Happening{answered(transcript.Usage{Input: 400_000}), answered(transcript.Usage{Input: 400_000})}, 0.8},
		{"a long one", list, []transcripttest.Happening{answered(transcript.Usage{Input: 400_000}), answered(transcript.Usage{Input: 600_000})}, 0.4 + 1.2},
		{"tiers of service", list, []transcripttest.Happening{answered(transcript.Usage{Input: 400_000, ServiceTier: "flex"}), answered(transcript.Usage{Input: 400_000, ServiceTier: "default"})}, 0.2 + 0.4},
		{"what failed, and what made it shorter", list, []transcripttest.Happening{
			{Kind: transcript.TypeModelRetry, Data: transcript.ModelRetry{Usage: &transcript.Usage{Input: 100_000}}},
			{Kind: transcript.TypeModelFailure, Data: transcript.ModelFailure{Usage: &transcript.Usage{Input: 10_000}}},
			{Kind: transcript.TypeCompaction, Data: transcript.Compaction{Usage: &transcript.Usage{Input: 1000}}},
		}, 0.111},
		{"a price of nothing", new(price.List), []transcripttest.Happening{answered(transcript.Usage{Input: 400_000})}, 0},
	} {
		view := transcripttest.Folded(t, append([]transcripttest.Happening{{Kind: transcript.TypeRunStarted, Data: transcript.RunStarted{Price: test.list}}}, test.run...))
		if cost, known := transcript.CostOf(view.Models); !known || math.Abs(cost-test.want) > 1e-9 {
			t.Errorf("%s: costs %v (known: %t), want %v", test.name, cost, known, test.want)
		}
	}
	unpriced := transcripttest.Folded(t, []transcripttest.Happening{{Kind: transcript.TypeRunStarted, Data: transcript.RunStarted{}}, answered(transcript.Usage{Input: 1})})
	if cost, known := transcript.CostOf(unpriced.Models); known {
		t.Errorf("costs %v without a price", cost)
	}
	used := transcript.Usage{Input: 1}
	if cost, known := transcript.CostOf([]transcript.ModelUse{{Price: list, Usage: used}, {Usage: used}}); known {
		t.Errorf("costs %v with a price of one model of two", cost)
	}
}

// A script that goes on beside the last answer does not make that one of work to do.
func TestRunningScriptLeavesWorkDone(t *testing.T) {
	run := []transcripttest.Happening{
		{Kind: transcript.TypeModelRequest, Data: transcript.ModelRequest{Turn: 2}},
		transcripttest.CalledBy(1, 1, 1, "c1.1", "read_file", "{}"), transcripttest.Said(2, "Done."),
		{Kind: transcript.TypeChange, Data: transcript.Change{}},
	}
	if view := transcripttest.Folded(t, run); !view.Work.Done {
		t.Error("the work is not done")
	}
	run[1] = transcripttest.CalledBy(2, 2, 0, "c2", "read_file", "{}")
	if view := transcripttest.Folded(t, run); view.Work.Done {
		t.Error("the work is done, though the last answer called a tool")
	}
}
