package rawitem

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/policy/plainjson"
)

// NamespaceType is the type of a tool definition that is a namespace of tools.
const NamespaceType = "namespace"

// FunctionsNamespace is the namespace for tools in the input that have no other namespace.
const FunctionsNamespace = "functions"

// namespace is the definition of a namespace of tools.
type namespace struct {
	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Tools       []json.RawMessage `json:"tools"`
}

// Namespace returns the definition of a namespace with these tools.
func Namespace(name, description string, tools []json.RawMessage) (json.RawMessage, error) {
	return Encode(namespace{NamespaceType, name, description, tools})
}

// FlattenNamespaces returns the definitions with each namespace replaced by its tools.
func FlattenNamespaces(definitions []json.RawMessage) ([]json.RawMessage, error) {
	all := make([]json.RawMessage, 0, len(definitions))
	for _, definition := range definitions {
		var group namespace
		if err := plainjson.Unmarshal(definition, &group); err != nil {
			return nil, fmt.Errorf("read tool definition: %w", err)
		}
		if group.Type == NamespaceType {
			all = append(all, group.Tools...)
		} else {
			all = append(all, definition)
		}
	}
	return all, nil
}

// HasNamespace reports whether one of the definitions is a namespace.
func HasNamespace(definitions []json.RawMessage) bool {
	return slices.ContainsFunc(definitions, func(definition json.RawMessage) bool {
		var tool struct{ Type string }
		return json.Unmarshal(definition, &tool) == nil && tool.Type == NamespaceType
	})
}

// AdditionalToolsType is the type of an input item with tool definitions.
const AdditionalToolsType = "additional_tools"

// SearchOutputType is the type of the item that answers a tool_search_call.
const SearchOutputType = "tool_search_output"

// additionalTools is an input item with tool definitions.
type additionalTools struct {
	Type  string            `json:"type"`
	Role  string            `json:"role"`
	Tools []json.RawMessage `json:"tools"`
}

// AdditionalTools returns an input item with tool definitions.
func AdditionalTools(definitions []json.RawMessage) (json.RawMessage, error) {
	return Encode(additionalTools{AdditionalToolsType, "developer", definitions})
}
