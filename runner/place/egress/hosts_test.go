package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/proxy"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// asked is a request for a host.
func asked(host string, allowed bool) proxy.Request {
	return proxy.Request{Protocol: "https", Target: host + ":443", HostDecision: policy.HostDecision{Allowed: allowed, Reason: "So it is."}}
}

func TestRecordsAllAllowedHosts(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		t.Run(fmt.Sprintf("allowed %t", allowed), func(t *testing.T) {
			s, log := recording(t)
			for i := range maxRecordedHosts {
				must.Do(t, s.recordRequest(Agent, asked(fmt.Sprintf("h%d.example.com", i), allowed)))
			}
			must.Same(t, allowed, errors.Is(s.recordRequest(Agent, asked("beyond.example.com", allowed)), errTooManyHosts), "one beyond")
			must.Do(t, s.recordRequest(Agent, asked("h1.example.com", allowed)), "one that is known")
			must.Do(t, s.recordRequest(Agent, asked("other.example.com", !allowed)), "one of the other kind")
			must.Same(t, maxRecordedHosts+1, len(log()))
			want := map[bool]int{true: 1, false: maxRecordedHosts}[allowed]
			if got := s.RefusedCount(); got != want || len(s.Record.Warnings()) != 1 {
				t.Errorf("%d denied, warnings %v", got, s.Record.Warnings())
			}
		})
	}
}

// Nothing that commands choose at will makes a refusal go unrecorded.
func TestRecordsSecretRefusalsSeparately(t *testing.T) {
	s, log := recording(t)
	misused := func(target, request string) {
		t.Helper()
		must.Do(t, s.recordRequest(Agent, proxy.Request{Protocol: "https", Target: target, HostDecision: policy.HostDecision{
			Rule: credential.Rule("TOKEN"), Reason: "TOKEN is for npm.example.org/team alone.", Request: request,
		}}))
	}
	for i := range maxRecordedHosts + 1 {
		misused("npm.example.org:443", fmt.Sprintf("GET /%d/%s", i, strings.Repeat("x", 200)))
	}
	for i := range maxRecordedHosts + 1 {
		must.Do(t, s.recordRequest(Agent, asked(fmt.Sprintf("h%d.example.com", i), false)))
	}
	misused("evil.example.org:443", "PUT /")
	all := log()
	if len(all) != maxRecordedHosts+2 || all[len(all)-1].Target != "evil.example.org:443" || all[len(all)-1].Request != "PUT /" {
		t.Errorf("%d events, the last is %+v", len(all), all[len(all)-1])
	}
	if first := all[0].Request; !strings.HasPrefix(first, "GET /0/xx") || len(first) != transcript.RequestBytes {
		t.Errorf("the first request is %q", first)
	}
	for i := range maxRecordedHosts {
		misused(fmt.Sprintf("h%d.example.com:443", i), "PUT /")
	}
	must.Contain(t, fmt.Sprint(s.Record.Warnings()), "requests for secrets in more than 500 ways")
}

func TestReportsRefusalsOnce(t *testing.T) {
	s, _ := recording(t)
	take := func(by, host string, allowed bool) {
		must.Do(t, s.recordRequest(by, asked(host, allowed)))
	}
	take("setup", "setup.example.com", false)
	take(Agent, "open.example.com", true)
	must.Same(t, "", s.TakeRefusals(), "heard")
	take(Agent, "a.example.com", false)
	take(Agent, "a.example.com", false)
	if got := s.TakeRefusals(); strings.Count(got, `agent-ci refused to reach "a.example.com:443" by https. So it is.`) != 1 || strings.Contains(got, "\n") {
		t.Errorf("heard %q", got)
	}
	must.Same(t, "", s.TakeRefusals(), "heard again")
	for i := range 9 {
		take(Agent, fmt.Sprintf("h%d.example.com", i), false)
	}
	take(Agent, "a.example.com", false) // which was told before, and comes again
	if got := s.TakeRefusals(); strings.Count(got, "refused to reach") != 5 || !strings.HasSuffix(got, "\nMore requests than these were refused (5).") {
		t.Errorf("heard %q", got)
	}
}

func TestRedactsSecretsInHosts(t *testing.T) {
	s, log := recording(t, secrets.Value{Name: "TOKEN", Secret: "tops3cretvalue"})
	must.Do(t, s.recordRequest(Agent, asked("tops3cretvalue.example.com", false)))
	words := s.TakeRefusals()
	if all := words + fmt.Sprint(log()); strings.Contains(all, "tops3cret") || !strings.Contains(all, ".example.com:443") {
		t.Errorf("kept %s", all)
	}
}

// recording returns a control with a record, and a function that returns the recorded requests.
func recording(t *testing.T, known ...secrets.Value) (*Control, func() []transcript.HostRequest) {
	t.Helper()
	rec := recordtest.New(t, "", known...)
	return &Control{Record: rec}, func() []transcript.HostRequest {
		var all []transcript.HostRequest
		must.Get(rec.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
			var n transcript.HostRequest
			err := json.Unmarshal(e.Data, &n)
			all = append(all, n)
			return err
		}))(t)
		return all
	}
}

func TestNamesHostsOnce(t *testing.T) {
	network := job.Network{Allow: []job.AllowedHost{{Host: "registry.npmjs.org"}, {Preset: "npm"}, {Host: "a.example"}, {Host: "a.example"}, {Preset: "npm"}}}
	must.Same(t, "registry.npmjs.org, registry.yarnpkg.com, a.example", describeHosts(network), "the hosts")
}
