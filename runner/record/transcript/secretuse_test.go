package transcript_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

// Of what was killed, uses may be that nobody told.
func TestCountsUsesAfterKillAsMinimum(t *testing.T) {
	use := func(by string, uses int, ended bool) transcripttest.Happening {
		return transcripttest.Happening{Kind: transcript.TypeSecretUsed, Data: transcript.SecretUsed{Sandbox: by, Name: "A", Target: "a.example.com:443", Uses: uses, Ended: ended}}
	}
	run := []transcripttest.Happening{use("setup", 1, false), use("setup", 3, true), use("agent", 1, false), use("agent", 2, false), use("agent", 4, false)}
	counts := func(run []transcripttest.Happening) (all []string) {
		for _, u := range transcripttest.Folded(t, run).Secrets[0].UseCounts {
			all = append(all, u.DescribeCount())
		}
		return all
	}
	must.Same(t, []string{"3", "at least 4"}, counts(run), "killed")
	run = append(run, transcripttest.Happening{Kind: transcript.TypeRunResumed, Data: transcript.RunResumed{}}, use("agent", 5, false), use("agent", 6, true), use("verify-1", 1000, true))
	must.Same(t, []string{"3", "at least 6", "1,000"}, counts(run), "gone on")
}

func TestRefusalCountsForEachSecret(t *testing.T) {
	refused := transcript.HostRequest{Sandbox: "setup", Target: "a.example.com:443", Protocol: "https", Rule: transcript.SecretRule + "A, B", Reason: "The host is open for what a secret is for alone."}
	want := []transcript.Secret{{Name: "A", Refused: []transcript.HostRequest{refused}}, {Name: "B", Refused: []transcript.HostRequest{refused}}}
	must.Same(t, want, transcripttest.Folded(t, []transcripttest.Happening{{Kind: transcript.TypeNetwork, Data: refused}}).Secrets, "secrets")
}
