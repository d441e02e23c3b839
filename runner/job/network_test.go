package job

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNetworkIsAWordOrHosts(t *testing.T) {
	list := Network{Allow: []string{"api.example.com", "*.example.org", "db.example.net:8443"}}
	const written = `{allow: [api.example.com, "*.example.org", db.example.net:8443]}`
	for _, test := range []struct {
		name   string
		layers []Layer
		want   Network
	}{
		{"the default", []Layer{jobFile(start)}, Network{Mode: "loopback"}},
		{"a word", []Layer{jobFile(start + "policy: {network: full}\n")}, Network{Mode: "full"}},
		{"a list", []Layer{jobFile(start + "policy: {network: " + written + "}\n")}, list},
		{"a word by --set", []Layer{jobFile(start), mustSet(t, "policy.network=none")}, Network{Mode: "none"}},
		{"a list by --set over a word", []Layer{jobFile(start + "policy: {network: full}\n"), mustSet(t, "policy.network="+written)}, list},
		{"a word by --set over a list", []Layer{jobFile(start + "policy: {network: " + written + "}\n"), mustSet(t, "policy.network=loopback")}, Network{Mode: "loopback"}},
		{"a list over a list", []Layer{jobFile(start + "policy: {network: {allow: [a.example.com]}}\n"), mustSet(t, "policy.network="+written)}, list},
		{"a list by a variable", []Layer{jobFile(start), byVariable(t, "AGENT_CI_POLICY_NETWORK="+written)}, list},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := mustLoad(t, test.layers...).Policy.Network
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("network (-want +got):\n%s", diff)
			}
			raw, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var again Network
			if err := json.Unmarshal(raw, &again); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("%s is read otherwise (-want +got):\n%s", raw, diff)
			}
		})
	}
}

func byVariable(t *testing.T, variable string) Layer {
	t.Helper()
	layer, warnings := Environment([]string{variable}, nil)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	return layer
}

func TestASetupCommandHasANetworkOfItsOwn(t *testing.T) {
	job := mustLoad(t, jobFile(start+"setup: [{run: a, network: {allow: [a.example.com]}}, {run: b}, {run: c, network: none}]\n"))
	var got []Network
	for _, step := range job.Setup {
		got = append(got, step.Network)
	}
	if diff := cmp.Diff([]Network{{Allow: []string{"a.example.com"}}, {}, {Mode: "none"}}, got); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	if !got[1].IsZero() || got[0].IsZero() || got[2].IsZero() || got[2].Listed() {
		t.Errorf("networks %v", got)
	}
}

func TestMistakesOfANetwork(t *testing.T) {
	for _, test := range []struct{ value, want string }{
		{"loopbak", `policy.network: "loopbak" is not one of none, loopback, full; did you mean loopback?`},
		{"''", `policy.network: "" is not one of none, loopback, full`},
		{"[a.example.com]", "policy.network: must be one of its words, or {allow: [hosts]}, not a list"},
		{"{}", `policy.network: must have the key allow with a list of hosts`},
		{"{allow: a.example.com}", `policy.network.allow: must be a list of hosts such as [api.example.com, "*.example.org"]`},
		{"{allow: []}", "policy.network.allow: names no host; for no network at all write loopback or none instead of a list"},
		{"{alow: [a.example.com]}", "policy.network.alow: unknown key; did you mean allow?"},
		{"{deny: [a.example.com]}", "policy.network.deny: unknown key; did you mean allow?"},
		{"{allow: [a.example.com], allow: [b]}", "policy.network.allow: is given twice"},
		{"{allow: [5]}", `policy.network.allow[0]: must be text, not the number 5; did you mean "5"?`},
		{"{allow: ['']}", "policy.network.allow[0]: must not be empty"},
		{"{allow: [~]}", "policy.network.allow[0]: is empty"},
		{"{allow: ['*']}", "policy.network.allow[0]: must name a host; all of them is network: full"},
		{"{allow: ['https://a.example.com']}", "policy.network.allow[0]: has no port after its colon"},
		{"{allow: [127.0.0.1]}", "policy.network.allow[0]: is a loopback address, which no list opens"},
		{"{allow: [*.example.org]}", "job.yml:3:28: is not YAML: what begins with * has to be in quotes"},
	} {
		t.Run(test.value, func(t *testing.T) {
			lines := problemLines(t, jobFile(start+"policy: {network: "+test.value+"}\n"))
			if len(lines) != 1 || !strings.Contains(lines[0], test.want) {
				t.Errorf("problems %q, want one with %q", lines, test.want)
			}
		})
	}
}
