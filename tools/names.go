package tools

import (
	"slices"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// agentNamespaces lists the namespaces of tools that lead agents.
var agentNamespaces = []string{"multi_agent_v1", "collaboration"}

// QualifiedName returns the name of a namespaced tool. The wait for agents differs from that for scripts.
func QualifiedName(namespace, name string) string {
	if name == dialect.Wait && slices.Contains(agentNamespaces, namespace) {
		return dialect.WaitAgent
	}
	return name
}

// NamesTool reports whether a name, possibly another agent's, stands for a tool.
func NamesTool(name, tool string) bool {
	return name == tool || slices.Contains(dialect.Called(withoutNamespace(name)), tool)
}

// OwnToolNamed returns the own tool that a name stands for, also as an alias. "" means that a foreign tool
// may have it.
func OwnToolNamed(name string) string {
	name = withoutNamespace(name)
	if dialect.Known(name) {
		return name
	}
	for _, tool := range dialect.Called(name) {
		return tool
	}
	return ""
}
