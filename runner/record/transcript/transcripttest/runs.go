// Package transcripttest provides runs with transcripts for the tests of several packages.
package transcripttest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

type Happening struct {
	Kind transcript.Type
	Data any
}

// Recorded is the log of a run with an event a second, as it lies on disk.
func Recorded(t testing.TB, run []Happening) string {
	t.Helper()
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	log, err := eventlog.Create(path, eventlog.Options{Clock: func() time.Time {
		now = now.Add(time.Second)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range run {
		if _, err := log.Append(h.Kind, h.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Message returns an answer's item with text.
func Message(text string) json.RawMessage {
	raw, err := json.Marshal(map[string]any{
		"type": "message", "role": "assistant",
		"content": []map[string]any{{"type": "output_text", "text": text}},
	})
	if err != nil {
		panic(err)
	}
	return raw
}

// Said returns an answer with text and no call.
func Said(turn int, text string) Happening {
	return Happening{transcript.TypeModelResponse, transcript.ModelResponse{
		Turn: turn, Status: "completed", Output: []json.RawMessage{Message(text)},
		Usage: transcript.Usage{Input: 4200, Cached: 3100, Output: 310, Reasoning: 120},
	}}
}

func Called(turn int, id, tool, input string) Happening {
	return Happening{transcript.TypeToolStarted, transcript.ToolStarted{Turn: turn, CallID: id, Tool: tool, Input: input, Offered: true}}
}

// Ended returns the end of a command's call.
func Ended(turn int, id, tool, output string, exit int) Happening {
	return Happening{transcript.TypeToolFinished, transcript.ToolFinished{
		Turn: turn, CallID: id, Tool: tool, Output: output, Failed: exit != 0, Bytes: int64(len(output)), Seconds: 0.31,
		Detail: map[string]any{"exit_code": exit},
	}}
}

// CalledBy returns a call of a script, or outside of one if caller is 0.
func CalledBy(turn, number, caller int, id, tool, input string) Happening {
	return Happening{transcript.TypeToolStarted, transcript.ToolStarted{Turn: turn, Number: number, Caller: caller, CallID: id, Tool: tool, Input: input, Offered: true}}
}

// EndOfCallBy returns the end of such a call.
func EndOfCallBy(turn, number, caller int, id, tool, output string) Happening {
	return Happening{transcript.TypeToolFinished, transcript.ToolFinished{
		Turn: turn, Number: number, Caller: caller, CallID: id, Tool: tool, Output: output, Bytes: int64(len(output)), Seconds: 0.11,
	}}
}

// Scripts returns a run whose model uses a concurrent script.
func Scripts() []Happening {
	script := "// @exec: {\"yield_time_ms\": 1000}\nconst names = await tools.exec_command({cmd: \"ls\"});\nfor (const name of names.output.split(\"\\n\")) {\n  await tools.read_file({path: name});\n}\n"
	patch := "*** Begin Patch\n*** Update File: greet/greet.go\n@@\n-\treturn \"Hello \" + name\n+\treturn \"Hello, \" + name\n*** End Patch\n"
	run := append(Greeting()[:6], Happening{transcript.TypeModelRequest, transcript.ModelRequest{Turn: 1, Model: "gpt-6-sol"}},
		Said(1, "I read all files by a script."),
		CalledBy(1, 1, 0, "c1", "exec", script),
		CalledBy(1, 1, 1, "c1.1", "exec_command", `{"cmd":"ls"}`), EndOfCallBy(1, 1, 1, "c1.1", "exec_command", "a\nb\n"),
		CalledBy(1, 2, 1, "c1.2", "read_file", `{"path":"a"}`), EndOfCallBy(1, 2, 1, "c1.2", "read_file", "L1: A"),
		EndOfCallBy(1, 1, 0, "c1", "exec", "Script running with cell ID 1\nWall time 1.0 seconds\nOutput:\n"),
		Happening{transcript.TypeModelRequest, transcript.ModelRequest{Turn: 2, Model: "gpt-6-sol"}},
		CalledBy(1, 3, 1, "c1.3", "read_file", `{"path":"b"}`),
		Said(2, "The script goes on."),
		CalledBy(2, 2, 0, "c2", "wait", `{"cell_id":"1"}`),
		EndOfCallBy(1, 3, 1, "c1.3", "read_file", "L1: B"),
		CalledBy(1, 4, 1, "c1.4", "apply_patch", patch), EndOfCallBy(1, 4, 1, "c1.4", "apply_patch", "Success. Updated the following files:\nM greet/greet.go\n"),
		EndOfCallBy(2, 2, 0, "c2", "wait", "Script completed\nWall time 0.2 seconds\nOutput:\n"),
		Happening{transcript.TypeModelRequest, transcript.ModelRequest{Turn: 3, Model: "gpt-6-sol"}},
		Said(3, "The greeting has its comma."),
	)
	return run
}

// sha returns a fake commit or tree id.
func sha(digit string) string { return strings.Repeat(digit, 40) }

// Greeting returns a complete run that fixes a failing test.
func Greeting() []Happening {
	patch := "*** Begin Patch\n*** Update File: greet/greet.go\n@@\n-\treturn \"Hello \" + name\n+\treturn \"Hello, \" + name + \"!\"\n*** End Patch\n"
	return []Happening{
		{transcript.TypeRunStarted, transcript.RunStarted{
			RunID: "20260301T090000Z-0a1b2c3d", Version: "v0.1.0", Key: "issue-7", Job: json.RawMessage(`{"version":1}`), Publish: "github",
			RunPage: "https://github.com/example/greet/actions/runs/123456789",
		}},
		{transcript.TypeTask, transcript.Task{Source: "issue", Title: "Greeting lacks its comma", Text: "`Greet(\"Ada\")` gives \"Hello Ada\".\n\nIt should be \"Hello, Ada!\".", Issue: "example/greet#7", URL: "https://github.com/example/greet/issues/7"}},
		{transcript.TypeWorkspace, transcript.Workspace{Repository: "example/greet", Base: "main", BaseSHA: sha("a"), Branch: "agent-ci/issue-7", Path: "."}},
		{transcript.TypePolicy, transcript.Policy{Sandbox: "workspace-write", Network: "loopback", Level: "namespaces", Layers: []string{"namespaces", "landlock", "seccomp"}, WorkTree: "overlay"}},
		{transcript.TypeSetup, transcript.Setup{Name: "modules", Run: "go mod download", Seconds: 2.41, Log: "outputs/setup-1-modules.txt"}},
		{transcript.TypeVerify, transcript.Verify{Passed: true, Rows: []transcript.VerifyRow{
			{
				Name: "tests", Run: "go test ./...", Must: "pass", Before: "red", Seconds: 1.2,
				Tail: "--- FAIL: TestGreet (0.00s)\n    greet_test.go:9: got \"Hello Ada\"\nFAIL\nFAIL\texample.com/greet\t0.002s", Failing: []transcript.FailingTest{{Name: "example.com/greet.TestGreet", File: "greet_test.go", Line: 9, Message: "got \"Hello Ada\""}},
			},
			{Name: "lint", Run: "make lint | tee lint.txt", Must: "no_worse", Before: "red", Seconds: 12.2},
		}}},
		{transcript.TypeModelRequest, transcript.ModelRequest{Turn: 1, Model: "gpt-5.1-codex"}},
		Said(1, "I look at the test and the function first."),
		{transcript.TypePlan, transcript.Plan{Steps: []transcript.PlanStep{{Step: "Read the failing test", Status: "in_progress"}, {Step: "Fix `Greet`", Status: "pending"}, {Step: "Run the tests", Status: "pending"}}}},
		Called(1, "c1", "exec_command", `{"cmd":"go test ./...","workdir":"."}`),
		Ended(1, "c1", "exec_command", "--- FAIL: TestGreet (0.00s)\n    greet_test.go:9: got \"Hello Ada\", want \"Hello, Ada!\"\nFAIL\n", 1),
		{transcript.TypeModelRetry, transcript.ModelRetry{Turn: 2, Attempt: 1, Error: "HTTP 503", Wait: 1}},
		Called(2, "c2", "apply_patch", patch),
		Ended(2, "c2", "apply_patch", "Success. Updated the following files:\nM greet/greet.go\n", 0),
		Called(3, "c3", "exec_command", `{"cmd":"go test -v ./... \\\n  | tail -n 100"}`),
		{transcript.TypeToolFinished, transcript.ToolFinished{
			Turn: 3, CallID: "c3", Tool: "exec_command", Output: Numbered(100), Truncated: true, File: "outputs/c3.txt", Bytes: 1234567, Seconds: 75,
			Detail: map[string]any{"exit_code": 0},
		}},
		{transcript.TypePlan, transcript.Plan{Steps: []transcript.PlanStep{{Step: "Read the failing test", Status: "completed"}, {Step: "Fix `Greet`", Status: "completed"}, {Step: "Run the tests", Status: "in_progress"}}}},
		Said(4, "## Summary\n\nThe greeting has its comma and exclamation mark now.\n\n- `greet.go`: builds \"Hello, NAME!\"\n- nothing else was touched\n\n```go\nreturn \"Hello, \" + name + \"!\"\n```\n\nThe linter was **red before** and still is."),
		{transcript.TypeChange, transcript.Change{TreeSHA: sha("b"), Insertions: 1204, Deletions: 1, Patch: "changes.patch", Files: []changeset.File{
			{Path: "greet/greet.go", Status: "M", Insertions: 1, Deletions: 1},
			{Path: "greet/testdata/a|b.txt", Status: "A", Insertions: 1203},
			{Path: "logo.png", Status: "A", Binary: true},
		}}},
		{transcript.TypeVerify, transcript.Verify{Attempt: 1, Passed: true, Rows: []transcript.VerifyRow{
			{Name: "tests", Run: "go test ./...", Must: "pass", Before: "red", After: "green", Passed: true, Seconds: 1.3, Fixed: []string{"example.com/greet.TestGreet"}},
			{Name: "lint", Run: "make lint | tee lint.txt", Must: "no_worse", Before: "red", After: "red", Passed: true, Seconds: 12.4},
		}}},
		{transcript.TypeWarning, transcript.Warning{Code: "comments_left_out", Message: "2 comments by people without a role in the repository were not read."}},
		{transcript.TypePublish, transcript.Publish{Step: "push", Branch: "agent-ci/issue-7", HeadSHA: sha("c"), Remote: "https://github.com/example/greet"}},
	}
}

func Finished(seconds float64) Happening {
	return Happening{transcript.TypeRunFinished, transcript.RunFinished{
		Outcome: "changed", Reason: "pull_request", Message: "Pull request #8 was created.", Turns: 4, Calls: 3, Seconds: seconds,
	}}
}

func Numbered(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// Long returns a run with that number of events, most of them calls with outputs.
func Long(events int) []Happening {
	run := Greeting()[:7]
	for i := 0; len(run) < events; i++ {
		id := fmt.Sprintf("call_%d", i)
		run = append(run, Said(i+1, "I go on."),
			Called(i+1, id, "exec_command", `{"cmd":"go test ./...","workdir":"."}`), Ended(i+1, id, "exec_command", Numbered(60), 0))
	}
	return run[:events]
}

// Rich returns a run with content for every section.
func Rich() []Happening {
	digest := strings.Repeat("0123456789abcdef", 4)
	var run []Happening
	for _, h := range Greeting() {
		switch d := h.Data.(type) {
		case transcript.RunStarted:
			d.Job = json.RawMessage(`{"tools":{"dynamic":[{"name":"lookup","run":["./a|b","c"]},{"name":"long","run":"one\ntwo\n"},{"name":"short","run":"echo <b>"}]}}`)
			d.ChangedSettings = json.RawMessage(`{"limits":{"turns":7},"policy":{"protect":[]}}`)
			h.Data = d
		case transcript.Verify:
			if d.Attempt > 0 {
				d.Passed = false
				d.Rows[0].Proof = []transcript.Proof{{File: "a_test.go", Class: transcript.Proven, Tests: []string{"TestA"}}, {File: "b|_test.go", Class: transcript.NotRed, Shared: true}}
				d.Rows[0].OldTests = []transcript.OldTest{{Name: "TestOld", File: "c_test.go", Line: 3, Deleted: true}, {File: "check.sh", Script: true, Fails: true}}
				d.Rows[1].Passed, d.Rows[1].Failing, d.Rows[1].FailingMore, d.Rows[1].Tail = false, []transcript.FailingTest{{Name: "lint.B", File: "b.go", Line: 4, Message: "got <1>", New: true}}, 7, "b.go:4: got <1>"
				h.Data = d
			}
		}
		run = append(run, h)
	}
	happened := func(kind transcript.Type, data any) { run = append(run, Happening{Kind: kind, Data: data}) }
	happened(transcript.TypeSetup, transcript.Setup{Name: "tools", Run: "make tools", ExitCode: 3, Tail: "no rule\nto make tools"})
	happened(transcript.TypeHooks, transcript.Hooks{Hooks: []transcript.ActiveHook{{Name: "operator/audit", Event: "PreToolUse", SHA256: digest, Trusted: true}, {Name: "guard", Event: "PreToolUse", SHA256: digest}}})
	for _, decision := range []string{transcript.HookPass, transcript.HookDeny, transcript.HookFailed} {
		happened(transcript.TypeHook, transcript.HookAnswer{Name: "guard", Event: "PreToolUse", Decision: decision})
	}
	happened(transcript.TypeSecretUsed, transcript.SecretUsed{Sandbox: "setup", Name: "NPM_TOKEN", Target: "npm.example.com:443", Uses: 1204, Ended: true})
	happened(transcript.TypeNetwork, transcript.HostRequest{Sandbox: "agent", Target: "npm.example.com:443", Rule: transcript.SecretRule + "NPM_TOKEN", Reason: "It is for GET alone.", Request: "PUT /a|b`<b>"})
	happened(transcript.TypeMCPServer, transcript.MCPServer{
		Name: "docs", State: transcript.MCPReady, Command: "docs-server", Revision: "2025-11-25", Server: "Docs|<b>", Version: "1.0", File: "extensions/docs.json",
		Tools: []transcript.MCPTool{{Name: "mcp__docs__search", ServerName: "search", SHA256: "aa11"}, {Name: "mcp__docs__fetch", ServerName: "fetch|x", SHA256: "bb22"}},
	})
	happened(transcript.TypeMCPServer, transcript.MCPServer{Name: "docs", State: transcript.MCPChanged, Reason: "others"})
	happened(transcript.TypeMCPServer, transcript.MCPServer{Name: "late", State: transcript.MCPFailed, Host: "late.example.com", Reason: "It did not come."})
	happened(transcript.TypeSkills, transcript.Skills{File: "skills.json", Skills: []transcript.Skill{{Name: "re|lease", Path: ".agents/skills/`x`/SKILL.md", SHA256: digest}, {Name: "unused", Path: "u/SKILL.md", SHA256: digest}}})
	happened(transcript.TypeToolFinished, transcript.ToolFinished{Tool: "load_skill", Detail: map[string]any{transcript.SkillDetail: "re|lease"}})
	happened(transcript.TypeToolFinished, transcript.ToolFinished{Turn: 9, CallID: "nine", Tool: "lookup", Failed: true, Output: "no"})
	happened(transcript.TypeLessons, transcript.Lessons{File: "LESSONS.md", In: transcript.LessonsInChange, Lessons: []transcript.Lesson{{ID: "greet", Claim: "Greetings need a comma.", Evidence: []string{"greet.go:3", "run r"}}}})
	happened(transcript.TypeInspection, transcript.Inspection{
		SilencedSigns: []transcript.SilencedSign{
			{Pattern: "go-skip", File: "a|b/`x`_test.go", Line: 3, Text: "t.Skip(\"<b>|`x`\")", Reason: "a test is skipped"},
			{Pattern: "coverage-lowered", File: ".coveragerc", Line: 2, Removed: true, Text: "fail_under = 90", Reason: "less coverage is demanded"},
			{Pattern: "fewer-tests", Check: "unit|<i>", Reason: "12 tests ran on the base, 3 with the change"},
		},
		MoreSilencedSigns: 2,
		WorkflowStarts: []transcript.WorkflowStart{
			{Workflow: ".github/workflows/a|`b`.yml", Job: "build<b>", Events: []string{"push"}, Secrets: []string{"NPM_TOKEN"}, Writes: []string{"contents: write"}, Files: []transcript.StartedFile{{Path: "Make|file", Via: "run → make <i>"}}},
			{Workflow: ".github/workflows/odd.yml", Unknown: "it is no YAML"},
		},
		Claims: []string{"docs/a|`b`<i>.md"},
	})
	happened(transcript.TypeModelFallback, transcript.ModelFallback{Turn: 3, From: "gpt-5.1-codex", To: "gpt-5-mini", Reason: "quota"})
	return run
}
