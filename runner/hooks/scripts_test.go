package hooks

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// A call of a script has a number that a call of the model's has, too. Neither gets the answers,
// the texts or the output of the other.
func TestCallsOfScriptsAreOthersThanTheModels(t *testing.T) {
	h, events := asked(t, t.TempDir(), map[string]job.Hook{"a": sh(job.OnPreTool, `if grep -q '"caller":3'; then exit 2; fi`)})
	direct, nested := tools.Call{Number: 1, Name: "read_file", Input: "{}"}, tools.Call{Number: 1, Caller: 3, Name: "read_file", Input: "{}"}
	for _, call := range []tools.Call{direct, nested} {
		h.Before(t.Context(), "read_file", call, nil)
	}
	want := []transcript.CallRef{{Number: 1}, {Number: 1, Caller: 3}}
	if got := []transcript.CallRef{(*events)[0].Ref(), (*events)[1].Ref()}; !cmp.Equal(want, got) {
		t.Errorf("asked of %v, want %v", got, want)
	}
	if diff := cmp.Diff([]string{"a pass", "a deny"}, decisions(*events)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	past := Past{Replays: true}
	for _, event := range *events {
		raw, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		if err := past.Take(transcript.Event{Type: transcript.TypeHook, Data: raw}); err != nil {
			t.Fatal(err)
		}
	}
	if d, _ := past.take("a", job.OnPreTool, want[1]); d.Decision != transcript.HookDeny {
		t.Errorf("the record says %s of the call of the script", d.Decision)
	}
	if d, _ := past.take("a", job.OnPreTool, want[0]); d.Decision != transcript.HookPass {
		t.Errorf("the record says %s of the model's call", d.Decision)
	}
}

func TestTextsOfPatchesAreThoseOfTheirCall(t *testing.T) {
	h, _ := asked(t, t.TempDir(), map[string]job.Hook{"a": {On: job.OnPostTool, Run: []string{"true"}, Compat: job.CompatClaude, Tools: []string{"Write"}}})
	direct, nested := tools.Call{Number: 1, Name: applyPatch}, tools.Call{Number: 1, Caller: 3, Name: applyPatch}
	h.remember(direct, Patch{Edits: []tree.Edit{{Change: tree.Change{Path: "direct", Op: v4a.Add}}}})
	h.remember(nested, Patch{Edits: []tree.Edit{{Change: tree.Change{Path: "nested", Op: v4a.Add}}}})
	h.forget(direct)
	if texts := h.edited(nested); len(texts) != 1 || !strings.HasSuffix(texts[0].Input["file_path"].(string), "nested") {
		t.Errorf("the texts of the script's patch are %v", texts)
	}
}

func TestARehearsalTellsCallsOfScriptsApart(t *testing.T) {
	h, events := asked(t, t.TempDir(), map[string]job.Hook{"a": sh(job.OnPostTool, `if grep -q secret; then exit 2; fi`)})
	r := &Rehearsal{Hooks: h}
	take := func(kind transcript.Type, data any) {
		t.Helper()
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Take(t.Context(), &transcript.View{}, transcript.Event{Type: kind, Data: raw}); err != nil {
			t.Fatal(err)
		}
	}
	take(transcript.TypeToolStarted, transcript.ToolStarted{Number: 1, Tool: "exec", Input: "text(1)"})
	take(transcript.TypeToolStarted, transcript.ToolStarted{Number: 1, Caller: 1, Tool: "read_file", Input: "{}"})
	take(transcript.TypeHook, transcript.Hook{Name: "was", On: job.OnPostTool, Number: 1, Caller: 1, Decision: transcript.HookDeny, Before: "secret"})
	take(transcript.TypeToolFinished, transcript.ToolFinished{Number: 1, Caller: 1, Tool: "read_file", Output: "withheld"})
	take(transcript.TypeToolFinished, transcript.ToolFinished{Number: 1, Tool: "exec", Output: "Script completed"})
	var got []string
	for _, event := range *events {
		got = append(got, event.Ref().String()+" "+event.Decision)
	}
	if diff := cmp.Diff([]string{"1.1 deny", "1 pass"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
