package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/rules"
)

func TestHostsDecide(t *testing.T) {
	set, err := rules.Load(rules.File{Name: "r.rules", Data: []byte(`network_rule(host = "www.example.org", protocol = "https", decision = "deny", justification = "use api.example.com")
network_rule(host = "ask.example.org", protocol = "https", decision = "prompt")
network_rule(host = "ask.example.org", protocol = "https", decision = "allow")
network_rule(host = "bad.example.org", protocol = "https", decision = "prompt")
network_rule(host = "bad.example.org", protocol = "https", decision = "deny")
network_rule(host = "more.example.net", protocol = "https", decision = "allow")
network_rule(host = "api.example.com", protocol = "https", decision = "allow")`)})
	if err != nil {
		t.Fatal(err)
	}
	list, err := reach.ParseList([]string{"api.example.com", "*.example.org"})
	if err != nil {
		t.Fatal(err)
	}
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
			target, err := reach.ParseTarget(test.protocol, test.target)
			if err != nil {
				t.Fatal(err)
			}
			d := Hosts{List: list, Key: "policy.network", Rules: set}.Decide(target)
			if diff := cmp.Diff(test.want, decision{d.Allowed, d.Rule, d.Reason}, cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
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
func TestWhatOpensAHost(t *testing.T) {
	plain, err := reach.ParseList([]string{"*.corp.example"})
	if err != nil {
		t.Fatal(err)
	}
	private, err := reach.ParsePrivate("10.0.0.5:8443")
	if err != nil {
		t.Fatal(err)
	}
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
		target, err := reach.ParseTarget(reach.HTTPS, test.target)
		if err != nil {
			t.Fatal(err)
		}
		d := hosts.Decide(target)
		if d.Opens != test.opens || d.Private != test.private {
			t.Errorf("%s: opened by %q, private %t", test.target, d.Opens, d.Private)
		}
		if !d.Allowed && d.Opens == "" && (d.Rule != ruleAddress || strings.Contains(d.Remedy, "Whoever")) {
			t.Errorf("%s is refused by %q: %s %s", test.target, d.Rule, d.Reason, d.Remedy)
		}
	}
}

func TestAPrivateAddressBehindANameIsOpenedByItsEntry(t *testing.T) {
	target := reach.Target{Protocol: reach.HTTPS, Name: "db.corp.example", Port: 443}
	for _, openable := range []bool{true, false} {
		d := LocalAddress(target, "a private address", openable)
		if got := d.Opens == "write {host: db.corp.example, private: true} in the list"; got != openable || (d.Opens != "") != openable {
			t.Errorf("openable %t: opened by %q", openable, d.Opens)
		}
		if strings.Contains(d.Reason, "which no list of hosts opens") == openable {
			t.Errorf("openable %t: %s", openable, d.Reason)
		}
	}
	d := LocalAddress(target, OfThisMachine, false)
	if d.Opens != "" || !strings.Contains(d.Reason, "one of this machine, which no list") || !strings.Contains(d.Remedy, "as a service of the job") || strings.Contains(d.Remedy, "private: true") {
		t.Errorf("of an address of this machine is told %+v", d)
	}
}

func TestALongListIsShownInPart(t *testing.T) {
	var texts []string
	for range 100 {
		texts = append(texts, "api.example.com")
	}
	list, err := reach.ParseList(texts)
	if err != nil {
		t.Fatal(err)
	}
	d := Hosts{List: list, Key: "policy.network"}.Decide(reach.Target{Protocol: reach.HTTPS, Name: "a.example.org", Port: 443})
	if len(d.Reason) > 500 || !strings.Contains(d.Reason, "api.example.com, …") {
		t.Errorf("the reason is %q", d.Reason)
	}
}
