package policy

import (
	"strings"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// openForCredentials opens a target for what credentials are for.
func (h Hosts) openForCredentials(t reach.Target) (HostDecision, bool) {
	names := h.Credentials.Names(t)
	if len(names) == 0 {
		return HostDecision{}, false
	}
	return HostDecision{Allowed: true, Bound: true, Private: h.Credentials.Private(t), Rule: credential.Rule(names...), Reason: "It is the host of a secret, open for its requests."}, true
}

// withheldFrom is what to do to have a target let through that is the host of secrets
// which these commands don't have; empty where it is none.
func (h Hosts) withheldFrom(t reach.Target) string {
	names := h.Credentials.WithheldFor(t)
	if len(names) == 0 {
		return ""
	}
	return "name these commands in commands of the secret " + strings.Join(names, " or ") + " (policy.secrets), or, to open the host without it, "
}

// privateOfSecret is what to do to have a target let through that is open as the host of
// secrets and has a private address; empty where it is open otherwise.
func privateOfSecret(by HostDecision) string {
	names, is := strings.CutPrefix(by.Rule, credential.Rule())
	if !is {
		return ""
	}
	return "write private: true at the secret " + strings.ReplaceAll(names, ", ", " or ") + " (policy.secrets)"
}

// NotForCredential is the refusal of a request that a credential, or its placeholder, is
// not for.
func NotForCredential(r *credential.Refusal) HostDecision {
	d := HostDecision{Rule: r.Rule(), Reason: r.Reason, Request: r.Request, Remedy: doWithout}
	if r.Never {
		return d
	}
	d.Opens = "change what the job has at policy.secrets"
	d.Remedy = doWithout + " Whoever runs agent-ci can " + d.Opens + "."
	return d
}

// NotTheTarget is the refusal of a request inside a tunnel whose TLS is ended for a
// secret: what it says about where it goes, or how, is not what the tunnel is for.
func NotTheTarget(names []string, reason string) HostDecision {
	return HostDecision{
		Rule: credential.Rule(names...), Reason: reason,
		Remedy: doWithout + " agent-ci ends TLS to the hosts of secrets. It passes HTTP requests to the tunnel's host, including those that open a WebSocket.",
	}
}
