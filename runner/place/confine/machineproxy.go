package confine

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// SettleProxy verifies, before anything is run or asked, that the addresses of the machine's proxy
// can be used, if the job wants that proxy. It warns if the machine has none.
func (s *Sandboxes) SettleProxy() error {
	for key, network := range s.Job.Networks() {
		if !network.Inherits() {
			continue
		}
		found, err := machineProxies(s.Environ)
		switch {
		case err != nil:
			return outcome.Stopf(outcome.InvalidInput, "proxy", "The hosts of %s can't be reached by the machine's proxy (proxy: inherit): %v.", key, err).Because(err)
		case found.HTTPSProxy == "" && found.HTTPProxy == "":
			s.Record.Warn("no_proxy", "%s.proxy is inherit, and neither HTTPS_PROXY nor HTTP_PROXY is set: the hosts are reached without a proxy, and their addresses are checked.", key)
		}
		return nil // the others are reached in the same way
	}
	return nil
}

// MachineProxy describes the machine's proxy for the job's hosts, without user and password, or
// returns "".
func (s *Sandboxes) MachineProxy() string {
	for _, network := range s.Job.Networks() {
		if !network.Inherits() {
			continue
		}
		found, err := machineProxies(s.Environ)
		if err != nil {
			return ""
		}
		var words []string
		for _, of := range []struct{ protocol, address string }{{"https", found.HTTPSProxy}, {"http", found.HTTPProxy}} {
			if read := proxyAddress(of.address); read != nil {
				words = append(words, of.protocol+" by "+read.Host)
			}
		}
		return strings.Join(words, ", ")
	}
	return ""
}

// proxyChooser returns a function that chooses the machine's proxy for a target of a network, or nil if the
// network does not use it. An unusable address of a proxy is an error, so nothing bypasses it.
func (s *Sandboxes) proxyChooser(network job.Network) (func(reach.Target) *url.URL, error) {
	if !network.Inherits() {
		return nil, nil
	}
	found, err := machineProxies(s.Environ)
	if err != nil {
		return nil, err
	}
	return proxyForTarget(found.ProxyFunc()), nil
}

// unreachableProxy is a proxy without a listener, on port 0, for targets with an unknown proxy.
var unreachableProxy = &url.URL{Scheme: "http", Host: "0.0.0.0:0"}

// proxyForTarget returns the proxy for a target. A target with an unknown proxy is unreachable.
func proxyForTarget(choose func(*url.URL) (*url.URL, error)) func(reach.Target) *url.URL {
	return func(t reach.Target) *url.URL {
		proxy, err := choose(&url.URL{Scheme: t.Protocol, Host: t.String()})
		if err != nil {
			return unreachableProxy
		}
		return proxy
	}
}

// machineProxies reads the proxies in agent-ci's environment like its own requests do: upper case
// first.
func machineProxies(env settings.Environment) (*httpproxy.Config, error) {
	either := func(name string) string { return cmp.Or(env.Get(name), env.Get(strings.ToLower(name))) }
	found := &httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	for name, address := range map[string]string{"HTTP_PROXY": found.HTTPProxy, "HTTPS_PROXY": found.HTTPSProxy} {
		if address != "" && proxyAddress(address) == nil {
			return nil, fmt.Errorf("%s of agent-ci's environment is no address of a proxy for HTTP, such as http://proxy.example.com:3128; what a URL does not take of a password is written as %%XX", name)
		}
	}
	return found, nil
}

// proxyAddress parses an HTTP proxy's address, or returns nil.
func proxyAddress(address string) *url.URL {
	read, err := url.Parse(address)
	if err != nil || read.Scheme != "http" && read.Scheme != "https" {
		if strings.Contains(address, "://") {
			return nil
		}
		read, err = url.Parse("http://" + address)
	}
	if err != nil || read.Hostname() == "" {
		return nil
	}
	return read
}
