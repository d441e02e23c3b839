package egress

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// inheriting is a list whose hosts are reached by the machine's proxy.
var inheriting = job.Network{Allow: []job.AllowedHost{{Host: "a.example"}}, Proxy: job.InheritProxy}

func TestReadsMachineProxyFromEnvironment(t *testing.T) {
	s := &Control{Environ: settings.Environment{
		"HTTPS_PROXY=http://me:p%40ss@secure.example:8080", "https_proxy=http://other.example", "http_proxy=plain.example:3128",
		"NO_PROXY=direct.example, .corp.example,10.0.0.0/8,port.example:8443",
	}}
	via := must.Get(s.machineProxyFunc(inheriting))(t)
	for _, test := range []struct{ protocol, target, want string }{
		{reach.HTTPS, "a.example:443", "http://me:p%40ss@secure.example:8080"},
		{reach.HTTPS, "a.example:8443", "http://me:p%40ss@secure.example:8080"},
		{reach.HTTP, "a.example:80", "http://plain.example:3128"},
		{reach.HTTPS, "192.168.0.1:443", "http://me:p%40ss@secure.example:8080"},
		{reach.HTTPS, "[fd12::1]:443", "http://me:p%40ss@secure.example:8080"},
		{reach.HTTPS, "direct.example:443", ""},
		{reach.HTTPS, "below.direct.example:443", ""},
		{reach.HTTP, "db.corp.example:80", ""},
		{reach.HTTPS, "corp.example:443", "http://me:p%40ss@secure.example:8080"},
		{reach.HTTPS, "10.9.8.7:443", ""},
		{reach.HTTPS, "port.example:8443", ""},
		{reach.HTTPS, "port.example:443", "http://me:p%40ss@secure.example:8080"},
	} {
		target := must.Get(reach.ParseTarget(test.protocol, test.target))(t)
		got := ""
		if proxy := via(target); proxy != nil {
			got = proxy.String()
		}
		must.Same(t, test.want, got, test.protocol, test.target)
	}
	if via, err := s.machineProxyFunc(job.Network{Allow: inheriting.Allow}); via != nil || err != nil {
		t.Errorf("a list that does not want it goes by one: %v", err)
	}
}

func TestRefusesUnusableProxyBeforeRun(t *testing.T) {
	for _, test := range []struct {
		variable string
		usable   bool
	}{
		{"HTTPS_PROXY=http://proxy.example:3128", true},
		{"https_proxy=https://me:secret-word@proxy.example", true},
		{"HTTP_PROXY=proxy.example:3128", true},
		{"HTTP_PROXY=me:secret-word@proxy.example:3128", true},
		{"HTTPS_PROXY=http://[fd12::1]:3128", true},
		{"HTTPS_PROXY=socks5://me:secret-word@proxy.example:1080", false},
		{"HTTPS_PROXY=http://me:secret-wo%rd@proxy.example", false},
		{"HTTPS_PROXY=http://proxy.example:port", false},
		{"HTTP_PROXY=http://", false},
		{"HTTP_PROXY=file:///etc/passwd", false},
		{"http_proxy=http:proxy", false},
	} {
		t.Run(test.variable, func(t *testing.T) {
			s, _ := recording(t)
			s.Environ, s.Job = settings.Environment{test.variable}, new(job.Job)
			s.Job.Setup = []job.SetupStep{{}, {Network: inheriting}}
			err := s.CheckMachineProxy()
			var stop *outcome.Stop
			if test.usable != (err == nil) || err != nil && (!errors.As(err, &stop) || stop.Outcome != outcome.InvalidInput || stop.Reason != "proxy" || !strings.Contains(stop.Message, "setup[1].network")) {
				t.Errorf("settled with %v", err)
			}
			if err != nil && (strings.Contains(err.Error(), "secret-wo") || !strings.Contains(err.Error(), strings.ToUpper(test.variable[:4]))) {
				t.Errorf("the message is %v", err)
			}
			o := s.proxyOptions(Commands{Key: "setup[1].network", Network: inheriting, Name: "setup"}, nil)
			target := reach.Target{Protocol: reach.HTTPS, Name: "a.example", Port: 443}
			must.Same(t, test.usable, o.Hosts.Decide(target).Allowed, "what is listed is let through")
			must.None(t, s.Record.Warnings(), "warned")
		})
	}
}

func TestWarnsOfMissingProxy(t *testing.T) {
	s, _ := recording(t)
	s.Environ, s.Job = settings.Environment{"ALL_PROXY=http://all.example:1", "HTTPS_PROXY=", "NO_PROXY=*"}, new(job.Job)
	if err := s.CheckMachineProxy(); err != nil || len(s.Record.Warnings()) > 0 {
		t.Errorf("where no list wants a proxy: %v, warnings %v", err, s.Record.Warnings())
	}
	s.Job.Policy.Network = inheriting
	must.Do(t, s.CheckMachineProxy())
	if w := s.Record.Warnings(); len(w) != 1 || w[0].Code != "no_proxy" || !strings.Contains(w[0].Message, "policy.network.proxy is inherit, and neither HTTPS_PROXY nor HTTP_PROXY is set") {
		t.Errorf("warnings %v", w)
	}
	via, err := s.machineProxyFunc(inheriting)
	if err != nil || via(reach.Target{Protocol: reach.HTTPS, Name: "a.example", Port: 443}) != nil {
		t.Errorf("it goes by a proxy, %v", err)
	}
}

func TestRecordsRequestsThroughMachineProxy(t *testing.T) {
	s, log := recording(t)
	by := asked("a.example", true)
	by.Via = "proxy.example:3128"
	for range 2 {
		must.Do(t, s.recordRequest(Agent, by))
	}
	for _, address := range []string{"93.184.216.34:443", "[2606:2800::1]:443"} {
		by.Target = address
		must.Do(t, s.recordRequest(Agent, by))
	}
	got := log()
	if len(got) != 3 || got[0].Via != "proxy.example:3128" || !strings.HasSuffix(got[0].Reason, "so that its address was not checked.") {
		t.Fatalf("recorded %+v", got)
	}
	for _, address := range got[1:] { // which are checked
		if address.Via != "proxy.example:3128" || !strings.HasSuffix(address.Reason, " A proxy of the machine connects to it.") {
			t.Errorf("recorded %+v", address)
		}
	}
}

func TestUnknownProxyReachesNothing(t *testing.T) {
	fails := func(*url.URL) (*url.URL, error) { return nil, errors.New("no proxy can be told") }
	via := proxyForTarget(fails)(reach.Target{Protocol: reach.HTTP, Name: "a.example", Port: 80})
	if via == nil {
		t.Fatal("it is dialled without a proxy")
	}
	must.Fail(t, "", must.Err(net.Dial("tcp", via.Host)), "somebody listens there")
}
