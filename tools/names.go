package tools

import (
	"slices"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// agentNamespaces lists the namespaces of the tools that start and lead agents.
var agentNamespaces = []string{"multi_agent_v1", "collaboration"}

// QualifiedName returns the name here of a tool in a namespace. It is the same name, except for wait: in a namespace of
// agents' tools, that is wait_agent.
func QualifiedName(namespace, name string) string {
	if name == dialect.Wait && slices.Contains(agentNamespaces, namespace) {
		return dialect.WaitAgent
	}
	return name
}

// NamesTool reports whether name is the tool's own name, or the name of its counterpart in another agent.
func NamesTool(name, tool string) bool {
	return name == tool || slices.Contains(dialect.NamesByAlias(withoutNamespace(name)), tool)
}

// OwnToolNamed returns the agent-ci tool with this name or alias, or "" if there is none.
func OwnToolNamed(name string) string {
	name = withoutNamespace(name)
	if dialect.Known(name) {
		return name
	}
	for _, tool := range dialect.NamesByAlias(name) {
		return tool
	}
	return ""
}
