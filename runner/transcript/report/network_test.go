package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

func TestHostsThatCommandsAskedFor(t *testing.T) {
	asked := func(n transcript.Network) happening { return happening{kind: transcript.TypeNetwork, data: n} }
	run := slices.Concat(ordinary()[:5], []happening{
		asked(transcript.Network{By: "setup", Target: "proxy.golang.org:443", Protocol: "https", Allowed: true, Rule: "policy.network: proxy.golang.org", Reason: "The list has it."}),
		asked(transcript.Network{By: "agent", Target: "files.example.com:443", Protocol: "https", Reason: "No rule allows it."}),
		asked(transcript.Network{By: evil, Target: evil, Protocol: evil, Rule: evil, Reason: evil}),
	}, ordinary()[5:])
	text := parsed(t, rendered(t, recorded(t, run))).text
	for _, want := range []string{
		"proxy.golang.org:443", "policy.network: proxy.golang.org The list has it.", "setup, https", "files.example.com:443", "by no rule allows it",
		"The policy refused 1 call and 2 hosts.", "<script>alert(1)</script>", "‹U+202E›abc",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
