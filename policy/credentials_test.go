package policy

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/rules"
)

func TestCredentialsAllowTheirHosts(t *testing.T) {
	set := must.Get(rules.Load(rules.File{Name: "r.rules", Data: []byte(`network_rule(host = "ruled.example.org", protocol = "https", decision = "deny")`)}))(t)
	list := must.Get(reach.ParseList([]string{"listed.example.org"}))(t)
	scoped := func(name string, withheld bool, texts ...string) credential.Credential {
		c := credential.Credential{Name: name, Denied: withheld}
		for _, text := range texts {
			scope := must.Get(credential.ParseScope(text))(t)
			c.Scopes = append(c.Scopes, scope)
		}
		return c
	}
	hosts := Hosts{List: list, Key: "policy.network", Rules: set, Credentials: credential.Set{
		scoped("ONE", false, "npm.example.org/a", "ruled.example.org", "listed.example.org", "port.example.org:8443"), scoped("TWO", false, "npm.example.org/b"), scoped("THREE", true, "npm.example.org", "other.example.org"), scoped("FOUR", false, "private.example.org"),
	}}
	for i := range hosts.Credentials {
		hosts.Credentials[i].Private = i >= 2
	}
	type decision struct {
		allowed, bound, private bool
		rule                    string
	}
	for _, test := range []struct {
		protocol, target string
		want             decision
	}{
		{reach.HTTPS, "npm.example.org:443", decision{true, true, false, "policy.secrets: ONE, TWO"}},
		{reach.HTTPS, "private.example.org:443", decision{true, true, true, "policy.secrets: FOUR"}},
		{reach.HTTPS, "port.example.org:8443", decision{true, true, false, "policy.secrets: ONE"}},
		{reach.HTTPS, "port.example.org:443", decision{}},
		{reach.HTTPS, "npm.example.org:444", decision{}},
		{reach.HTTPS, "below.npm.example.org:443", decision{}},
		{reach.HTTP, "npm.example.org", decision{}},
		{reach.HTTPS, "listed.example.org:443", decision{true, false, false, "policy.network: listed.example.org"}},
		{reach.HTTPS, "ruled.example.org:443", decision{false, false, false, "r.rules:1"}},
		{reach.HTTPS, "other.example.org:443", decision{}},
	} {
		t.Run(test.protocol+" "+test.target, func(t *testing.T) {
			target := must.Get(reach.ParseTarget(test.protocol, test.target))(t)
			d := hosts.Decide(target)
			must.Same(t, test.want, decision{d.Allowed, d.OnlyCredentials, d.Private, d.Rule})
		})
	}
}
