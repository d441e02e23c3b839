package policy

import (
	"strings"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/reach"
)

// allowForCredentials returns the decision that allows a target only for requests with credentials of the
// asking commands. ok is false if they have none for the target.
func (h Hosts) allowForCredentials(t reach.Target) (d HostDecision, ok bool) {
	names := h.Credentials.Names(t)
	if len(names) == 0 {
		return HostDecision{}, false
	}
	return HostDecision{Allowed: true, OnlyCredentials: true, Private: h.Credentials.Private(t), Rule: credential.Rule(names...), Reason: "It is the host of a secret, open for its requests."}, true
}

// withheldRemedy returns the remedy for a host with secrets that the requesting commands may not use, as
// the beginning of a sentence. It is empty for any other host.
func (h Hosts) withheldRemedy(t reach.Target) string {
	names := h.Credentials.WithheldNames(t)
	if len(names) == 0 {
		return ""
	}
	return "name these commands in commands of the secret " + strings.Join(names, " or ") + " (policy.secrets), or, to open the host without it, "
}

// privateAddressRemedy returns the remedy for a private address behind a host that a secret opened. It is
// "" unless decision comes from a secret.
func privateAddressRemedy(decision HostDecision) string {
	names, bySecret := strings.CutPrefix(decision.Rule, credential.Rule())
	if !bySecret {
		return ""
	}
	return "write private: true at the secret " + strings.ReplaceAll(names, ", ", " or ") + " (policy.secrets)"
}

// CredentialUseRefusal returns the decision on a request that misuses a credential or its placeholder.
func CredentialUseRefusal(r *credential.Refusal) HostDecision {
	d := HostDecision{Rule: r.Rule(), Reason: r.Reason, Request: r.Request, Remedy: withoutHostRemedy}
	if r.NoRemedy {
		return d
	}
	d.JobChange = "change what the job has at policy.secrets"
	d.Remedy = withoutHostRemedy + " Whoever runs agent-ci can " + d.JobChange + "."
	return d
}

// OtherTargetRefusal returns the refusal of a request inside an intercepted tunnel whose host or protocol
// differs from the tunnel's. names are the credentials of the tunnel's target.
func OtherTargetRefusal(names []string, reason string) HostDecision {
	return HostDecision{
		Rule: credential.Rule(names...), Reason: reason,
		Remedy: withoutHostRemedy + " agent-ci ends TLS to the hosts of secrets. It passes HTTP requests to the tunnel's host, including those that open a WebSocket.",
	}
}
