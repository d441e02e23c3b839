package job

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

func TestReadsNetworkAsWordOrHosts(t *testing.T) {
	list := Network{Allow: []AllowedHost{{Host: "api.example.com"}, {Host: "*.example.org"}, {Host: "db.example.net:8443"}}}
	mixed := Network{Allow: []AllowedHost{{Host: "10.0.0.5", Private: true}, {Host: "*.corp.example", CA: "certs/corp.pem"}, {Preset: "npm"}, {Host: "a.example.com"}}, Proxy: "inherit"}
	const mappings = `{allow: [{host: 10.0.0.5, private: true}, {host: "*.corp.example", ca: certs/corp.pem, private: false}, {preset: npm}, {host: a.example.com}], proxy: inherit}`
	const written = `{allow: [api.example.com, "*.example.org", db.example.net:8443]}`
	for _, test := range []struct {
		name   string
		layers []config.Layer
		want   Network
	}{
		{"the default", []config.Layer{jobFile(start)}, Network{Mode: "loopback"}},
		{"a word", []config.Layer{jobFile(start + "policy: {network: full}\n")}, Network{Mode: "full"}},
		{"a list", []config.Layer{jobFile(start + "policy: {network: " + written + "}\n")}, list},
		{"a word by --set", []config.Layer{jobFile(start), config.SetLayer("policy.network=none")}, Network{Mode: "none"}},
		{"a list by --set over a word", []config.Layer{jobFile(start + "policy: {network: full}\n"), config.SetLayer("policy.network=" + written)}, list},
		{"a word by --set over a list", []config.Layer{jobFile(start + "policy: {network: " + written + "}\n"), config.SetLayer("policy.network=loopback")}, Network{Mode: "loopback"}},
		{"a list over a list", []config.Layer{jobFile(start + "policy: {network: {allow: [a.example.com]}}\n"), config.SetLayer("policy.network=" + written)}, list},
		{"mappings", []config.Layer{jobFile(start + "policy: {network: " + mappings + "}\n")}, mixed},
		{"mappings by --set over a list", []config.Layer{jobFile(start + "policy: {network: " + written + "}\n"), config.SetLayer("policy.network=" + mappings)}, mixed},
		{"a list by --set over mappings", []config.Layer{jobFile(start + "policy: {network: " + mappings + "}\n"), config.SetLayer("policy.network=" + written)}, list},
		{"mappings by a variable", []config.Layer{jobFile(start), byVariable(t, "AGENT_CI_POLICY_NETWORK="+mappings)}, mixed},
		{"a list by a variable", []config.Layer{jobFile(start), byVariable(t, "AGENT_CI_POLICY_NETWORK="+written)}, list},
	} {
		must.Same(t, test.want, mustLoad(t, test.layers...).Policy.Network, test.name)
	}
}

func byVariable(t *testing.T, variable string) config.Layer {
	t.Helper()
	layer, warnings := Format().Environment([]string{variable}, nil)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	return layer
}

// Without a list there is something to reach by a proxy where there are secrets.
func TestSecretsAllowProxyWithoutList(t *testing.T) {
	job := mustLoad(t, jobFile(start+"policy: {network: {proxy: inherit}, secrets: [{name: X, hosts: [a.example.com]}]}\n"))
	must.Same(t, Network{Mode: "loopback", Proxy: InheritProxy}, job.Policy.Network, "network")
	raw, err := json.Marshal(job.Policy.Network)
	var again Network
	if err := errors.Join(err, json.Unmarshal(raw, &again)); err != nil || string(raw) != `{"proxy":"inherit"}` || !reflect.DeepEqual(again, job.Policy.Network) {
		t.Errorf("it marshals to %s, which is %v, %v", raw, again, err)
	}
}

