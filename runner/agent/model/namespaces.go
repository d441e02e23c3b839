package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// namespaceType is the type of a group of tools.
const namespaceType = "namespace"

// FunctionsNamespace is the group of all tools without another group, for tools in the input.
const FunctionsNamespace = "functions"

// namespace is a group of tools.
type namespace struct {
	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Tools       []json.RawMessage `json:"tools"`
}

// Namespace is the definition of a group of tools.
func Namespace(name, description string, tools []json.RawMessage) (json.RawMessage, error) {
	return Encode(namespace{namespaceType, name, description, tools})
}

// flat are definitions with the tools of namespaces by themselves, in their place.
func flat(definitions []json.RawMessage) ([]json.RawMessage, error) {
	all := make([]json.RawMessage, 0, len(definitions))
	for _, definition := range definitions {
		var group namespace
		if err := json.Unmarshal(definition, &group); err != nil {
			return nil, fmt.Errorf("read tool definition: %w", err)
		}
		if group.Type == namespaceType {
			all = append(all, group.Tools...)
		} else {
			all = append(all, definition)
		}
	}
	return all, nil
}

// Grouped says whether there is a namespace among definitions.
func Grouped(definitions []json.RawMessage) bool {
	return slices.ContainsFunc(definitions, func(definition json.RawMessage) bool {
		var is struct{ Type string }
		return json.Unmarshal(definition, &is) == nil && is.Type == namespaceType
	})
}

// notGrouped matches refusals of namespaces. Endpoints name the unknown field or its place.
var notGrouped = lazyregexp.New(`(?i)namespace|\btools?(?:\[\d+\]|\.\d+)\.(?:type|tools|function)\b|` +
	`(?:unknown|invalid|unsupported|unexpected|unrecognized)\b.{0,10}\btool\b.{0,10}\btype\b`)

// toolless is how endpoints refuse tools altogether, for a model or for all.
var toolless = lazyregexp.New(`(?i)(?:not|n't) support (?:the use of )?(?:tools?|tool use|tool call(?:s|ing)|functions?|function call(?:s|ing))\b|found that support tool use|` +
	`\btools? (?:use|call(?:s|ing)|choice|param)\b.{0,20}\b(?:not supported|requires?|not enabled)\b|\btools['"]?.{0,20}\b(?:not (?:supported|allowed|permitted)|unsupported)\b|` +
	`(?:unknown|unrecognized|unsupported|unexpected) (?:parameter|field|property|argument|name)\W{1,4}tools\b`)

// RefusesTools reports whether an endpoint takes no tools.
func (f *Failure) RefusesTools() bool {
	return (f.Kind == InvalidRequest || f.Kind == NotFound || f.Kind == ServerError) && f.Status >= http.StatusBadRequest && toolless().MatchString(f.Message)
}

// RefusesNamespaces reports whether an endpoint takes no namespaces among tools.
func (f *Failure) RefusesNamespaces() bool {
	return f.Kind == InvalidRequest && (f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity) && notGrouped().MatchString(f.Message)
}
