package transcript_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

func TestAnswersOfHooksAreCountedOn(t *testing.T) {
	listed := func(names ...string) transcripttest.Happening {
		var list transcript.Hooks
		for _, name := range names {
			list.Hooks = append(list.Hooks, transcript.HookActive{Name: name, On: "PreToolUse", SHA256: "00", MustFire: true})
		}
		return transcripttest.Happening{Kind: transcript.TypeHooks, Data: list}
	}
	answer := func(name, decision string, seconds float64) transcripttest.Happening {
		return transcripttest.Happening{Kind: transcript.TypeHook, Data: transcript.Hook{Name: name, On: "PreToolUse", Decision: decision, Seconds: seconds}}
	}
	view := projected(t, []transcripttest.Happening{
		listed("a", "b"), answer("a", transcript.HookPass, 0.25), answer("b", transcript.HookDeny, 0.5), answer("a", transcript.HookFailed, 2),
		listed("b", "a"), answer("a", transcript.HookRewrite, 1), answer("nobody", transcript.HookDeny, 9),
	})
	want := []transcript.HookUse{
		{Name: "b", On: "PreToolUse", SHA256: "00", MustFire: true, Calls: 1, Denials: 1, Longest: 0.5},
		{Name: "a", On: "PreToolUse", SHA256: "00", MustFire: true, Calls: 3, Errors: 1, Longest: 2},
	}
	if diff := cmp.Diff(want, view.Hooks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
