package confine

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

// serveHosts returns a function that starts the proxy of a place's commands. The proxy allows the
// listed hosts and those of secrets. The returned function stops it.
func (s *Sandboxes) serveHosts(p Place) func(net.Listener) func() {
	return func(l net.Listener) func() {
		served := proxy.Start(l, s.proxyOptions(p, s.credentialsAt(p)))
		return func() {
			served.Close()
			s.recordUses(p.Scratch)
		}
	}
}

// proxyOptions returns the options of a place's proxy. A wrong list or machine proxy was reported
// before the run; if one remains, the proxy allows nothing.
func (s *Sandboxes) proxyOptions(p Place, own credential.Set) proxy.Options {
	list, err := p.Network.List()
	via, errVia := s.proxyChooser(p.Network)
	if err != nil || errVia != nil {
		list, own = nil, nil
	}
	return proxy.Options{
		Decide:  policy.Hosts{List: list, Key: p.Key, Rules: s.Rules, Credentials: own}.Decide,
		Observe: func(asked proxy.Request) error { return s.noteHost(p.Scratch, asked) },
		Via:     via,
		Roots:   s.Authorities.Roots(slices.Concat(p.Network.Allow, entriesOf(s.secretsAt(p)))),

		Credentials: own, Authority: s.secretsSetup.authority,
		Used: func(name string, to reach.Target) error { return s.noteUse(p.Scratch, name, to) },
	}
}

// describeHosts returns the distinct hosts of a network, presets included.
func describeHosts(network job.Network) string {
	list, err := network.List()
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
type requestKind int

const (
	allowedHost requestKind = iota
	refusedHost
	refusedForSecret
)

func requestKindOf(asked transcript.Network) requestKind {
	switch {
	case asked.Allowed:
		return allowedHost
	case strings.HasPrefix(asked.Rule, transcript.SecretRule):
		return refusedForSecret
	}
	return refusedHost
}

// hosts records which hosts commands asked for. The zero value is ready to use.
type hosts struct {
	mu         sync.Mutex
	seen       map[transcript.Network]bool // the recorded events, without their Request
	counts     map[requestKind]int         // how many of each kind are recorded
	unreported []string                    // refusals that the model was not shown yet
	omitted    int                         // refusals beyond the bound of unreported
}

// noteHost records a request if it is new, before the request takes effect.
func (s *Sandboxes) noteHost(by string, asked proxy.Request) error {
	asked.Request = clip.Bytes(s.Record.Redact(asked.Request), transcript.RequestBytes-len(clip.Mark))
	event := transcript.Network{
		By: by, Target: s.Record.Redact(asked.Target), Protocol: asked.Protocol, Allowed: asked.Allowed,
		Rule: asked.Rule, Reason: s.Record.Redact(asked.Reason), Remedy: asked.JobChange, Via: s.Record.Redact(asked.Via),
	}
	if event.Via != "" {
		event.Reason += proxyRemark(asked)
	}
	h := &s.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	if !asked.Allowed && by == AgentScratch {
		h.queueRefusal(s.Record.Redact(asked.Words()))
	}
	kind := requestKindOf(event)
	switch {
	case h.seen[event]:
		return nil
	case h.counts[kind] == maxRecordedHosts:
		return s.tooManyHosts(kind)
	case h.seen == nil:
		h.seen, h.counts = make(map[transcript.Network]bool), make(map[requestKind]int)
	}
	h.seen[event] = true
	h.counts[kind]++
	if !asked.Allowed {
		s.deniedCount.Add(1)
	}
	event.Request = asked.Request // the event of all equal requests shows the first one
	return s.Record.Append(transcript.TypeNetwork, event)
}

// proxyRemark returns a remark on a request that goes through the machine's proxy.
func proxyRemark(asked proxy.Request) string {
	if t, err := reach.ParseTarget(asked.Protocol, asked.Target); err == nil && t.Addr.IsValid() {
		return " A proxy of the machine connects to it."
	}
	return " A proxy of the machine connects to it and looks its name up, so that its address was not checked."
}

// tooManyHosts handles a request that can't be recorded any more. It returns an error for an
// allowed host, so the request is refused. Further refusals are only left out.
func (s *Sandboxes) tooManyHosts(kind requestKind) error {
	switch kind {
	case refusedHost:
		s.Record.Warn("many_hosts", "Commands asked for more than %d hosts that are refused; the transcript has the first of them.", maxRecordedHosts)
		return nil
	case refusedForSecret:
		s.Record.Warn("many_hosts", "Commands were refused requests for secrets in more than %d ways (host, secret and reason); the transcript has the first of them.", maxRecordedHosts)
		return nil
	}
	s.Record.Warn("many_hosts", "Commands asked for more than %d allowed hosts; further ones were refused.", maxRecordedHosts)
	return errTooManyHosts
}

// errTooManyHosts refuses a request because too many are recorded.
var errTooManyHosts = errors.New("more hosts than the transcript takes")

// queueRefusal keeps a refusal for the model, if it is new and there are not too many.
func (h *hosts) queueRefusal(words string) {
	const most = 5
	switch {
	case slices.Contains(h.unreported, words):
	case len(h.unreported) == most:
		h.omitted++
	default:
		h.unreported = append(h.unreported, words)
	}
}

// RefusedHosts returns the refusals since its last call, for the model. Few programs show a proxy's
// answer.
func (s *Sandboxes) RefusedHosts() string {
	h := &s.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	words := strings.Join(h.unreported, "\n")
	if h.omitted > 0 {
		words += fmt.Sprintf("\nMore requests than these were refused (%d).", h.omitted)
	}
	h.unreported, h.omitted = nil, 0
	return words
}
