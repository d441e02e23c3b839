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
	Name        string // for messages
	Value       string
	Placeholder string // what commands get instead of Value; as long as Value
	Scopes      []Scope
	// Header is the header that carries the credential: alone or after a scheme ("Bearer "). In
	// Authorization, the credential may also be the user or password of the scheme Basic (RFC 7617).
	Header    string
	Parameter string   // the query parameter that carries the credential, instead of Header
	Methods   []string // the permitted HTTP methods
	// Fetch permits git fetch from the repositories in Scopes only, and ignores Methods.
	Fetch bool
	// Private permits private addresses for the hosts.
	Private bool
	// Denied denies the credential to the asking commands. A request with its placeholder is
	// refused.
	Denied bool
}

// Set contains the credentials of a run. A nil Set is empty.
type Set []Credential

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
