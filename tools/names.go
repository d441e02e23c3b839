package tools

import (
	"slices"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// agentNamespaces lists the namespaces of the tools that start and lead agents.
var agentNamespaces = []string{"multi_agent_v1", "collaboration"}

// QualifiedName returns the tool's name here for a name in a namespace. wait is another tool in an agents' namespace than
// outside.
func QualifiedName(namespace, name string) string {
	if name == dialect.Wait && slices.Contains(agentNamespaces, namespace) {
		return dialect.WaitAgent
	}
	return name
}

// NamesTool reports whether name is the tool's own name, or its name in another agent.
func NamesTool(name, tool string) bool {
	return name == tool || slices.Contains(dialect.Called(withoutNamespace(name)), tool)
}

// OwnToolNamed returns the agent-ci tool that a name or alias stands for. "" means that an external tool may have the name.
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
