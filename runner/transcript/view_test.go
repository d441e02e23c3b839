package transcript

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outlines tell of each entry in a line: who said what, or how a call went.
func outlines(v *View) []string {
	var all []string
	for _, e := range v.Entries {
		if e.Call == nil {
			all = append(all, fmt.Sprintf("%s: %s", e.Agent, shown(e.Message)))
			continue
		}
		all = append(all, fmt.Sprintf("%s %s %s: %q %s", e.Agent, e.Call.Tool, e.Call.ID, shown(e.Call.Output), callOutcome(e.Call)))
	}
	return all
}

func TestProject(t *testing.T) {
	text := recorded(t, append(greeting(), finished(154)))
	view, err := Project(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	head, err := VerifyChain(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if view.Head != head || view.Events != 23 || view.Torn {
		t.Errorf("head %s of %d events, torn %t; the chain ends in %s", view.Head, view.Events, view.Torn, head)
	}
	if diff := cmp.Diff(Usage{Input: 8400, Cached: 6200, Output: 620, Reasoning: 240}, view.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	if view.Turns != 4 || view.Calls != 3 || view.Retries != 1 || view.Finished == nil {
		t.Errorf("%d turns, %d calls, %d retries, finished %v", view.Turns, view.Calls, view.Retries, view.Finished)
	}
	if got := view.Plan.Steps[2].Status; got != "in_progress" {
		t.Errorf("the plan is not the last one: %s", got)
	}
	if got, want := shown(view.Entries[1].Call.Input), "cmd: go test ./...\nworkdir: ."; got != want {
		t.Errorf("the first call's arguments are %q, want %q", got, want)
	}
}

func TestProjectCalls(t *testing.T) {
	tests := []struct {
		name string
		run  []happening
		want []string
	}{
		{
			"without an end",
			[]happening{called(1, "a", "exec_command", "{}"), called(1, "b", "exec_command", "{}"), ended(1, "b", "exec_command", "B", 0)},
			[]string{`main exec_command a: "" did not end`, `main exec_command b: "B" ok`},
		},
		{
			"out of order",
			[]happening{called(1, "a", "x", ""), called(1, "b", "x", ""), ended(1, "b", "x", "B", 0), ended(1, "a", "x", "A", 2)},
			[]string{`main x a: "A" exit 2`, `main x b: "B" ok`},
		},
		{
			"the same id twice at a time",
			[]happening{called(1, "a", "x", ""), called(1, "a", "y", ""), ended(1, "a", "x", "1", 0), ended(1, "a", "y", "2", 0)},
			[]string{`main x a: "1" ok`, `main y a: "2" ok`},
		},
		{
			"the same id again",
			[]happening{called(1, "a", "x", ""), ended(1, "a", "x", "1", 0), called(2, "a", "x", ""), ended(2, "a", "x", "2", 0)},
			[]string{`main x a: "1" ok`, `main x a: "2" ok`},
		},
		{
			"without a beginning",
			[]happening{ended(1, "a", "x", "A", 0)},
			[]string{`main x a: "A" ok`},
		},
		{
			"failed without an exit code",
			[]happening{called(1, "a", "x", ""), {TypeToolFinished, ToolFinished{CallID: "a", Failed: true, Output: "no"}}},
			[]string{`main x a: "no" failed`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			view := projected(t, test.run)
			if diff := cmp.Diff(test.want, outlines(view)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if view.Calls != len(test.want) {
				t.Errorf("%d calls, want %d", view.Calls, len(test.want))
			}
		})
	}
}

// withAgent changes who the events of a log are by; the chain is broken then.
func withAgent(log, agent string) string {
	return strings.ReplaceAll(log, `"agent":"main"`, `"agent":"`+agent+`"`)
}

func TestProjectAgents(t *testing.T) {
	mine := recorded(t, []happening{called(1, "a", "x", ""), said(1, "mine")})
	other := withAgent(recorded(t, []happening{called(1, "a", "x", ""), said(1, "theirs"), ended(1, "a", "x", "A", 0)}), "reviewer")
	view, err := Project(strings.NewReader(mine + other))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"main: mine", `main x a: "" did not end`, "reviewer: theirs", `reviewer x a: "A" ok`} // a response that stands behind its calls
	if diff := cmp.Diff(want, outlines(view)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if view.Summary() != "mine" {
		t.Errorf("the summary is another agent's: %s", view.Summary())
	}
	body, err := Body(view, BodyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(body, "> reviewer:\n>\n> theirs\n") || strings.Count(body, "mine") != 1 {
		t.Errorf("body:\n%s", body)
	}
}

func TestProjectSkipsWhatItDoesNotKnow(t *testing.T) {
	view := projected(t, []happening{
		{"later.type", map[string]any{"x": 1}},
		{TypeModelResponse, ModelResponse{Turn: 1, Output: []json.RawMessage{
			json.RawMessage(`{"type":"reasoning","encrypted_content":"x"}`), json.RawMessage(`{"type":"message","content":"of a later shape"}`),
			json.RawMessage(`7`), message(" \n"), message("hello"),
		}}},
	})
	if diff := cmp.Diff([]string{"main: hello"}, outlines(view)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestProjectNamesBadEvent(t *testing.T) {
	text := strings.Replace(recorded(t, greeting()), `"type":"plan","data":{`, `"type":"plan","data":{"steps":7},"x":{`, 1)
	if _, err := Project(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "event 9 (plan)") {
		t.Errorf("got %v", err)
	}
}

func TestProjectTornLog(t *testing.T) {
	text := recorded(t, greeting()) + `{"v":1,"seq":24,`
	view, err := Project(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if !view.Torn || view.Events != 22 {
		t.Errorf("torn %t, %d events", view.Torn, view.Events)
	}
	body, err := Body(view, BodyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(body, "The transcript's last line is torn") {
		t.Errorf("the body does not say so:\n%s", body)
	}
}

func TestProjectCutsTexts(t *testing.T) {
	wide := strings.Repeat("漢", 400)
	run := []happening{
		said(1, numbered(30)),
		called(1, "a", "exec_command", `{"cmd":"x"}`),
		ended(1, "a", "exec_command", wide+"\n"+numbered(99), 0),
	}
	view := projected(t, run)
	output := view.Entries[1].Call.Output
	if got := strings.Count(shown(output), "\n") + 1; got != 41 || output.Hidden != 60 {
		t.Errorf("%d lines are shown, %d hidden", got, output.Hidden)
	}
	if first, _, _ := strings.Cut(output.Head, "\n"); first != strings.Repeat("漢", 299)+"…" {
		t.Errorf("the first line is %q", first)
	}
	if got := view.Entries[0].Message; got.Hidden != 22 || !strings.HasSuffix(got.Tail, "line 30") {
		t.Errorf("message: %+v", got)
	}
	whole, err := ProjectWhole(strings.NewReader(recorded(t, run)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shown(whole.Entries[1].Call.Output), wide+"\n"+strings.TrimSuffix(numbered(99), "\n"); got != want {
		t.Errorf("a whole projection holds %q", got)
	}
	if view.LastMessage != numbered(30) {
		t.Error("the last message is cut")
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
		{"many files", "*** Begin Patch\n" + strings.Repeat("*** Delete File: f\n", 5), "f, f, f, and 2 more"},
		{"nothing that is known", `{"x":1}`, ""},
		{"no JSON", `go test`, "go test"},
		{"long", `{"cmd":"` + strings.Repeat("x", 200) + `"}`, strings.Repeat("x", 99) + "…"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Topic(test.input); got != test.want {
				t.Errorf("Topic(%s)\n got %q\nwant %q", test.input, got, test.want)
			}
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
			if diff := cmp.Diff(test.want, Readable(test.input)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// long is a run of so many events, most of them calls with outputs.
func long(events int) []happening {
	run := greeting()[:7]
	for i := 0; len(run) < events; i++ {
		id := fmt.Sprintf("call_%d", i)
		run = append(run, said(i+1, "I go on."),
			called(i+1, id, "exec_command", `{"cmd":"go test ./...","workdir":"."}`), ended(i+1, id, "exec_command", numbered(60), 0))
	}
	return run[:events]
}

func BenchmarkProject(b *testing.B) {
	text := recorded(b, long(10_000))
	for name, project := range map[string]func(io.Reader) (*View, error){"cut": Project, "whole": ProjectWhole} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := project(strings.NewReader(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerifyChain(b *testing.B) {
	text := recorded(b, long(10_000))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := VerifyChain(strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestPriceOf(t *testing.T) {
	usage := Usage{Input: 1_000_000, Cached: 400_000, Output: 100_000}
	for _, c := range []struct {
		price Price
		want  float64
	}{
		{Price{Input: 1, Cached: 0.1, Output: 10}, 0.6 + 0.04 + 1},
		{Price{Input: 1, Output: 10}, 2},
		{Price{}, 0},
	} {
		if got := c.price.Of(usage); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v = %v, want %v", c.price, got, c.want)
		}
	}
}