func TestReportsMistakesInNetwork(t *testing.T) {
	for _, test := range []struct{ value, want string }{
		{"loopbak", `policy.network: "loopbak" is not one of none, loopback, full; did you mean loopback?`},
		{"''", `policy.network: "" is not one of none, loopback, full`},
		{"[a.example.com]", "policy.network: must be one of its words, or a list of hosts such as {allow: [api.example.com]}, not a list"},
		{"{}", `policy.network: must have the key allow with a list of hosts`},
		{"{allow: a.example.com}", `policy.network.allow: must be a list such as [api.example.com, "*.example.org"], not text`},
		{"{allow: []}", "policy.network.allow: is an empty list; for no network at all write loopback or none"},
		{"{alow: [a.example.com]}", "policy.network.alow: unknown key; did you mean policy.network.allow?"},
		{"{deny: [a.example.com]}", "policy.network.deny: unknown key; did you mean policy.network.allow?"},
		{"{allow: [a.example.com], allow: [b]}", "policy.network.allow: is given twice"},
		{"{allow: [5]}", `policy.network.allow[0]: must be text, not the number 5; did you mean "5"?`},
		{"{allow: ['']}", "policy.network.allow[0]: must not be empty"},
		{"{allow: [~]}", "policy.network.allow[0]: is empty"},
		{"{allow: ['https://a.example.com']}", "policy.network.allow[0]: must be a host alone, as in api.example.com, without https:// and without a path; did you mean a.example.com?"},
		{"{allow: ['https://a.example.com/v1']}", "policy.network.allow[0]: must be a host alone, as in api.example.com, without https:// and without a path"},
		{"{allow: [127.0.0.1]}", "policy.network.allow[0]: is a loopback address, which no list opens"},
		{"{allow: [a.example.com], proxi: inherit}", "policy.network.proxi: unknown key; did you mean policy.network.proxy?"},
		{"{allow: [a.example.com], proxy: direct}", `policy.network.proxy: "direct" is not one of "", inherit`},
		{"{proxy: inherit}", "policy.network: must have the key allow with a list of hosts: without one, and without policy.secrets, there is nothing to reach by a proxy"},
		{"{allow: [metadata.google.internal]}", "policy.network.allow[0]: is the metadata service of a cloud, which no list opens"},
		{"{allow: [[a.example.com]]}", "policy.network.allow[0]: must be a host, or a mapping such as {host: db.example.org, private: true} or {preset: npm}, not a list"},
		{"{allow: [{}]}", "job.yml:3:28: policy.network.allow[0].host: is missing; give host, or preset"},
		{"{allow: [{private: true}]}", "policy.network.allow[0].host: is missing"},
		{"{allow: [{hosts: a.example.com}]}", "policy.network.allow[0].hosts: unknown key; did you mean policy.network.allow[0].host?"},
		{"{allow: [{host: a.example.com, zebra: 1}]}", "policy.network.allow[0].zebra: unknown key"},
		{"{allow: [{host: a.example.com, host: b.example.com}]}", "policy.network.allow[0].host: is given twice"},
		{"{allow: [{host: 'https://a.example.com'}]}", "job.yml:3:35: policy.network.allow[0].host: must be a host alone, as in api.example.com, without https:// and without a path"},
		{"{allow: [{host: ''}]}", "policy.network.allow[0].host: must not be empty"},
		{"{allow: [{host: a.example.com, private: yes}]}", "policy.network.allow[0].private: must be true or false, without quotes; did you mean true?"},
		{`{allow: [{host: "*.corp.example", private: true}]}`, "policy.network.allow[0].host: has a wildcard, which private: true does not go with"},
		{"{allow: [{host: 169.254.169.254, private: true}]}", "policy.network.allow[0].host: is a link-local address, which no list opens"},
		{"{allow: [{host: 93.184.216.34, private: true}]}", "policy.network.allow[0].host: is a public address; leave private out"},
		{"{allow: [{host: 10.0.0.5}]}", "policy.network.allow[0].host: is a private address; one that"},
		{"{allow: [{host: a.example.com, ca: ../corp.pem}]}", "policy.network.allow[0].ca: must be the path of a file without .."},
		{"{allow: [{host: a.example.com, ca: ''}]}", "policy.network.allow[0].ca: must not be empty"},
		{"{allow: [{preset: nmp}]}", `policy.network.allow[0].preset: "nmp" is not one of npm, pypi, goproxy, cargo, maven, gradle, rubygems, nuget, debian, ubuntu, github-read; did you mean npm?`},
		{"{allow: [{preset: npm, host: a.example.com}]}", "policy.network.allow[0].preset: must be alone in its entry"},
		{"{allow: [{preset: npm, private: false}]}", "policy.network.allow[0].preset: must be alone in its entry"},
		{"{allow: [{preset: npm, private: true}]}", "policy.network.allow[0].preset: must be alone in its entry"},
		{"{allow: [" + strings.Repeat("a.example.com, ", 999) + "{preset: npm}]}", "policy.network.allow: names more than 1000 hosts"},
		{"{allow: [" + strings.Repeat("{preset: github-read}, ", 167) + "]}", "policy.network.allow: names more than 1000 hosts"},
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

// What is written without the keys of mappings stays the same bytes in records.
func TestEncodesAndDescribesNetworks(t *testing.T) {
	for _, test := range []struct {
		network         Network
		encoded, reader string
	}{
		{Network{Mode: "full"}, `"full"`, "full"},
		{Network{}, `""`, ""},
		{Network{Allow: []AllowedHost{{Host: "a.example.com"}, {Host: "*.example.org"}}}, `{"allow":["a.example.com","*.example.org"]}`, "allow list: a.example.com, *.example.org"},
		{
			Network{Allow: []AllowedHost{{Host: "db.corp.example", Private: true, CA: "corp.pem"}, {Preset: "npm"}, {Host: "a.example.com", CA: "corp.pem"}}, Proxy: "inherit"},
			`{"allow":[{"host":"db.corp.example","private":true,"ca":"corp.pem"},{"preset":"npm"},{"host":"a.example.com","ca":"corp.pem"}],"proxy":"inherit"}`,
			"allow list: db.corp.example (private, ca corp.pem), preset npm, a.example.com (ca corp.pem); by the machine's proxy",
		},
	} {
		raw := must.Get(json.Marshal(test.network))(t)
		must.Same(t, test.encoded, string(raw), raw, "for a reader", test.network)
		must.Same(t, test.reader, test.network.String(), raw, "for a reader", test.network)
		var again Network
		must.Do(t, json.Unmarshal(raw, &again), raw)
		must.Same(t, test.network, again, raw)
	}
}

func TestListsNetworksOfJob(t *testing.T) {
	job := mustLoad(t, jobFile(start+"setup: [{run: a}, {run: b, network: {allow: [a.example.com]}}, {run: c, network: none}]\npolicy: {network: full}\n"))
	var got []string
	for key, network := range job.Networks() {
		got = append(got, key+" is "+network.String())
	}
	must.Same(t, []string{"policy.network is full", "setup[1].network is allow list: a.example.com", "setup[2].network is none"}, got, "networks")
	for key := range job.Networks() {
		if key == "setup[1].network" {
			break
		}
	}
}

func TestListExpandsPresets(t *testing.T) {
	network := Network{Allow: []AllowedHost{{Host: "a.example.com:8443"}, {Preset: "goproxy"}, {Host: "10.0.0.5", Private: true}}}
	list := must.Get(network.ReachList())(t)
	must.Same(t, "a.example.com:8443, proxy.golang.org, sum.golang.org, 10.0.0.5 (private)", list.String(), "the list")
	for _, wrong := range []AllowedHost{{Preset: "later"}, {Host: "10.0.0.5"}, {}} {
		must.Fail(t, "", must.Err((Network{Allow: []AllowedHost{wrong}}).ReachList()), wrong, "is the list")
	}
}
