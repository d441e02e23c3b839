package body

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

func projected(t testing.TB, run []transcripttest.Happening) *transcript.View {
	t.Helper()
	view, err := transcript.Project(strings.NewReader(transcripttest.Recorded(t, run)), Excerpts)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// alone is a body that has no comments, and composed one that may have all.
func alone(v *transcript.View, o Options) (string, error) {
	posts, err := Compose(v, o)
	return posts.Body, err
}

func composed(v *transcript.View, o Options) (Posts, error) {
	o.Comments = MaxComments
	return Compose(v, o)
}

// bare is a run that was killed: no summary, no plan, nothing verified, nothing
// that confines commands, scripted answers and a call that never ended.
func bare() []transcripttest.Happening {
	return []transcripttest.Happening{
		{Kind: transcript.TypeRunStarted, Data: transcript.RunStarted{RunID: "20260301T090000Z-ffffffff", Version: "v0.1.0", Key: "prompt-12345678", Publish: "local", Scripted: "session.json"}},
		{Kind: transcript.TypeTask, Data: transcript.Task{Source: "prompt", Text: "Fix it."}},
		{Kind: transcript.TypeWorkspace, Data: transcript.Workspace{Base: "main", BaseSHA: strings.Repeat("a", 40), Path: "."}},
		{Kind: transcript.TypePolicy, Data: transcript.Policy{Sandbox: "workspace-write", Network: "loopback", Level: "none"}},
		transcripttest.Called(1, "c1", "exec_command", `{"cmd":"sleep 1000"}`),
	}
}

// hostile is a run in which every text tries to do something.
func hostile() []transcripttest.Happening {
	const evil = "@octocat fixes #1 <img src=x onerror=alert(1)> <!-- [x](javascript:1) ![i](https://evil.example/x.png) GH-2 ::error::boom ##[error] `a` | $x$ \u202eabc\x1b[31m"
	block := "</details>\n```\n~~~~\n# head\n" + evil + "\n::set-output name=x::y\n````\n"
	return []transcripttest.Happening{
		{Kind: transcript.TypeRunStarted, Data: transcript.RunStarted{RunID: evil, Version: evil, Key: evil, Scripted: evil, Link: "javascript:alert(1)"}},
		{Kind: transcript.TypeTask, Data: transcript.Task{Source: "issue", Title: evil, Text: block, URL: "https://evil.example/" + evil}},
		{Kind: transcript.TypeWorkspace, Data: transcript.Workspace{Repository: evil, Base: evil, BaseSHA: evil, Path: evil}},
		{Kind: transcript.TypePolicy, Data: transcript.Policy{Sandbox: evil, Network: evil, Level: evil, Layers: []string{evil}, WorkTree: evil, NoOverlay: evil}},
		{Kind: transcript.TypeSetup, Data: transcript.Setup{Name: evil, Run: evil, ExitCode: 1, Tail: block}},
		{Kind: transcript.TypeModelRequest, Data: transcript.ModelRequest{Turn: 1, Model: evil}},
		transcripttest.Said(1, block+evil),
		{Kind: transcript.TypePlan, Data: transcript.Plan{Steps: []transcript.PlanStep{{Step: evil, Status: "completed"}, {Step: block, Status: evil}}}},
		transcripttest.Called(1, evil, evil, `{"cmd":`+quoted(block)+`,"x":1}`),
		transcripttest.Ended(1, evil, evil, block, 3),
		transcripttest.Called(2, "p", "apply_patch", "*** Begin Patch\n*** Add File: "+evil+"\n+"+evil+"\n*** End Patch"),
		transcripttest.Said(2, evil+"\n\n"+block+"\n- "+evil+"\n1. "+evil+"\n\n> "+evil+"\n\n| a | b |\n|---|---|\n| "+evil+" | c |\n"),
		{Kind: transcript.TypeChange, Data: transcript.Change{Files: []changeset.File{{Path: evil, Status: evil}}}},
		{Kind: transcript.TypeVerify, Data: transcript.Verify{Attempt: 1, Rows: []transcript.VerifyRow{{Name: evil, Run: evil, Before: evil, After: evil, Tail: block, Failing: []transcript.FailingTest{{Name: evil, File: evil, Line: 3, Message: block, New: true}}, FailingMore: 7, Fixed: []string{evil, block}}}}},
		{Kind: transcript.TypeWarning, Data: transcript.Warning{Code: evil, Message: block}},
		{Kind: transcript.TypePublish, Data: transcript.Publish{Step: evil, Branch: evil, HeadSHA: evil, Remote: evil, URL: evil}},
		{Kind: transcript.TypeRunFinished, Data: transcript.RunFinished{Outcome: evil, Reason: evil, Message: block, Summary: ""}},
	}
}

func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
