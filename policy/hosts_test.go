package policy

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/rules"
)

func TestDecidesOnHosts(t *testing.T) {
	set := must.Get(rules.Load(rules.File{Name: "r.rules", Data: []byte(`network_rule(host = "www.example.org", protocol = "https", decision = "deny", justification = "use api.example.com")
network_rule(host = "ask.example.org", protocol = "https", decision = "prompt")
network_rule(host = "ask.example.org", protocol = "https", decision = "allow")
network_rule(host = "bad.example.org", protocol = "https", decision = "prompt")
network_rule(host = "bad.example.org", protocol = "https", decision = "deny")
network_rule(host = "more.example.net", protocol = "https", decision = "allow")
network_rule(host = "api.example.com", protocol = "https", decision = "allow")`)}))(t)
	list := must.Get(reach.ParseList([]string{"api.example.com", "*.example.org"}))(t)
	type decision struct {
		allowed      bool
		rule, reason string
	}
	for _, test := range []struct {
		protocol, target string
		want             decision
	}{
		{reach.HTTPS, "api.example.com:443", decision{true, "policy.network: api.example.com", "The list has it."}},
		{reach.HTTPS, "a.example.org:443", decision{true, "policy.network: *.example.org", "The list has it."}},
		{reach.HTTPS, "www.example.org:443", decision{false, "r.rules:1", "use api.example.com."}},
		{reach.HTTP, "www.example.org", decision{true, "policy.network: *.example.org", "The list has it."}},
		{reach.HTTPS, "ask.example.org:443", decision{false, "r.rules:2", "The rule asks for a person's approval, and there is nobody to ask."}},
		{reach.HTTPS, "bad.example.org:443", decision{false, "r.rules:5", "The rule refuses this host."}},
		{reach.HTTPS, "more.example.net:443", decision{false, "", "No rule allows it but the one at r.rules:6, which adds nothing to the list: policy.network in the job has api.example.com, *.example.org."}},
		{reach.HTTPS, "example.net:443", decision{false, "", "No rule allows it: policy.network in the job has api.example.com, *.example.org."}},
		{reach.HTTPS, "api.example.com:22", decision{false, "", "No rule allows it but the one at r.rules:7, which adds nothing to the list: policy.network in the job has api.example.com, *.example.org."}},
	} {
		t.Run(test.protocol+" "+test.target, func(t *testing.T) {
			target := must.Get(reach.ParseTarget(test.protocol, test.target))(t)
			d := Hosts{List: list, Key: "policy.network", Rules: set}.Decide(target)
			must.Same(t, test.want, decision{d.Allowed, d.Rule, d.Reason})
			if d.Allowed == strings.HasPrefix(d.Remedy, "Do without it") {
				t.Errorf("the remedy is %q", d.Remedy)
			}
		})
	}
	if d := (Hosts{}).Decide(reach.Target{Protocol: reach.HTTPS, Name: "a.example.org", Port: 443}); d.Allowed {
		t.Error("nothing allows a host")
	}
}

// A refusal names what to write, and for what nothing opens nothing.
func TestExplainsHowToAllowHost(t *testing.T) {
	plain := must.Get(reach.ParseList([]string{"*.corp.example"}))(t)
	private := must.Get(reach.ParsePrivate("10.0.0.5:8443"))(t)
	hosts := Hosts{List: append(plain, private), Key: "policy.network"}
	for _, test := range []struct {
		target, opens string
		private       bool
	}{
		{"10.0.0.5:8443", "", true},
		{"a.corp.example:443", "", false},
		{"evil.example:443", "add evil.example to policy.network.allow", false},
		{"10.0.0.5:443", "add {host: 10.0.0.5, private: true} to policy.network.allow", false},
		{"10.0.0.5:22", `add {host: "10.0.0.5:22", private: true} to policy.network.allow`, false},
		{"[fd12::1]:443", `add {host: "fd12::1", private: true} to policy.network.allow`, false},
		{"127.0.0.1:443", "", false},
		{"169.254.169.254:443", "", false},
		{"[fd00:ec2::254]:443", "", false},
		{"[64:ff9b::a00:1]:443", "", false},
		{"metadata.google.internal:443", "", false},
		{"localhost:443", "", false},
	} {
		target := must.Get(reach.ParseTarget(reach.HTTPS, test.target))(t)
		d := hosts.Decide(target)
		must.Same(t, test.opens, d.JobChange, test.target, "opened")
		must.Same(t, test.private, d.Private, test.target, "opened")
		if !d.Allowed && d.JobChange == "" && (d.Rule != ruleAddress || strings.Contains(d.Remedy, "Whoever")) {
			t.Errorf("%s is refused by %q: %s %s", test.target, d.Rule, d.Reason, d.Remedy)
		}
	}
}

