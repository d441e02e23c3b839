package body

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/transcripttest"
)

func TestBodyTellsOfHooks(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	answer := func(name, decision string) transcripttest.Happening {
		return transcripttest.Happening{Kind: transcript.TypeHook, Data: transcript.Hook{Name: name, On: "PreToolUse", Decision: decision}}
	}
	run := append(transcripttest.Greeting(),
		transcripttest.Happening{Kind: transcript.TypeHooks, Data: transcript.Hooks{Hooks: []transcript.HookActive{
			{Name: "operator/audit", On: "PreToolUse", SHA256: digest, Trusted: true}, {Name: "guard", On: "PreToolUse", SHA256: digest},
		}}},
		answer("guard", transcript.HookPass), answer("guard", transcript.HookDeny), answer("guard", transcript.HookFailed),
	)
	got, err := alone(projected(t, run), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n## Hooks\n", "| `operator/audit` (outside of the sandbox) | PreToolUse | 0 | 0 | 0 | `0123456789ab` |\n", "| `guard` | PreToolUse | 3 | 1 | 1 | `0123456789ab` |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the body has no %q:\n%s", want, got)
		}
	}
	if got, err = alone(projected(t, transcripttest.Greeting()), Options{}); err != nil || strings.Contains(got, "Hooks") {
		t.Errorf("the body of a run without hooks tells of them: %v\n%s", err, got)
	}
}
