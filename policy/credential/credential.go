// Package credential owns the use of secrets on the network. It replaces placeholders by values in
// permitted requests, refuses misplaced placeholders, and replaces values by placeholders in
// answers. It knows neither connections nor TLS, and no files of clients.
package credential

import (
	"slices"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// Credential is a secret with its permitted use.
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
	// Fetch permits git fetch from the repositories in Scopes only, and ignores Methods.
	Fetch bool
	// Private lets the hosts have private addresses.
	Private bool
	// Denied denies the credential to the asking commands. A request with its placeholder is
	// refused.
	Denied bool
}

// Set is the credentials of a run. Nil is none.
type Set []Credential

// TerminatesTLS reports whether the proxy must terminate TLS to a target, for a credential available to the
// asking commands.
func (s Set) TerminatesTLS(t reach.Target) bool {
	return slices.ContainsFunc(s, func(c Credential) bool { return !c.Denied && c.isForTarget(t) })
}

func (c Credential) isForTarget(t reach.Target) bool {
	return t.Protocol == reach.HTTPS && slices.ContainsFunc(c.Scopes, func(scope Scope) bool { return scope.Host.Allows(t) })
}

// Hosts returns the host names and addresses of all credentials, without duplicates.
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