func TestEntryAllowsPrivateAddressOfName(t *testing.T) {
	target := reach.Target{Protocol: reach.HTTPS, Name: "db.corp.example", Port: 443}
	for _, openable := range []bool{true, false} {
		d := LocalAddressRefusal(target, HostDecision{Allowed: true, Rule: "policy.network: db.corp.example"}, "a private address", openable)
		if got := d.JobChange == "write {host: db.corp.example, private: true} in the list"; got != openable || (d.JobChange != "") != openable {
			t.Errorf("openable %t: opened by %q", openable, d.JobChange)
		}
		if strings.Contains(d.Reason, "which no list of hosts opens") == openable {
			t.Errorf("openable %t: %s", openable, d.Reason)
		}
	}
	d := LocalAddressRefusal(target, HostDecision{}, ThisMachineReason, false)
	if d.JobChange != "" || !strings.Contains(d.Reason, "one of this machine, which no list") || !strings.Contains(d.Remedy, "as a service of the job") || strings.Contains(d.Remedy, "private: true") {
		t.Errorf("of an address of this machine is told %+v", d)
	}
}

// The host of a secret is opened by that secret, and not by a list.
func TestExplainsHowToAllowSecretHost(t *testing.T) {
	scope := must.Get(credential.ParseScope("npm.example.org/team"))(t)
	target := reach.Target{Protocol: reach.HTTPS, Name: "npm.example.org", Port: 443}
	hosts := Hosts{Key: "policy.network", Credentials: credential.Set{{Name: "A", Scopes: []credential.Scope{scope}}, {Name: "B", Scopes: []credential.Scope{scope}}}}
	if d := LocalAddressRefusal(target, hosts.Decide(target), "a private address", true); d.JobChange != "write private: true at the secret A or B (policy.secrets)" || !strings.Contains(d.Remedy, d.JobChange) {
		t.Errorf("its private address is opened by %q: %s", d.JobChange, d.Remedy)
	}
	for i := range hosts.Credentials {
		hosts.Credentials[i].Denied = true
	}
	want := "name these commands in commands of the secret A or B (policy.secrets), or, to open the host without it, write policy.network: {allow: [npm.example.org]}"
	if d := hosts.Decide(target); d.Allowed || d.JobChange != want || !strings.Contains(d.Remedy, want) {
		t.Errorf("for others it is opened by %q: %s", d.JobChange, d.Remedy)
	}
	for never, want := range map[bool]string{true: "", false: "change what the job has at policy.secrets"} {
		d := CredentialUseRefusal(&credential.Refusal{Names: []string{"A"}, Reason: "So it is.", NoRemedy: never})
		if d.JobChange != want || strings.Contains(d.Remedy, "Whoever runs agent-ci can") == never {
			t.Errorf("never %t: opened by %q: %s", never, d.JobChange, d.Remedy)
		}
	}
}

func TestShortensLongHostList(t *testing.T) {
	var texts []string
	for range 100 {
		texts = append(texts, "api.example.com")
	}
	list := must.Get(reach.ParseList(texts))(t)
	d := Hosts{List: list, Key: "policy.network"}.Decide(reach.Target{Protocol: reach.HTTPS, Name: "a.example.org", Port: 443})
	if len(d.Reason) > 500 || !strings.Contains(d.Reason, "api.example.com, …") {
		t.Errorf("the reason is %q", d.Reason)
	}
}
