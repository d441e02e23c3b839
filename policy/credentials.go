package policy

import (
	"strings"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// openForCredentials allows a target with available credentials, for their requests alone.
func (h Hosts) openForCredentials(t reach.Target) (HostDecision, bool) {
	names := h.Credentials.Names(t)
	if len(names) == 0 {
		return HostDecision{}, false
	}
	return HostDecision{Allowed: true, Bound: true, Private: h.Credentials.Private(t), Rule: credential.Rule(names...), Reason: "It is the host of a secret, open for its requests."}, true
}

// withheldFrom returns the remedy for a host whose secrets are withheld from the asking commands,
// as the beginning of a sentence. It is empty for any other host.
func (h Hosts) withheldFrom(t reach.Target) string {
	names := h.Credentials.WithheldFor(t)
	if len(names) == 0 {
		return ""
	}
	return "name these commands in commands of the secret " + strings.Join(names, " or ") + " (policy.secrets), or, to open the host without it, "
}

// privateOfSecret returns the remedy for a private address behind a host that a secret opened. It
// is empty unless by decided for a secret.
func privateOfSecret(by HostDecision) string {
	names, is := strings.CutPrefix(by.Rule, credential.Rule())
	if !is {
		return ""
	}
	return "write private: true at the secret " + strings.ReplaceAll(names, ", ", " or ") + " (policy.secrets)"
}

// NotForCredential converts a refused use of a credential or its placeholder to a decision.
func NotForCredential(r *credential.Refusal) HostDecision {
	d := HostDecision{Rule: r.Rule(), Reason: r.Reason, Request: r.Request, Remedy: doWithout}
	if r.Never {
		return d
	}
	d.Opens = "change what the job has at policy.secrets"
	d.Remedy = doWithout + " Whoever runs agent-ci can " + d.Opens + "."
	return d
}

// NotTheTarget refuses a request inside an intercepted tunnel whose host or protocol differs from
// the tunnel's.
func NotTheTarget(names []string, reason string) HostDecision {
	return HostDecision{
		Rule: credential.Rule(names...), Reason: reason,
		Remedy: doWithout + " agent-ci ends TLS to the hosts of secrets. It passes HTTP requests to the tunnel's host, including those that open a WebSocket.",
	}
}
