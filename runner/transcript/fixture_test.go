package transcript

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// compareGolden fails unless testdata/name holds got.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); go test ./runner/transcript -update rewrites it:\n%s", path, diff)
	}
}

// happening is one event that a test records.
type happening struct {
	kind Type
	data any
}

// ticking is a clock that moves on by a second with each event.
func ticking() func() time.Time {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

// recorded is the log of a run, as it lies on disk.
func recorded(t testing.TB, run []happening) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	log, err := Create(path, Options{Clock: ticking()})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range run {
		if _, err := log.Append(h.kind, h.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return contents(t, path)
}

func contents(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func projected(t testing.TB, run []happening) *View {
	t.Helper()
	view, err := Project(strings.NewReader(recorded(t, run)))
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func message(text string) json.RawMessage {
	raw, err := json.Marshal(map[string]any{
		"type": "message", "role": "assistant",
		"content": []map[string]any{{"type": "output_text", "text": text}},
	})
	if err != nil {
		panic(err)
	}
	return raw
}

func said(turn int, text string) happening {
	return happening{TypeModelResponse, ModelResponse{
		Turn: turn, Status: "completed", Output: []json.RawMessage{message(text)},
		Usage: Usage{Input: 4200, Cached: 3100, Output: 310, Reasoning: 120},
	}}
}

func called(turn int, id, tool, input string) happening {
	return happening{TypeToolStarted, ToolStarted{Turn: turn, CallID: id, Tool: tool, Input: input, Offered: true}}
}

func ended(turn int, id, tool, output string, exit int) happening {
	return happening{TypeToolFinished, ToolFinished{
		Turn: turn, CallID: id, Tool: tool, Output: output, Failed: exit != 0, Bytes: int64(len(output)), Seconds: 0.31,
		Detail: map[string]any{"exit_code": exit},
	}}
}

func digits(c string) string { return strings.Repeat(c, 40) }

// greeting is a whole run that mends a failing test.
func greeting() []happening {
	patch := "*** Begin Patch\n*** Update File: greet/greet.go\n@@\n-\treturn \"Hello \" + name\n+\treturn \"Hello, \" + name + \"!\"\n*** End Patch\n"
	return []happening{
		{TypeRunStarted, RunStarted{
			RunID: "20260301T090000Z-0a1b2c3d", Version: "v0.1.0", Key: "issue-7", Job: json.RawMessage(`{"version":1}`), Publish: "github",
			Link: "https://github.com/example/greet/actions/runs/123456789",
		}},
		{TypeTask, Task{Source: "issue", Title: "Greeting lacks its comma", Text: "`Greet(\"Ada\")` gives \"Hello Ada\".\n\nIt should be \"Hello, Ada!\".", Issue: "example/greet#7", URL: "https://github.com/example/greet/issues/7"}},
		{TypeWorkspace, Workspace{Repository: "example/greet", Base: "main", BaseSHA: digits("a"), Branch: "agent-ci/issue-7", Path: "."}},
		{TypePolicy, Policy{Approval: "never", Sandbox: "workspace-write", Network: "loopback", Level: "namespaces", Layers: []string{"namespaces", "landlock", "seccomp"}}},
		{TypeSetup, Setup{Name: "modules", Run: "go mod download", Seconds: 2.41, Log: "outputs/setup-1-modules.txt"}},
		{TypeVerify, Verify{Passed: true, Rows: []VerifyRow{
			{Name: "tests", Run: "go test ./...", Must: "pass", Before: "red", Seconds: 1.2},
			{Name: "lint", Run: "make lint | tee lint.txt", Must: "no_worse", Before: "red", Seconds: 12.2},
		}}},
		{TypeModelRequest, ModelRequest{Turn: 1, Model: "gpt-5.1-codex"}},
		said(1, "I look at the test and the function first."),
		{TypePlan, Plan{Steps: []PlanStep{{"Read the failing test", "in_progress"}, {"Mend `Greet`", "pending"}, {"Run the tests", "pending"}}}},
		called(1, "c1", "exec_command", `{"cmd":"go test ./...","workdir":"."}`),
		ended(1, "c1", "exec_command", "--- FAIL: TestGreet (0.00s)\n    greet_test.go:9: got \"Hello Ada\", want \"Hello, Ada!\"\nFAIL\n", 1),
		{TypeModelRetry, ModelRetry{Turn: 2, Attempt: 1, Error: "HTTP 503", Wait: 1}},
		called(2, "c2", "apply_patch", patch),
		ended(2, "c2", "apply_patch", "Success. Updated the following files:\nM greet/greet.go\n", 0),
		called(3, "c3", "exec_command", `{"cmd":"go test -v ./... \\\n  | tail -n 100"}`),
		{TypeToolFinished, ToolFinished{
			Turn: 3, CallID: "c3", Tool: "exec_command", Output: numbered(100), Truncated: true, File: "outputs/c3.txt", Bytes: 1234567, Seconds: 75,
			Detail: map[string]any{"exit_code": 0},
		}},
		{TypePlan, Plan{Steps: []PlanStep{{"Read the failing test", "completed"}, {"Mend `Greet`", "completed"}, {"Run the tests", "in_progress"}}}},
		said(4, "## Summary\n\nThe greeting has its comma and exclamation mark now.\n\n- `greet.go`: builds \"Hello, NAME!\"\n- nothing else was touched\n\n```go\nreturn \"Hello, \" + name + \"!\"\n```\n\nThe linter was **red before** and still is."),
		{TypeChange, Change{TreeSHA: digits("b"), Insertions: 1204, Deletions: 1, Patch: "changes.patch", Files: []ChangeFile{
			{Path: "greet/greet.go", Status: "M", Insertions: 1, Deletions: 1},
			{Path: "greet/testdata/a|b.txt", Status: "A", Insertions: 1203},
			{Path: "logo.png", Status: "A", Binary: true},
		}}},
		{TypeVerify, Verify{Attempt: 1, Passed: true, Rows: []VerifyRow{
			{Name: "tests", Run: "go test ./...", Must: "pass", Before: "red", After: "green", Passed: true, Seconds: 1.3},
			{Name: "lint", Run: "make lint | tee lint.txt", Must: "no_worse", Before: "red", After: "red", Passed: true, Seconds: 12.4},
		}}},
		{TypeWarning, Warning{Code: "comments_left_out", Message: "2 comments by people without a role in the repository were not read."}},
		{TypePublish, Publish{Step: "push", Branch: "agent-ci/issue-7", HeadSHA: digits("c"), Remote: "https://github.com/example/greet"}},
	}
}

func finished(seconds float64) happening {
	return happening{TypeRunFinished, RunFinished{
		Outcome: "changed", Reason: "pull_request", Message: "Pull request #8 was created.", Turns: 4, Calls: 3, Seconds: seconds,
	}}
}

func numbered(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// bare is a run that was killed: no summary, no plan, nothing verified, nothing
// that confines commands, scripted answers and a call that never ended.
func bare() []happening {
	return []happening{
		{TypeRunStarted, RunStarted{RunID: "20260301T090000Z-ffffffff", Version: "v0.1.0", Key: "prompt-12345678", Publish: "local", Scripted: "session.json"}},
		{TypeTask, Task{Source: "prompt", Text: "Fix it."}},
		{TypeWorkspace, Workspace{Base: "main", BaseSHA: digits("a"), Path: "."}},
		{TypePolicy, Policy{Approval: "never", Sandbox: "workspace-write", Network: "loopback", Level: "none"}},
		called(1, "c1", "exec_command", `{"cmd":"sleep 1000"}`),
	}
}

// hostile is a run in which every text tries to do something.
func hostile() []happening {
	const evil = "@octocat fixes #1 <img src=x onerror=alert(1)> <!-- [x](javascript:1) ![i](https://evil.example/x.png) GH-2 ::error::boom ##[error] `a` | $x$ \u202eabc\x1b[31m"
	block := "</details>\n```\n~~~~\n# head\n" + evil + "\n::set-output name=x::y\n````\n"
	return []happening{
		{TypeRunStarted, RunStarted{RunID: evil, Version: evil, Key: evil, Scripted: evil, Link: "javascript:alert(1)"}},
		{TypeTask, Task{Source: "issue", Title: evil, Text: block, URL: "https://evil.example/" + evil}},
		{TypeWorkspace, Workspace{Repository: evil, Base: evil, BaseSHA: evil, Path: evil}},
		{TypePolicy, Policy{Approval: evil, Sandbox: evil, Network: evil, Level: evil, Layers: []string{evil}}},
		{TypeSetup, Setup{Name: evil, Run: evil}},
		{TypeModelRequest, ModelRequest{Turn: 1, Model: evil}},
		said(1, block+evil),
		{TypePlan, Plan{Steps: []PlanStep{{evil, "completed"}, {block, evil}}}},
		called(1, evil, evil, `{"cmd":`+quoted(block)+`,"x":1}`),
		ended(1, evil, evil, block, 3),
		called(2, "p", "apply_patch", "*** Begin Patch\n*** Add File: "+evil+"\n+"+evil+"\n*** End Patch"),
		said(2, evil+"\n\n"+block+"\n- "+evil+"\n1. "+evil+"\n\n> "+evil+"\n\n| a | b |\n|---|---|\n| "+evil+" | c |\n"),
		{TypeChange, Change{Files: []ChangeFile{{Path: evil, Status: evil}}}},
		{TypeVerify, Verify{Attempt: 1, Rows: []VerifyRow{{Name: evil, Run: evil, Before: evil, After: evil}}}},
		{TypeWarning, Warning{Code: evil, Message: block}},
		{TypePublish, Publish{Step: evil, Branch: evil, HeadSHA: evil, Remote: evil, URL: evil}},
		{TypeRunFinished, RunFinished{Outcome: evil, Reason: evil, Message: block, Summary: ""}},
	}
}

func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
