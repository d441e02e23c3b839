package tools

import (
	"slices"

	"github.com/agent-ci/agent-ci/tools/dialect"
)

// ofAgents are the namespaces of tools by which a model leads other agents.
var ofAgents = []string{"multi_agent_v1", "collaboration"}

// Named is the name by which a call of a tool in a namespace is answered. The wait of one that
// leads agents is not that for a script.
func Named(namespace, name string) string {
	if name == dialect.Wait && slices.Contains(ofAgents, namespace) {
		return dialect.WaitAgent
	}
	return name
}

// Means says whether a name, which may be one that other agents give to a tool, is that of a tool.
func Means(name, tool string) bool {
	return name == tool || slices.Contains(dialect.Called(ownName(name)), tool)
}

// Taken says what a name stands for already: a tool of agent-ci, by its own name or by one
// that other agents give it. It is empty for a name that a tool from outside may have.
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
