package egress

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/proxy"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// ServeHosts returns a function that starts the proxy of commands. The proxy allows the listed
// hosts and those of secrets. The returned function stops it.
func (c *Control) ServeHosts(commands Commands) func(net.Listener) func() {
	return func(l net.Listener) func() {
		served := proxy.Start(l, c.proxyOptions(commands, c.credentialsOf(commands)))
		return func() {
			served.Close()
			c.recordFinalUses(commands.Name)
		}
	}
}

// proxyOptions returns the options of the commands' proxy. A wrong list or machine proxy was reported
// before the run; if one remains, the proxy allows nothing.
func (c *Control) proxyOptions(commands Commands, credentials credential.Set) proxy.Options {
	list, err := commands.Network.ReachList()
	via, errVia := c.machineProxyFunc(commands.Network)
	if err != nil || errVia != nil {
		list, credentials = nil, nil
	}
	return proxy.Options{
		Hosts:   policy.Hosts{List: list, Key: commands.Key, Rules: c.Rules, Credentials: credentials},
		Observe: func(asked proxy.Request) error { return c.recordRequest(commands.Name, asked) },
		Via:     via,
		Roots:   c.Authorities.RootsFor(slices.Concat(commands.Network.Allow, hostsOfSecrets(c.secretsOf(commands)))),

		Authority: c.setup.authority,
		Used:      func(name string, to reach.Target) error { return c.countUse(commands.Name, name, to) },
	}
}

// describeHosts returns the distinct hosts of a network, presets included.
func describeHosts(network job.Network) string {
	list, err := network.ReachList()
	if err != nil {
		return "none"
	}
	var hosts []string
	for _, e := range list {
		if host := e.Host(); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return strings.Join(hosts, ", ")
}

// maxRecordedHosts bounds how many different requests are recorded of each kind.
const maxRecordedHosts = 500

// requestKind is a kind of recorded requests. Each kind is counted separately.
type requestKind struct {
	allowed   bool
	forSecret bool // refused for a secret
}

// hosts records which hosts commands asked for. The zero value is ready to use.
type hosts struct {
	mu         sync.Mutex
	seen       map[transcript.HostRequest]bool // the recorded events, without their Request
	counts     map[requestKind]int             // how many of each kind are recorded
	unreported []string                        // refusals that the model was not shown yet
	omitted    int                             // refusals beyond the bound of unreported
	refused    int                             // refusals that are recorded
}

// recordRequest records a request to a host if it is new, before the request takes effect. It also queues
// refusals for the model. The proxy refuses the request if recordRequest returns an error.
func (c *Control) recordRequest(by string, asked proxy.Request) error {
	asked.Request = clip.Bytes(c.Record.Redact(asked.Request), transcript.RequestBytes-len(clip.Mark))
	event := c.hostEvent(by, asked)
	h := &c.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	if !asked.Allowed && by == Agent {
		h.queueRefusal(c.Record.Redact(asked.Words()))
	}
	kind := requestKind{event.Allowed, !event.Allowed && strings.HasPrefix(event.Rule, transcript.SecretRule)}
	switch {
	case h.seen[event]:
		return nil
	case h.counts[kind] == maxRecordedHosts:
		return c.handleUnrecordable(kind)
	}
	h.count(event, kind)
	event.Request = asked.Request // the event of all equal requests shows the first one
	return c.Record.Append(event)
}

// hostEvent returns the event of a request, without its Request. It redacts texts that commands chose.
func (c *Control) hostEvent(by string, asked proxy.Request) transcript.HostRequest {
	event := transcript.HostRequest{
		Sandbox: by, Target: c.Record.Redact(asked.Target), Protocol: asked.Protocol, Allowed: asked.Allowed,
		Rule: asked.Rule, Reason: c.Record.Redact(asked.Reason), Remedy: asked.JobChange, Via: c.Record.Redact(asked.Via),
	}
	if event.Via != "" {
		event.Reason += proxyRemark(asked)
	}
	return event
}

// count counts a new event. The caller holds the lock.
func (h *hosts) count(event transcript.HostRequest, kind requestKind) {
	if h.seen == nil {
		h.seen, h.counts = make(map[transcript.HostRequest]bool), make(map[requestKind]int)
	}
	h.seen[event] = true
	h.counts[kind]++
	if !event.Allowed {
		h.refused++
	}
}

// proxyRemark returns a remark on a request that goes through the machine's proxy.
func proxyRemark(asked proxy.Request) string {
	if t, err := reach.ParseTarget(asked.Protocol, asked.Target); err == nil && t.Addr.IsValid() {
		return " A proxy of the machine connects to it."
	}
	return " A proxy of the machine connects to it and looks its name up, so that its address was not checked."
}

// handleUnrecordable warns that the record has too many hosts of a kind. It returns an error for an allowed
// host, which refuses the request. Refusals are only left out of the record.
func (c *Control) handleUnrecordable(kind requestKind) error {
	switch {
	case kind.allowed:
		c.Record.Warn("many_hosts", "Commands asked for more than %d allowed hosts; further ones were refused.", maxRecordedHosts)
		return errTooManyHosts
	case kind.forSecret:
		c.Record.Warn("many_hosts", "Commands were refused requests for secrets in more than %d ways (host, secret and reason); the transcript has the first of them.", maxRecordedHosts)
	default:
		c.Record.Warn("many_hosts", "Commands asked for more than %d hosts that are refused; the transcript has the first of them.", maxRecordedHosts)
	}
	return nil
}

// errTooManyHosts refuses a request because too many are recorded.
var errTooManyHosts = errors.New("more hosts than the transcript takes")

// queueRefusal keeps a refusal for the model, if it is new and there are not too many.
func (h *hosts) queueRefusal(words string) {
	const most = 5
	switch {
	case slices.Contains(h.unreported, words): // queued already
	case len(h.unreported) == most:
		h.omitted++
	default:
		h.unreported = append(h.unreported, words)
	}
}

// RefusedCount returns how many refused requests are recorded.
func (c *Control) RefusedCount() int {
	c.hosts.mu.Lock()
	defer c.hosts.mu.Unlock()
	return c.hosts.refused
}

// TakeRefusals returns the refusals since its last call for the model: few programs show a proxy's answer.
func (c *Control) TakeRefusals() string {
	h := &c.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	words := strings.Join(h.unreported, "\n")
	if h.omitted > 0 {
		words += fmt.Sprintf("\nMore requests than these were refused (%d).", h.omitted)
	}
	h.unreported, h.omitted = nil, 0
	return words
}
