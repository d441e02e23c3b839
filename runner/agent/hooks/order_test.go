package hooks

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
)

// ordered are hooks of an operator and of a job, which are shell scripts.
func ordered(t *testing.T, on string, operators, jobs map[string]string) (*Hooks, *[]transcript.HookAnswer) {
	t.Helper()
	h, events := asked(t, t.TempDir(), map[string]job.Hook{})
	list := func(scripts map[string]string) map[string]job.Hook {
		all := map[string]job.Hook{}
		for name, script := range scripts {
			all[name] = job.Hook{On: on, Run: []string{"sh", "-c", script}, Timeout: job.Duration(60e9)}
		}
		return all
	}
	var err error
	if h.All, err = Combine(list(operators), list(jobs), nil, ""); err != nil {
		t.Fatal(err)
	}
	return h, events
}

// give is a script that answers where its input has a word.
func give(word, answer string) string {
	return `if grep -q "` + word + `"; then echo '` + answer + `'; fi`
}

func TestHooksSeeRewrittenInput(t *testing.T) {
	deny, rewrite := `{"decision":"deny","reason":"no push"}`, func(cmd string) string {
		return `{"hookSpecificOutput": {"updatedInput": {"command": "` + cmd + `"}}}`
	}
	for _, test := range []struct {
		name            string
		operators, jobs map[string]string
		want            []string
		refusal, input  string
	}{
		{
			"a job's rewrite is asked of the operator",
			map[string]string{"g": give("push", deny)},
			map[string]string{"a": give("pull", rewrite("git push"))},
			[]string{"operator/g pass", "a rewrite", "operator/g deny"},
			"no push", "",
		},
		{
			"a rewrite is asked of hooks before", nil,
			map[string]string{"a": give("push", deny), "b": give("pull", rewrite("git push"))},
			[]string{"a pass", "b rewrite", "a deny"},
			"no push", "",
		},
		{
			"none is asked of the same twice",
			map[string]string{"g": "cat >/dev/null"},
			map[string]string{"a": give("pull", rewrite("git fetch")), "b": "cat >/dev/null"},
			[]string{"operator/g pass", "a rewrite", "b pass", "operator/g pass"},
			"", `{"cmd":"git fetch"}`,
		},
		{
			"a rewrite is asked of hooks for other commands", nil,
			map[string]string{"a git": give("push", deny), "b": give("pull", rewrite("git push"))},
			[]string{"b rewrite", "a git deny"},
			"no push", "",
		},
		{
			"hooks that rewrite each other's commands", nil,
			map[string]string{"a": give(".", rewrite("a")), "b": give(".", rewrite("b"))},
			slices.Repeat([]string{"a rewrite", "b rewrite"}, rewriteRounds),
			"without end", `{"cmd":"b"}`,
		},
		{
			"the same in another form is no rewrite", nil,
			map[string]string{"a": give("pull", rewrite("git pull")), "b": "cat >/dev/null"},
			[]string{"a rewrite", "b pass"},
			"", "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, events := ordered(t, job.OnPreToolUse, test.operators, test.jobs)
			input := `{"cmd":"git pull"}`
			if i := slices.IndexFunc(h.All, func(h Hook) bool { return h.Name == "a git" }); i >= 0 {
				h.All[i].Argv, input = []string{"git"}, `{"cmd":"pull"}`
			}
			v, made := judge(t, h, "exec_command", input)
			must.Same(t, test.want, decisions(*events))
			if !strings.Contains(v.Refusal, test.refusal) || (v.Refusal == "") != (test.refusal == "") || test.input != "" && made != test.input {
				t.Errorf("%+v, %s", v, made)
			}
		})
	}
}

func TestOperatorSeesOutputForModel(t *testing.T) {
	h, events := ordered(t, job.OnPostToolUse, map[string]string{"scrub": give("hunter2", `{"hookSpecificOutput":{"updatedToolOutput":"scrubbed"}}`)},
		map[string]string{"a": `cat >/dev/null; echo '{"decision":"deny","reason":"hunter2"}'`, "b": "cat >/dev/null"})
	got, let := h.After(t.Context(), "exec_command", tools.Call{Number: 1, Name: "exec_command", Input: `{"cmd":"x"}`}, tools.Result{Output: "fine"}, func() (string, error) { return "fine", nil })
	if got.Output != "scrubbed" || let {
		t.Errorf("%+v", got)
	}
	must.Same(t, []string{"a deny", "b pass", "operator/scrub replace"}, decisions(*events))
}

func TestRecordsInterruptedEndHook(t *testing.T) {
	h, events := ordered(t, job.OnSessionEnd, nil, map[string]string{"a": "sleep 1000"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stop := h.ReviewEnd(ctx, &outcome.Stop{Outcome: outcome.Changed}, End{})
	must.Same(t, "hook_failed", stop.Reason, stop)
	must.Same(t, []string{"a failed"}, decisions(*events))
}
