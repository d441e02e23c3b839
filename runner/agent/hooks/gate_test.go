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
)

// sh is a hook that runs a script of a shell.
func sh(on, script string) job.Hook { return job.Hook{On: on, Run: []string{"sh", "-c", script}} }

// decisions are what was recorded, in a word for each answer.
func decisions(events []transcript.HookAnswer) (all []string) {
	for _, e := range events {
		all = append(all, e.Name+" "+e.Decision)
	}
	return all
}

// judge asks of a call, and gives the input that it is made with.
func judge(t *testing.T, h *Hooks, tool, input string) (tools.Verdict, string) {
	t.Helper()
	call := tools.Call{Number: 1, Name: tool, Input: input}
	v := h.Before(t.Context(), tool, call, func(input string) (tools.Call, bool) {
		call.Input = input
		return call, true
	})
	return v, call.Input
}

// A matcher of Codex gets patches whole, also those in commands and of edits that are no call of an edit tool.
func TestCodexMatcherGetsWholePatch(t *testing.T) {
	no := func(tools ...string) job.Hook {
		return job.Hook{On: job.OnPreToolUse, Run: []string{"sh", "-c", `if grep -Fq '"command":"*** Begin Patch\n*** Add File: a && b\n+x\n*** Update File: c\n*** Move to: d\n@@\n-1\n+2\n*** Delete File: e\n*** End Patch\n"'; then exit 2; fi`}, Tools: tools}
	}
	call := tools.Call{Number: 1, Name: "exec_command", Input: `{"cmd":"apply_patch <<'EOF'\nEOF"}`}
	for matcher, refuses := range map[string]bool{"apply_patch": true, "exec_command": false, "Bash": false} {
		h, events := asked(t, t.TempDir(), map[string]job.Hook{"a": no(matcher)})
		refusal, _ := h.ReviewPatch(tools.WithCall(t.Context(), call), []tree.Edit{
			{Change: tree.Change{Op: v4a.Add, Path: "a && b"}, New: "x\n"},
			{Change: tree.Change{Op: v4a.Update, Path: "d", MovedFrom: "c"}, Old: "1\n", New: "2\n"},
			{Change: tree.Change{Op: v4a.Delete, Path: "e"}, Old: "gone\n"},
		}, "")
		if (refusal != "") != refuses || len(*events) != map[bool]int{true: 1}[refuses] || h.HasPatchHooks() != refuses {
			t.Errorf("%s: %q, %v, of patches: %t", matcher, refusal, *events, h.HasPatchHooks())
		}
	}
}

func TestShowsWholeOutput(t *testing.T) {
	h, events := asked(t, t.TempDir(), map[string]job.Hook{
		"a": {On: job.OnPostToolUse, Run: []string{"sh", "-c", `if grep -q '"stdout":"x\\n"'; then exit 0; fi; exit 1`}, Tools: []string{"Bash"}},
		"b": sh(job.OnPostToolUse, `if grep -q 'SECRET'; then echo no >&2; exit 1; fi`),
		"c": sh(job.OnPostToolUse, `exit 1`),
	})
	result := tools.Result{Output: "Chunk ID: 1\nWall time: 1.0 seconds\nOutput:\nx\n", Detail: map[string]any{"exit_code": 0}}
	whole := func() (string, error) { return result.Output, nil }
	h.After(t.Context(), "exec_command", tools.Call{Number: 1, Input: `{"cmd":"a"}`}, result, whole)
	result.Output = strings.Repeat("x", 200<<10) + "SECRET" + strings.Repeat("x", 200<<10)
	got, let := h.After(t.Context(), "read_file", tools.Call{Number: 2, Input: `{}`}, result, whole)
	if let || !got.Failed || strings.Contains(got.Output, "xx") {
		t.Errorf("%.100s", got.Output)
	}
	must.Same(t, []string{"a pass", "b pass", "c failed", "b failed"}, decisions(*events), "the first that refuses ends it")
}

func TestShowsTextsOfEdits(t *testing.T) {
	h, _ := asked(t, t.TempDir(), map[string]job.Hook{
		"a": {On: job.OnPostToolUse, Run: []string{"sh", "-c", `if grep -q '"old_string":"a < b".*"oldString":"a < b"'; then echo seen >&2; exit 2; fi`}, Tools: []string{"Edit|Write"}},
	})
	call := tools.Call{Number: 1, Name: "exec_command", Input: `{"cmd":"apply_patch <<'E'\n*** Begin Patch\n*** End Patch\nE"}`}
	refusal, _ := h.ReviewPatch(tools.WithCall(t.Context(), call), []tree.Edit{{Change: tree.Change{Op: v4a.Update, Path: "a"}, Old: "a < b", New: "c"}}, "")
	must.Same(t, "", refusal)
	result := tools.Result{Output: "done\n", Detail: map[string]any{"files": []map[string]any{{"op": "M", "path": "a"}}}}
	got, _ := h.After(t.Context(), "exec_command", call, result, func() (string, error) { return result.Output, nil })
	must.Contain(t, got.Output, "done", "seen")
}

// A matcher that names patches, or OpenCode's edits, is for each file of a patch whatever is done to it.
func TestPatchMatchersCoverAllFiles(t *testing.T) {
	for _, matcher := range []string{"", "*", "Edit", "Write|apply_patch", "edit", "Edit|NotebookEdit", "^(Edit|Write)$"} {
		h, events := asked(t, t.TempDir(), map[string]job.Hook{"a": {On: job.OnPreToolUse, Run: []string{"sh", "-c", `grep -q '"file_path":"/nowhere/a"' && exit 2`}, Tools: []string{matcher}}})
		call := tools.Call{Number: 1, Name: "apply_patch", Form: tools.Freeform, Input: "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\n"}
		v := h.Before(t.Context(), "apply_patch", call, nil)
		refusal, _ := h.ReviewPatch(tools.WithCall(t.Context(), call), []tree.Edit{{Change: tree.Change{Op: v4a.Update, Path: "a"}, Old: "x\n", New: "y\n"}}, "")
		if v.Refusal != "" || refusal == "" || len(*events) != 1 || !h.HasPatchHooks() {
			t.Errorf("%q: %+v, %q, %q", matcher, v, refusal, decisions(*events))
		}
	}
}

// Of an edit through a link hooks are asked with both paths: with the one that the model wrote, and with the one
// where the file is.
func TestAsksAboutTargetOfLink(t *testing.T) {
	for path, questions := range map[string]int{"real/a": 2, "link/a": 1} {
		h, events := asked(t, t.TempDir(), map[string]job.Hook{"a": {On: job.OnPreToolUse, Run: []string{"sh", "-c", `grep -q '"file_path":"/nowhere/real/a"' && exit 2; exit 0`}, Tools: []string{"Edit"}}})
		call := tools.Call{Number: 1, Name: "edit", Input: `{"filePath":"link/a","oldString":"x","newString":"y"}`}
		v := h.Before(t.Context(), "edit", call, nil)
		refusal, _ := h.ReviewPatch(tools.WithCall(t.Context(), call), []tree.Edit{{Change: tree.Change{Op: v4a.Update, Path: path}, Old: "x", New: "y"}}, "")
		if v.Refusal != "" || (refusal != "") != (path == "real/a") || len(*events) != questions {
			t.Errorf("%s: %+v, %q, %q", path, v, refusal, decisions(*events))
		}
	}
}
