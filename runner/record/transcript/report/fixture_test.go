package report

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

// The fixtures are files because the tests in a browser show them too.
func TestFixtures(t *testing.T) {
	for name, run := range map[string][]happening{"ordinary.jsonl": ordinary(), "hostile.jsonl": hostile(), "red.jsonl": red(), "setup.jsonl": failedSetup(), "scripts.jsonl": transcripttest.Scripts()} {
		golden.Compare(t, filepath.Join("testdata", name), recorded(t, run))
	}
}

type happening = transcripttest.Happening

func recorded(t testing.TB, run []happening) string {
	t.Helper()
	return transcripttest.RecordedEvery(t, 1700*time.Millisecond, run)
}

func quoted(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func said(text string) json.RawMessage {
	return json.RawMessage(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + quoted(text) + `}]}`)
}

func asked(turn int, items ...json.RawMessage) happening {
	return happening{Kind: transcript.TypeModelRequest, Data: transcript.ModelRequest{Turn: turn, Model: "gpt-5.1-codex", Input: items}}
}

func answered(turn int, items ...json.RawMessage) happening {
	return happening{Kind: transcript.TypeModelResponse, Data: transcript.ModelResponse{
		Turn: turn, Status: "completed", Output: items, Seconds: 3.4 + float64(turn),
		Usage: transcript.Usage{Input: 4200 + 900*int64(turn), Cached: 3100, Output: 310, Reasoning: 120},
	}}
}

func called(turn, number int, tool, input string) happening {
	return happening{Kind: transcript.TypeToolStarted, Data: transcript.ToolStarted{
		Turn: turn, Number: number, CallID: fmt.Sprintf("call_%d", number), Tool: tool, Input: input, Offered: true,
	}}
}

func ended(turn, number int, tool, output string, detail map[string]any) happening {
	code, _ := detail["exit_code"].(int)
	return happening{Kind: transcript.TypeToolFinished, Data: transcript.ToolFinished{
		Turn: turn, Number: number, CallID: fmt.Sprintf("call_%d", number), Tool: tool,
		Failed: code != 0 || detail["denied"] != nil, Output: output, Bytes: int64(len(output)), Seconds: 0.4 * float64(number), Detail: detail,
	}}
}

const ordinaryPatch = `*** Begin Patch
*** Update File: greet/greet.go
@@ func Greet(name string) string {
 	name = strings.TrimSpace(name)
-	return "Hello " + name
+	return "Hello, " + name + "!"
 }
@@
-// Bye says good bye to name.
-func Bye(name string) string { return "Bye " + name }
+// Farewell takes leave of name, politely.
+func Farewell(name string) string { return "Good bye, " + name + "." }
*** Add File: greet/testdata/names.txt
+Ada
+Zoë
+
+名前
*** Update File: docs/usage.md
*** Move to: docs/greeting.md
@@
 # Usage
-Run greet NAME.
+Run ` + "`greet NAME`" + `; it answers with a greeting.
*** Delete File: greet/old.go
*** End Patch
`

var (
	reds   = []transcript.VerifyRow{{Name: "tests", Run: "go test ./...", Must: "pass", Before: "red", Seconds: 1.2, Log: "outputs/verify-0-1-tests.log"}, {Name: "make lint", Run: "make lint", Must: "no_worse", Before: "red", Seconds: 12.2}}
	greens = []transcript.VerifyRow{{Name: "tests", Run: "go test ./...", Must: "pass", Before: "red", After: "green", Passed: true, Seconds: 1.3}, {Name: "make lint", Run: "make lint", Must: "no_worse", Before: "red", After: "red", Passed: true, Seconds: 12.4}}
)

// ordinary is a run with something of everything.
func ordinary() []happening {
	steps := func(states ...string) transcript.Plan {
		texts := []string{"Read the failing test", "Mend the greeting", "Run the tests and the linter"}
		var p transcript.Plan
		for i, state := range states {
			p.Steps = append(p.Steps, transcript.PlanStep{Step: texts[i], Status: state})
		}
		return p
	}
	settings := json.RawMessage(`{"instructions":"You work in a git checkout.\nGo on until the task is done.","tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"},{"type":"web_search"}]}`)
	first := asked(1, json.RawMessage(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Greet people politely.\nSee the issue."}]}`))
	request := first.Data.(transcript.ModelRequest)
	request.Settings = settings
	first.Data = request
	return []happening{
		{Kind: transcript.TypeRunStarted, Data: transcript.RunStarted{RunID: "20260301T090000Z-0a1b2c3d", Version: "v0.3.0", Key: "issue-7", Job: json.RawMessage(`{"version":1,"name":"issue-7","limits":{"turns":7,"time":"45m0s"}}`), Set: json.RawMessage(`{"limits":{"turns":7},"name":"issue-7","policy":{"protect":[]},"verify":[{"name":"tests","run":"go test ./..."}]}`), Publish: "github", Link: "https://github.com/octo-org/widgets/actions/runs/42"}},
		{Kind: transcript.TypeTask, Data: transcript.Task{Source: "issue", Title: "Greet people politely", Issue: "octo-org/widgets#7", URL: "https://github.com/octo-org/widgets/issues/7", Text: "`greet Ada` prints **Hello Ada**. It should have a comma and an exclamation mark:\n\n```\nHello, Ada!\n```\n\n- names keep their case\n- blanks around a name do not count"}},
		{Kind: transcript.TypeWorkspace, Data: transcript.Workspace{Repository: "octo-org/widgets", Base: "main", BaseSHA: strings.Repeat("a1b2", 10), Branch: "agent-ci/issue-7", Path: "."}},
		{Kind: transcript.TypePolicy, Data: transcript.Policy{Sandbox: "workspace-write", Network: "loopback", Level: "namespaces", Layers: []string{"namespaces", "landlock", "seccomp"}, WorkTree: "overlay"}},
		{Kind: transcript.TypeSetup, Data: transcript.Setup{Name: "modules", Run: "go mod download", Seconds: 2.41, Log: "outputs/setup-1-modules.txt"}},
		{Kind: transcript.TypeVerify, Data: transcript.Verify{Passed: true, Rows: reds}},
		first,
		{Kind: transcript.TypeModelRetry, Data: transcript.ModelRetry{Turn: 1, Attempt: 1, Error: "HTTP 503: the server is overloaded", Wait: 2}},
		answered(1, json.RawMessage(`{"type":"reasoning","encrypted_content":"gAAAA","summary":[{"type":"summary_text","text":"I should look at the test before I change the function."}]}`),
			said("I look at the test and the function first.")),
		called(1, 1, "update_plan", `{"plan":[{"step":"Read the failing test","status":"in_progress"}]}`),
		{Kind: transcript.TypePlan, Data: steps("in_progress", "pending", "pending")},
		ended(1, 1, "update_plan", "Plan updated", nil),
		called(1, 2, "exec_command", `{"cmd":"go test ./...","workdir":"."}`),
		called(1, 3, "read_file", `{"file_path":"greet/greet.go"}`),
		ended(1, 3, "read_file", "L1: package greet\nL2: \nL3: import \"strings\"\n", nil),
		ended(1, 2, "exec_command", "--- FAIL: TestGreet (0.00s)\n    greet_test.go:9: got \"Hello Ada\", want \"Hello, Ada!\"\nFAIL\n", map[string]any{"exit_code": 1}),
		asked(2),
		answered(2, json.RawMessage(`{"type":"web_search_call","status":"completed","action":{"type":"search","query":"polite greeting"}}`), said("The function lacks the comma. I mend it, and clean up what is **not used**.")),
		called(2, 4, "apply_patch", ordinaryPatch),
		ended(2, 4, "apply_patch", "Success. Updated the following files:\nM greet/greet.go\nA greet/testdata/names.txt\nM docs/greeting.md\nD greet/old.go\n", nil),
		called(2, 5, "exec_command", `{"cmd":"git push --force origin main"}`),
		ended(2, 5, "exec_command", "The rule no_push forbids this command: pushing is done by agent-ci after the run.", map[string]any{"denied": "no_push"}),
		asked(3),
		answered(3),
		called(3, 6, "exec_command", `{"cmd":"go test -v ./... \\\n  | tail -n 200"}`),
		{Kind: transcript.TypeToolFinished, Data: transcript.ToolFinished{
			Turn: 3, Number: 6, CallID: "call_6", Tool: "exec_command", Output: numbered(200), Truncated: true, File: "outputs/call-6.txt", Bytes: 1_234_567, Seconds: 75,
			Detail: map[string]any{"exit_code": 0},
		}},
		{Kind: transcript.TypePlan, Data: steps("completed", "completed", "completed")},
		{Kind: "compaction", Data: map[string]any{"before": 120_000, "after": 9_000}},
		asked(4),
		answered(4, said("## What was done\n\nThe greeting has its comma and exclamation mark now.\n\n- `greet.go`: builds \"Hello, NAME!\"\n- nothing else was touched\n\n```go\nreturn \"Hello, \" + name + \"!\"\n```\n\nThe linter was **red before** and still is.")),
		{Kind: transcript.TypeChange, Data: transcript.Change{Insertions: 1204, Deletions: 9, Patch: "changes.patch", Diff: ordinaryDiff, DiffCut: true, Files: []changeset.File{
			{Path: "greet/greet.go", Status: "M", Insertions: 3, Deletions: 3},
			{Path: "greet/testdata/names.txt", Status: "A", Insertions: 4},
			{Path: "docs/greeting.md", Status: "A", Insertions: 2},
			{Path: "greet/old.go", Status: "D", Deletions: 6},
			{Path: "logo.png", Status: "A", Binary: true},
		}}},
		{Kind: transcript.TypeVerify, Data: transcript.Verify{Attempt: 1, Passed: true, Rows: greens}},
		{Kind: transcript.TypeWarning, Data: transcript.Warning{Code: "comments_left_out", Message: "2 comments by people without a role in the repository were not read."}},
		{Kind: transcript.TypePublish, Data: transcript.Publish{Step: "push", Branch: "agent-ci/issue-7", HeadSHA: strings.Repeat("c3d4", 10), Remote: "https://github.com/octo-org/widgets"}},
		{Kind: transcript.TypePublish, Data: transcript.Publish{Step: "pull_request", Number: 8, URL: "https://github.com/octo-org/widgets/pull/8", Operation: "created"}},
		{Kind: transcript.TypeRunFinished, Data: transcript.RunFinished{
			Outcome: "changed", Reason: "pull_request", Message: "Pull request #8 was created; review it and merge.", Turns: 4, Calls: 6, Seconds: 151,
			Summary: "## What was done\n\nThe greeting has its comma and exclamation mark now.\n\n- `greet.go`: builds \"Hello, NAME!\"\n- nothing else was touched\n\n```go\nreturn \"Hello, \" + name + \"!\"\n```\n\nThe linter was **red before** and still is.",
		}},
	}
}

// ordinaryDiff is a part of the change as git writes it.
const ordinaryDiff = `diff --git a/docs/greeting.md b/docs/greeting.md
new file mode 100644
index 0000000000000000000000000000000000000000..1111111111111111111111111111111111111111
--- /dev/null
+++ b/docs/greeting.md
@@ -0,0 +1,2 @@
+# Usage
+Run ` + "`greet NAME`" + `; it answers with a greeting.
\ No newline at end of file
diff --git a/greet/greet.go b/greet/greet.go
index 2222222222222222222222222222222222222222..3333333333333333333333333333333333333333 100644
--- a/greet/greet.go
+++ b/greet/greet.go
@@ -4,9 +4,9 @@ import "strings"
 // Greet greets name.
 func Greet(name string) string {
 	name = strings.TrimSpace(name)
-	return "Hello " + name
+	return "Hello, " + name + "!"
 }
 
-// Bye says good bye to name.
-func Bye(name string) string { return "Bye " + name }
+// Farewell takes leave of name, politely.
+func Farewell(name string) string { return "Good bye, " + name + "." }
 
diff --git a/greet/old.go b/greet/old.go
deleted file mode 100644
index 4444444444444444444444444444444444444444..0000000000000000000000000000000000000000
--- a/greet/old.go
+++ /dev/null
@@ -1,3 +0,0 @@
-package greet
-
--- a comment that looks like a head
diff --git a/logo.png b/logo.png
new file mode 100644
index 0000000000000000000000000000000000000000..5555555555555555555555555555555555555555
GIT binary patch
literal 3
KcmZQzWMT#Y01f~L
`

// red is a run whose change does not pass its checks.
func red() []happening {
	run := ordinary()
	for i, h := range run {
		switch h.Kind {
		case transcript.TypeVerify:
			table := h.Data.(transcript.Verify)
			if table.Attempt == 0 {
				continue
			}
			tail := "--- FAIL: TestGreet (0.00s)\n    greet_test.go:9: got \"Hello Ada\", want \"Hello, Ada!\"\nFAIL\nFAIL\texample.com/widgets/greet\t0.002s\nFAIL"
			run[i].Data = transcript.Verify{Attempt: 1, Rows: []transcript.VerifyRow{
				{
					Name: "tests", Run: "go test ./...", Must: "pass", Before: "green", After: "red", Seconds: 1.3, Tail: tail,
					Failing: []transcript.FailingTest{{Name: "greet.TestGreet", File: "greet_test.go", Line: 9, Message: "got \"Hello Ada\"", New: true}},
				},
				{Name: "make lint", Run: "make lint", Must: "no_worse", Before: "red", After: "timeout", Seconds: 600, Tail: "lint: no answer"},
				{Name: "docs", Run: "make docs", Must: "pass", Before: "green", After: "green", Passed: true, Seconds: 3, From: "20260228T090000Z-00000000"},
			}}
		case transcript.TypeRunFinished:
			finished := h.Data.(transcript.RunFinished)
			finished.Outcome, finished.Reason, finished.ExitCode = "verify_failed", "red", 5
			finished.Message = "The change does not pass: tests is red (1 new failure, was green), make lint is timeout (was red). Pull request #8 was created."
			run[i].Data = finished
		}
	}
	return run
}

// failedSetup is a run that its setup ended before the agent came to work.
func failedSetup() []happening {
	return append(ordinary()[:4:4],
		happening{Kind: transcript.TypeSetup, Data: transcript.Setup{Name: "modules", Run: "go mod download", ExitCode: 1, Seconds: 2.41, Tail: "go: example.com/gone@v1.0.0: reading: 404 Not Found"}},
		happening{Kind: transcript.TypeRunFinished, Data: transcript.RunFinished{
			Outcome: "invalid_input", Reason: "setup_failed", ExitCode: 2, Message: "The setup command \"modules\" ended as red.", Seconds: 3,
		}})
}

// evil tries what a text can try on a page.
const evil = `"'><script>alert(1)</script><img src=x onerror=alert(1)><svg/onload=alert(1)> <!-- --> </pre></details></li></ol> javascript:alert(1) {{.}} &lt;b&gt; &#60;b> ]]> ` + "\u202eabc\u2066 \u200b\ufeff\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\a\x00\b ` ** <style>*{display:none}</style> <base href=//evil.example> <meta http-equiv=refresh content=0>"

// hostile is a run in which every text tries to do something.
func hostile() []happening {
	block := "</script></style></title></textarea>\n```\n" + evil + "\n````\n# " + evil + "\n- " + evil + "\n**" + evil + "**\n`" + evil + "`\n"
	patch := "*** Begin Patch\n*** Add File: " + strings.ReplaceAll(evil, "\x00", "") + "\n+" + evil + "\n*** Update File: a.html\n@@ " + evil + "\n-<b>old " + evil + "\n+<b>new " + evil + "\n*** End Patch"
	return []happening{
		{Kind: transcript.TypeRunStarted, Data: transcript.RunStarted{RunID: evil, Version: evil, Key: evil, Publish: evil, Set: json.RawMessage(`{` + quoted(evil) + `:[` + quoted(block) + `,{` + quoted(evil) + `:1}]}`), Job: json.RawMessage(`{` + quoted(evil) + `:` + quoted(block) + `}`), Scripted: evil, Link: "javascript:alert(1)"}},
		{Kind: transcript.TypeTask, Data: transcript.Task{Source: evil, Title: evil, Text: block, Request: evil, Actor: evil, Issue: evil, URL: "javascript:alert(1)//https://a.example/b/c/pull/1"}},
		{Kind: transcript.TypeWorkspace, Data: transcript.Workspace{Repository: evil, Base: evil, BaseSHA: evil, Branch: evil, Path: evil}},
		{Kind: transcript.TypePolicy, Data: transcript.Policy{Sandbox: evil, Network: evil, Level: evil, Layers: []string{evil}, WorkTree: evil, NoOverlay: evil}},
		{Kind: transcript.TypeSetup, Data: transcript.Setup{Name: evil, Run: evil, ExitCode: 1, Tail: block}},
		{Kind: transcript.TypeModelRequest, Data: transcript.ModelRequest{Turn: 1, Model: evil, Settings: json.RawMessage(`{"instructions":` + quoted(evil) + `,"tools":[{"type":` + quoted(evil) + `}]}`), Input: []json.RawMessage{json.RawMessage(`{"role":` + quoted(evil) + `,"content":` + quoted(block) + `}`)}}},
		answered(1, said(block), json.RawMessage(`{"type":`+quoted(evil)+`,"x":`+quoted(block)+`}`)),
		{Kind: transcript.TypePlan, Data: transcript.Plan{Explanation: evil, Steps: []transcript.PlanStep{{Step: evil, Status: evil}, {Step: block, Status: "completed"}}}},
		called(1, 1, evil, `{"cmd":`+quoted(block)+`,`+quoted(evil)+`:1}`),
		ended(1, 1, evil, block, map[string]any{"exit_code": 3}),
		called(1, 2, "apply_patch", patch),
		ended(1, 2, "apply_patch", evil, map[string]any{"denied": evil}),
		{Kind: transcript.TypeChange, Data: transcript.Change{Patch: evil, DiffCut: true, Diff: "diff --git a/x b/x\n--- a/a\n+++ b/a\n@@ -1 +1 @@ " + evil + "\n-" + evil + "\n+" + evil + "\n" + block, Files: []changeset.File{{Path: evil, Status: evil}, {Path: "a", Status: "M"}}}},
		{Kind: transcript.TypeVerify, Data: transcript.Verify{Attempt: 1, Rows: []transcript.VerifyRow{{Name: evil, Run: evil, Must: evil, Before: evil, After: evil, Log: evil, Tail: block, Failing: []transcript.FailingTest{{Name: evil, File: evil, Line: 7, Message: block, New: true}}, Fixed: []string{evil}}}}},
		{Kind: transcript.TypeWarning, Data: transcript.Warning{Code: evil, Message: block}},
		{Kind: transcript.TypePublish, Data: transcript.Publish{Step: evil, Branch: evil, HeadSHA: evil, Remote: evil, URL: "data:text/html," + evil, Operation: evil}},
		{Kind: transcript.Type("new<kind>"), Data: map[string]any{evil: block}},
		{Kind: transcript.TypeRunFinished, Data: transcript.RunFinished{Outcome: evil, Reason: evil, Message: block, Summary: block}},
	}
}

func numbered(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "=== RUN   TestGreet/case_%d\n", i+1)
	}
	return b.String()
}
