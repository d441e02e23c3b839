package egress

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

// CheckMachineProxy checks the machine's proxy if the job uses it. It returns an error for an unusable address.
func (c *Control) CheckMachineProxy() error {
	key := c.machineProxyKey()
	if key == "" {
		return nil
	}
	found, err := machineProxies(c.Environ)
	if err != nil {
		return outcome.Stopf(outcome.InvalidInput, "proxy", "The hosts of %s can't be reached by the machine's proxy (proxy: inherit): %v.", key, err).Because(err)
	}
	if found.HTTPSProxy == "" && found.HTTPProxy == "" {
		c.Record.Warn("no_proxy", "%s.proxy is inherit, and neither HTTPS_PROXY nor HTTP_PROXY is set: the hosts are reached without a proxy, and their addresses are checked.", key)
	}
	return nil
}

// machineProxyKey returns the job key of the first network that uses the machine's proxy, or "".
func (c *Control) machineProxyKey() string {
	for key, network := range c.Job.Networks() {
		if network.UsesMachineProxy() {
			return key
		}
	}
	return ""
}

// DescribeMachineProxy describes the machine's proxy without user and password. It returns "" if the job
// does not use it, or if its address is unusable.
func (c *Control) DescribeMachineProxy() string {
	found, err := machineProxies(c.Environ)
	if err != nil || c.machineProxyKey() == "" {
		return ""
	}
	var words []string
	for _, proxy := range []struct{ protocol, address string }{{"https", found.HTTPSProxy}, {"http", found.HTTPProxy}} {
		if address := proxyAddress(proxy.address); address != nil {
			words = append(words, proxy.protocol+" by "+address.Host)
		}
	}
	return strings.Join(words, ", ")
}

// machineProxyFunc returns a function that chooses the machine's proxy for a target, or nil for a network without
// that proxy. An unusable address is an error, so that no request bypasses the proxy.
func (c *Control) machineProxyFunc(network job.Network) (func(reach.Target) *url.URL, error) {
	if !network.UsesMachineProxy() {
		return nil, nil
	}
	found, err := machineProxies(c.Environ)
	if err != nil {
		return nil, err
	}
	return proxyForTarget(found.ProxyFunc()), nil
}

// unreachableProxy has no listener (port 0). It stands for a proxy that can't be determined.
var unreachableProxy = &url.URL{Scheme: "http", Host: "0.0.0.0:0"}

// proxyForTarget returns a function for the proxy of a target. If choose fails, it is unreachableProxy.
func proxyForTarget(choose func(*url.URL) (*url.URL, error)) func(reach.Target) *url.URL {
	return func(t reach.Target) *url.URL {
		proxy, err := choose(&url.URL{Scheme: t.Protocol, Host: t.String()})
		if err != nil {
			return unreachableProxy
		}
		return proxy
	}
}

// machineProxies reads the proxies of agent-ci's environment. As for agent-ci's own requests,
// upper-case variables take precedence.
func machineProxies(env settings.Environment) (*httpproxy.Config, error) {
	either := func(name string) string { return cmp.Or(env.Get(name), env.Get(strings.ToLower(name))) }
	found := &httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		if address := either(name); address != "" && proxyAddress(address) == nil {
			return nil, fmt.Errorf("%s of agent-ci's environment is no address of a proxy for HTTP, such as http://proxy.example.com:3128; what a URL does not take of a password is written as %%XX", name)
		}
	}
	return found, nil
}

// proxyAddress parses an HTTP proxy's address, with or without http://. It returns nil for other texts.
func proxyAddress(address string) *url.URL {
	proxy, err := url.Parse(address)
	isHTTP := err == nil && (proxy.Scheme == "http" || proxy.Scheme == "https")
	if !isHTTP && strings.Contains(address, "://") {
		return nil
	}
	if !isHTTP {
		proxy, err = url.Parse("http://" + address)
	}
	if err != nil || proxy.Hostname() == "" {
		return nil
	}
	return proxy
}
