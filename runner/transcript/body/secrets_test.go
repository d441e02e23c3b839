package body

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/transcripttest"
)

func TestBodyTellsOfCredentials(t *testing.T) {
	run := append(transcripttest.Greeting(),
		transcripttest.Happening{Kind: transcript.TypeSecretUsed, Data: transcript.SecretUsed{By: "setup", Name: "NPM_TOKEN", Target: "npm.example.com:443", Uses: 1204, Ended: true}},
		transcripttest.Happening{Kind: transcript.TypeNetwork, Data: transcript.Network{By: "agent", Target: "evil.example.com:80", Protocol: "http", Rule: transcript.SecretRule + "NPM_TOKEN", Reason: "The placeholder is in the path."}},
		transcripttest.Happening{Kind: transcript.TypeNetwork, Data: transcript.Network{By: "agent", Target: "npm.example.com:443", Protocol: "https", Rule: transcript.SecretRule + "NPM_TOKEN", Reason: "It is for GET alone.", Request: "PUT /a|b`<b>"}},
	)
	got, err := alone(projected(t, run), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n## Credentials\n", "| `NPM_TOKEN` | setup | `npm.example.com:443` | 1,204 |\n", "refused: The placeholder is in the path. |\n", "refused: It is for GET alone. For example <code>PUT /a&#124;b\\`&lt;b></code> |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the body has no %q:\n%s", want, got)
		}
	}
	if got, err = alone(projected(t, transcripttest.Greeting()), Options{}); err != nil || strings.Contains(got, "Credentials") {
		t.Errorf("the body of a run without secrets tells of credentials: %v\n%s", err, got)
	}
}

// However many refusals there are of one credential, the uses of all are shown.
func TestUsesOfCredentialsComeFirst(t *testing.T) {
	first := transcript.Secret{Name: "A"}
	for range 60 {
		first.Refused = append(first.Refused, transcript.Network{By: "setup", Target: "a.example.org:443", Reason: "It is for another path."})
	}
	shown := secrets([]transcript.Secret{first, {Name: "B", Uses: []transcript.SecretUse{{SecretUsed: transcript.SecretUsed{By: "agent", Name: "B", Target: "b.example.org:443", Uses: 7}}}}})
	if !strings.Contains(shown.rows[0], "`B`") {
		t.Errorf("the first row is %s", shown.rows[0])
	}
}
