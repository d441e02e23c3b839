package report

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// What happens beside turns and calls has its words on the page.
func TestPageShowsSideEvents(t *testing.T) {
	run := fixture(t, "ordinary")
	asked := func(n transcript.HostRequest) happening { return happening{Kind: transcript.TypeNetwork, Data: n} }
	for name, test := range map[string]struct {
		run  []happening
		want []string
	}{
		"a run that went on": {[]happening{
			{Kind: transcript.TypeRunResumed, Data: transcript.RunResumed{
				Version: evil, PreviousEnd: "budget_exceeded/turns", TornBytes: 12, PatchUndone: true, RestoredElsewhere: true, Limits: []string{"limits.turns=400", evil},
			}},
			{Kind: transcript.TypeRunResumed, Data: transcript.RunResumed{Version: "v1"}},
		}, []string{
			"Resumed after budget_exceeded/turns, by agent-ci", "after it was killed, by agent-ci v1", "limits.turns=400",
			"12 bytes of a torn last line", "half-applied patch was undone", "put into the checkout again", "<script>alert(1)</script>",
		}},
		"failures and a long conversation": {[]happening{
			{Kind: transcript.TypeModelFailure, Data: transcript.ModelFailure{Attempts: 6, Kind: "server_error", Code: evil, Error: "the API is down", Data: evil}},
			{Kind: "a.later.type", Data: map[string]any{"unheard_of": 42}},
			{Kind: transcript.TypeCompaction, Data: transcript.Compaction{Method: "summary", Reason: "window", TokensBefore: 110_000, TokensAfter: 9_000, Items: []json.RawMessage{json.RawMessage(`{"text":"so far"}`)}}},
		}, []string{
			"server_error", "after 6 attempts", "the API is down", "<script>alert(1)</script>", "by summary, for window", "from 110,000 tokens to 9,000 tokens",
			`"text": "so far"`, "A.later.type", "unheard_of: 42",
		}},
		"hosts that commands asked for": {[]happening{
			asked(transcript.HostRequest{Sandbox: "setup", Target: "proxy.golang.org:443", Protocol: "https", Allowed: true, Rule: "policy.network: proxy.golang.org", Reason: "The list has it."}),
			asked(transcript.HostRequest{Sandbox: "agent", Target: "files.example.com:443", Protocol: "https", Reason: "No rule allows it."}),
			asked(transcript.HostRequest{Sandbox: evil, Target: evil, Protocol: evil, Rule: evil, Reason: evil}),
		}, []string{
			"proxy.golang.org:443", "Allowed to reach proxy.golang.org:443", "rule: policy.network: proxy.golang.org", "reason: The list has it.", "by: setup", "files.example.com:443", "by no rule allows it",
			"The policy refused 1 call and 2 hosts.", "<script>alert(1)</script>", "‹U+202E›abc",
		}},
	} {
		text := parsed(t, rendered(t, unchained(t, slices.Concat(run[:5], test.run, run[5:])))).text
		for _, want := range test.want {
			must.Same(t, true, strings.Contains(text, want), name, "the page does not say", want)
		}
	}
}

func TestScriptedTurnsNameNoModel(t *testing.T) {
	run := fixture(t, "ordinary")
	for scripted, want := range map[string]bool{"": true, "session.yml": false} {
		run[0].Data = transcript.RunStarted{RunID: "r", Scripted: scripted}
		text := parsed(t, rendered(t, unchained(t, run))).text
		must.Same(t, want, strings.Contains(text, "Turn 1 gpt-5.1-codex"), scripted)
		if said := strings.Contains(text, "Turn 1 scripted answers"); said == want {
			t.Errorf("scripted by %q, the turn says scripted answers: %v", scripted, said)
		}
	}
}

// Alerts are at the top of the page, whatever the inspection found.
func TestAlertsAreOnTop(t *testing.T) {
	run := append(fixture(t, "ordinary"),
		happening{Kind: transcript.TypePolicy, Data: transcript.Policy{Level: "none"}},
		happening{Kind: transcript.TypeInspection, Data: transcript.Inspection{SilencedSigns: []transcript.SilencedSign{{Pattern: "skip", File: "a_test.go", Reason: "It skips."}}}})
	head, _, _ := strings.Cut(rendered(t, unchained(t, run)), "<main>")
	must.Same(t, true, strings.Contains(head, "Commands ran unconfined"))
}
