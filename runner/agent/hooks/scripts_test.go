package hooks

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// A call of a script has a number that a call of the model's has, too. Neither gets the answers,
// the texts or the output of the other.
func TestSeparatesScriptCallsFromModelCalls(t *testing.T) {
	h, events := asked(t, t.TempDir(), map[string]job.Hook{"a": sh(job.OnPreToolUse, `if grep -q '"tool_use_id":"call_3.1"'; then exit 2; fi`)})
	direct, nested := tools.Call{Number: 1, Name: "read_file", Input: "{}"}, tools.Call{Number: 1, Caller: 3, Name: "read_file", Input: "{}"}
	for _, call := range []tools.Call{direct, nested} {
		h.Before(t.Context(), "read_file", call, nil)
	}
	want := []transcript.CallRef{{Number: 1}, {Number: 1, Caller: 3}}
	must.Same(t, want, []transcript.CallRef{(*events)[0].Ref(), (*events)[1].Ref()}, "asked of")
	must.Same(t, []string{"a pass", "a deny"}, decisions(*events))

	said := Answers{ReplaceQuestions: true}
	for _, event := range *events {
		said.Apply(transcript.Event{Content: event})
	}
	if d, _ := said.takeAnswer("a", job.OnPreToolUse, want[1]); d.Decision != transcript.HookDeny {
		t.Errorf("the record says %s of the call of the script", d.Decision)
	}
	if d, _ := said.takeAnswer("a", job.OnPreToolUse, want[0]); d.Decision != transcript.HookPass {
		t.Errorf("the record says %s of the model's call", d.Decision)
	}
}

func TestKeepsPatchTextsOfEachCall(t *testing.T) {
	h, _ := asked(t, t.TempDir(), map[string]job.Hook{"a": {On: job.OnPostToolUse, Run: []string{"true"}, Tools: []string{"Write"}}})
	direct, nested := tools.Call{Number: 1, Name: dialect.ApplyPatch}, tools.Call{Number: 1, Caller: 3, Name: dialect.ApplyPatch}
	for _, call := range []tools.Call{direct, nested} {
		name := map[int]string{0: "direct", 3: "nested"}[call.Caller]
		h.rememberPatch(call, h.patchCalls([]tree.Edit{{Change: tree.Change{Path: name, Op: v4a.Add}}}))
	}
	h.forgetPatch(direct)
	if texts := h.resultQuestions(h.All[0], dialect.ApplyPatch, nested); len(texts) != 1 || !strings.HasSuffix(texts[0].input["file_path"].(string), "nested") {
		t.Errorf("the texts of the script's patch are %v", texts)
	}
}
