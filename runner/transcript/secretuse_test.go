package transcript_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/transcripttest"
)

func TestUsesOfSecretsAreFoldedToTheHighest(t *testing.T) {
	view := projected(t, []transcripttest.Happening{
		{Kind: transcript.TypeSecretUsed, Data: transcript.SecretUsed{By: "setup", Name: "NPM_TOKEN", Target: "npm.example.com:443", Uses: 1}},
		{Kind: transcript.TypeNetwork, Data: transcript.Network{By: "setup", Target: "evil.example.com:443", Protocol: "https", Rule: transcript.SecretRule + "NPM_TOKEN", Reason: "It is for other hosts."}},
		{Kind: transcript.TypeNetwork, Data: transcript.Network{By: "setup", Target: "npm.example.com:443", Protocol: "https", Rule: transcript.SecretRule + "NPM_TOKEN", Reason: "Its host is open.", Allowed: true}},
		{Kind: transcript.TypeSecretUsed, Data: transcript.SecretUsed{By: "setup", Name: "NPM_TOKEN", Target: "npm.example.com:443", Uses: 7}},
		{Kind: transcript.TypeSecretUsed, Data: transcript.SecretUsed{By: "agent", Name: "NPM_TOKEN", Target: "npm.example.com:443", Uses: 2}},
		{Kind: transcript.TypeSecretUsed, Data: transcript.SecretUsed{By: "agent", Name: "OTHER", Target: "a.example.com:443", Uses: 1}},
		{Kind: transcript.TypeSecretUsed, Data: transcript.SecretUsed{By: "setup", Name: "NPM_TOKEN", Target: "npm.example.com:443", Uses: 3}},
	})
	want := []transcript.Secret{
		{
			Name:    "NPM_TOKEN",
			Uses:    []transcript.SecretUsed{{By: "setup", Name: "NPM_TOKEN", Target: "npm.example.com:443", Uses: 7}, {By: "agent", Name: "NPM_TOKEN", Target: "npm.example.com:443", Uses: 2}},
			Refused: []transcript.Network{{By: "setup", Target: "evil.example.com:443", Protocol: "https", Rule: transcript.SecretRule + "NPM_TOKEN", Reason: "It is for other hosts."}},
		},
		{Name: "OTHER", Uses: []transcript.SecretUsed{{By: "agent", Name: "OTHER", Target: "a.example.com:443", Uses: 1}}},
	}
	if diff := cmp.Diff(want, view.Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}
