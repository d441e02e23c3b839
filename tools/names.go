package tools

import (
	"slices"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// ofAgents lists the namespaces of tools that lead agents.
var ofAgents = []string{"multi_agent_v1", "collaboration"}

// Named returns the name of a namespaced tool. The wait for agents differs from that for scripts.
func Named(namespace, name string) string {
	if name == dialect.Wait && slices.Contains(ofAgents, namespace) {
		return dialect.WaitAgent
	}
	return name
}

// Means reports whether a name, possibly another agent's, stands for a tool.
func Means(name, tool string) bool {
	return name == tool || slices.Contains(dialect.Called(ownName(name)), tool)
}

// Taken returns the own tool that a name stands for, also as an alias. "" means that a foreign tool
// may have it.
func Taken(name string) string {
	name = ownName(name)
	if dialect.Known(name) {
		return name
	}
	for _, tool := range dialect.Called(name) {
		return tool
	}
	return ""
}
