package policy

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/rules"
)

// Hosts decides which hosts commands may reach through the proxy: those in List, except the ones
// refused by a network_rule. An allowing rule adds no host, so the job file shows everything
// reachable. The zero value refuses all hosts.
type Hosts struct {
	List  reach.List
	Key   string // the job's key with the list, for messages
	Rules *rules.Set
	// Credentials opens further hosts, each for the requests of its credential only.
	Credentials credential.Set
}

// HostDecision is a decision about a target of commands.
type HostDecision struct {
	Allowed bool
	Rule    string // the deciding rule: file:line, an entry of the list, or built-in:name; "" if none matches
	Reason  string // a sentence
	// Request is the refused request, method and path, if only this request of the target was
	// refused.
	Request string
	Remedy  string // for a refusal: what to do instead, in sentences
	// JobChange is the change to the job that would allow the target, as the end of a sentence. It is
	// empty if no change would.
	JobChange string
	// Private permits private addresses for the target.
	Private bool
	// OnlyCredentials limits the target to requests of its credentials.
	OnlyCredentials bool
}

// The built-in refusals of hosts, as HostDecision.Rule names them.
const (
	ruleAddress = "built-in:local-address"
	ruleTarget  = "built-in:target"
	ruleTrace   = "built-in:trace"
)

const withoutHostRemedy = "Do without it; if there is no other way, say so in your last message instead of trying variations of the request."

// Decide decides on a target by its name. A refusing network_rule comes before the list, and the
// list before credentials.
func (h Hosts) Decide(t reach.Target) HostDecision {
	rule, hasRule := h.Rules.NetworkRule(t.Host(), t.Protocol)
	if hasRule && rule.Decision != rules.Allow {
		return refusedByRule(rule)
	}
	if entry, ok := h.List.EntryFor(t); ok {
		return HostDecision{Allowed: true, Rule: fmt.Sprintf("%s: %s", h.Key, entry), Reason: "The list has it.", Private: entry.Private()}
	}
	if d, ok := h.allowForCredentials(t); ok {
		return d
	}
	if d, isUnlistable := refuseUnlistable(t); isUnlistable {
		return d
	}
	d := HostDecision{
		Reason:    fmt.Sprintf("No rule allows it: %s in the job %s.", h.Key, h.listDescription()),
		JobChange: "add " + listEntry(t) + " to " + h.Key + ".allow",
	}
	if len(h.List) == 0 {
		d.JobChange = "write " + h.Key + ": {allow: [" + listEntry(t) + "]}"
	}
	d.JobChange = h.withheldRemedy(t) + d.JobChange
	d.Remedy = withoutHostRemedy + " Whoever runs agent-ci can " + d.JobChange + "."
	if hasRule {
		d.Reason = fmt.Sprintf("No rule allows it but the one at %s, which adds nothing to the list: %s in the job %s.", rule.At, h.Key, h.listDescription())
	}
	return d
}

// refusedByRule refuses a target because of a network_rule.
func refusedByRule(rule rules.Network) HostDecision {
	d := HostDecision{Rule: rule.At.String(), Reason: rule.Justification, Remedy: withoutHostRemedy, JobChange: "change the rule at " + rule.At.String()}
	switch {
	case d.Reason != "": // the rule has its own
	case rule.Decision == rules.Prompt:
		d.Reason = "The rule asks for a person's approval, and there is nobody to ask"
	default:
		d.Reason = "The rule refuses this host"
	}
	if !strings.HasSuffix(d.Reason, ".") {
		d.Reason += "."
	}
	return d
}

// listDescription describes the job's list for a message, in about 400 bytes. The list is empty if
// only secrets open hosts.
func (h Hosts) listDescription() string {
	if len(h.List) == 0 {
		return "lists no hosts"
	}
	const maxLength = 400
	list := h.List.String()
	if len(list) > maxLength {
		list = list[:strings.LastIndexByte(list[:maxLength], ',')] + ", …"
	}
	return "has " + list
}

// refuseUnlistable refuses targets that no list can open, such as local addresses. isUnlistable is false
// for any other target.
func refuseUnlistable(t reach.Target) (d HostDecision, isUnlistable bool) {
	description := reach.UnlistableName(t.Name)
	if t.Addr.IsValid() && !reach.IsPrivate(t.Addr) {
		description = reach.DescribeNonPublic(t.Addr)
	}
	d = HostDecision{Rule: ruleAddress, Reason: fmt.Sprintf("It is %s, which no list of hosts opens.", description), Remedy: withoutHostRemedy + ownServersHint}
	return d, description != ""
}

// listEntry returns the list entry for a target, in YAML.
func listEntry(t reach.Target) string {
	if reach.IsPrivate(t.Addr) {
		return privateEntry(t)
	}
	return t.Entry()
}

// privateEntry returns the list entry, in YAML, that permits private addresses for a target.
func privateEntry(t reach.Target) string {
	host := t.Entry()
	if strings.ContainsAny(host, "[]:") {
		host = strconv.Quote(host) // YAML gives these characters a meaning
	}
	return fmt.Sprintf("{host: %s, private: true}", host)
}

const ownServersHint = " Servers that commands start themselves are reached without the proxy, at 127.0.0.1."

// ThisMachineReason describes an address of this machine in a reason.
const ThisMachineReason = "one of this machine"

// LocalAddressRefusal returns the refusal of a target because of its address, although decision allows its
// name. description describes the address. isPrivate means that the address is merely private: the remedy
// then names the entry or secret to change.
func LocalAddressRefusal(t reach.Target, decision HostDecision, description string, isPrivate bool) HostDecision {
	d := HostDecision{
		Rule: ruleAddress, Reason: fmt.Sprintf("Its address is %s, which no list of hosts opens.", description),
		Remedy: withoutHostRemedy + ownServersHint,
	}
	switch {
	case isPrivate:
		d.Reason = fmt.Sprintf("Its address is %s, which is open only where the job says so of the host.", description)
		d.JobChange = cmp.Or(privateAddressRemedy(decision), "write "+privateEntry(t)+" in the list")
		d.Remedy = withoutHostRemedy + " Whoever runs agent-ci can " + d.JobChange + "."
	case description == ThisMachineReason:
		d.Remedy = withoutHostRemedy + " Whoever runs agent-ci can give commands what runs on this machine as a service of the job (services)."
	}
	return d
}

// UnreadableTargetRefusal returns the refusal of a request with an invalid target. problem completes the
// sentence "The request's target …".
func UnreadableTargetRefusal(problem string) HostDecision {
	return HostDecision{
		Rule: ruleTarget, Reason: fmt.Sprintf("The request's target %s.", problem),
		Remedy: "Ask for https by CONNECT host:port, and for http by the whole address: GET http://host/path. Most programs do so when HTTPS_PROXY and HTTP_PROXY are set.",
	}
}

// TraceViaProxyRefusal returns the refusal of TRACE behind another proxy: that proxy could echo credentials
// to the command.
func TraceViaProxyRefusal() HostDecision {
	return HostDecision{
		Rule: ruleTrace, Reason: "TRACE makes a server repeat the request, and the machine's proxy gets data that commands must not see.",
		Remedy: "Use another method.",
	}
}
