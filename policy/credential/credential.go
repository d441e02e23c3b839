// Package credential owns what a secret may do on the network: in which requests the
// proxy puts its value in place of the placeholder that commands have, where a
// placeholder is that has no business there, and where an answer tells the value. It
// refuses to know connections, TLS, and the files of clients.
package credential

import (
	"slices"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// Credential is a secret with all that it is for.
type Credential struct {
	Name        string // by which people know it
	Value       string
	Placeholder string // which commands have in its place; as long as Value
	Scopes      []Scope
	// Header has it: whole, after a scheme ("Bearer "), and in Authorization also as user or password of
	// the scheme Basic (RFC 7617).
	Header    string
	Parameter string   // of the query that has it, in the place of Header
	Methods   []string // of HTTP
	// Fetch lets nothing through but what git asks for to fetch the repositories of
	// Scopes, whatever Methods are.
	Fetch bool
	// Private lets the hosts have private addresses.
	Private bool
	// Withheld is that the commands who ask are not to have it: wherever its
	// placeholder is seen, the request is refused.
	Withheld bool
}

// Set is the credentials of a run. Nil is none.
type Set []Credential

// Ends says whether TLS has to be ended to a target: whether a credential is for it that
// the commands who ask may have.
func (s Set) Ends(t reach.Target) bool {
	return slices.ContainsFunc(s, func(c Credential) bool { return !c.Withheld && c.isFor(t) })
}

func (c Credential) isFor(t reach.Target) bool {
	return t.Protocol == reach.HTTPS && slices.ContainsFunc(c.Scopes, func(scope Scope) bool { return scope.Host.Opens(t) })
}

// Hosts are those that credentials are for, names and addresses, each once.
func (s Set) Hosts() []string {
	var hosts []string
	for _, c := range s {
		for _, scope := range c.Scopes {
			if host := scope.Host.Hostname(); !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}
