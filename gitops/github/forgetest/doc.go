// Package forgetest serves repositories, issues and pull requests as GitHub
// does, for tests: the REST and GraphQL calls that agent-ci makes, and real git
// over smart HTTP on the same loopback server. It owns a state that requests
// change and tests read. It knows nothing of agent-ci.
//
// What it answers fits GitHub's published description of its REST API; where
// that is silent (which request is refused, and in which words), it follows
// what github.com does.
package forgetest
