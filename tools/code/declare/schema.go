package declare

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// typeWriter converts one schema to a TypeScript type.
type typeWriter struct {
	root         any      // the whole schema, for references
	withComments bool     // write the descriptions of properties
	types        int      // number of types returned so far
	following    []string // references being followed, to detect cycles
}

// unknown is the TypeScript type of any value.
const unknown = "unknown"

// typeOf returns the TypeScript type of a schema. Lines after the first are indented by indent levels. depth is the
// number of enclosing schemas.
func (w *typeWriter) typeOf(schema any, indent, depth int) string {
	w.types++
	node, isObject := schema.(map[string]any)
	if !isObject || depth > deepest || w.types > maxTypes {
		return unknown
	}
	if reference, isText := node["$ref"].(string); isText {
		return w.referredType(reference, indent, depth)
	}
	if value, exists := node["const"]; exists {
		return literals([]any{value})
	}
	if values, _ := node["enum"].([]any); len(values) > 0 {
		return literals(values)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if options, _ := node[keyword].([]any); len(options) > 0 {
			return w.joinTypes(options, " | ", indent, depth)
		}
	}
	if parts, _ := node["allOf"].([]any); len(parts) > 0 {
		return w.intersection(node, parts, indent, depth)
	}
	switch kind := node["type"].(type) {
	case string:
		return nullable(node, w.typeOfKind(kind, node, indent, depth))
	case []any:
		return w.unionOfKinds(kind, node, indent, depth)
	}
	switch {
	case node["properties"] != nil:
		return w.objectType(node, indent, depth)
	case node["items"] != nil || node["prefixItems"] != nil:
		return w.arrayType(node, indent, depth)
	}
	return unknown
}

// intersection returns the type of values that match the properties of a schema and all schemas in its allOf, which are
// parts.
func (w *typeWriter) intersection(node map[string]any, parts []any, indent, depth int) string {
	if node["properties"] != nil {
		rest := maps.Clone(node)
		delete(rest, "allOf")
		parts = append([]any{rest}, parts...)
	}
	return w.joinTypes(parts, " & ", indent, depth)
}

// referredType returns the type of a referenced schema. It returns unknown for a cycle or a missing schema.
func (w *typeWriter) referredType(reference string, indent, depth int) string {
	if slices.Contains(w.following, reference) {
		return unknown
	}
	at, exists := schema.ResolveReference(w.root, reference)
	if !exists {
		return unknown
	}
	w.following = append(w.following, reference)
	defer func() { w.following = w.following[:len(w.following)-1] }()
	return w.typeOf(at, indent, depth+1)
}

// joinTypes returns the types of several schemas without duplicates, joined by sign: " | " or " & ".
func (w *typeWriter) joinTypes(schemas []any, sign string, indent, depth int) string {
	isUnion := sign == " | "
	var all []string
	for _, schema := range schemas {
		text := w.typeOf(schema, indent, depth+1)
		if isUnion && text == unknown {
			return unknown
		}
		if !isUnion && strings.Contains(text, " | ") {
			text = "(" + text + ")"
		}
		if text != unknown && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return unknown
	}
	return strings.Join(all, sign)
}

// unionOfKinds returns the union of several JSON types of a schema.
func (w *typeWriter) unionOfKinds(kinds []any, node map[string]any, indent, depth int) string {
	var all []string
	for _, kind := range kinds {
		name, _ := kind.(string)
		if text := w.typeOfKind(name, node, indent, depth); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) == 0 || slices.Contains(all, unknown) {
		return unknown
	}
	return strings.Join(all, " | ")
}

// typeOfKind returns the TypeScript type of a schema with the JSON type called name.
func (w *typeWriter) typeOfKind(name string, node map[string]any, indent, depth int) string {
	switch name {
	case "string", "number", "boolean", "null":
		return name
	case "integer":
		return "number"
	case "array":
		return w.arrayType(node, indent, depth)
	case "object":
		return w.objectType(node, indent, depth)
	}
	return unknown
}

// nullable returns a schema's type, with null added if the schema says so.
func nullable(node map[string]any, text string) string {
	if node["nullable"] == true && text != unknown {
		return text + " | null"
	}
	return text
}

// arrayType returns the type of a list, or of a tuple if the schema has prefixItems.
func (w *typeWriter) arrayType(node map[string]any, indent, depth int) string {
	if tuple, _ := node["prefixItems"].([]any); len(tuple) > 0 {
		all := make([]string, len(tuple))
		for i, item := range tuple {
			all[i] = w.typeOf(item, indent, depth+1)
		}
		if node["items"] != false {
			all = append(all, "...unknown[]")
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	items := unknown
	if node["items"] != nil {
		items = w.typeOf(node["items"], indent, depth+1)
	}
	if strings.Contains(items, " | ") || strings.Contains(items, " & ") {
		return "Array<" + items + ">"
	}
	return items + "[]"
}

// objectType returns the type of an object: its properties sorted by name, followed by an index signature if other
// properties are allowed.
func (w *typeWriter) objectType(node map[string]any, indent, depth int) string {
	properties, _ := node["properties"].(map[string]any)
	additional, allowsMore := w.additionalType(node, len(properties) > 0, indent, depth)
	if len(properties) == 0 && !allowsMore {
		return "{}"
	}
	if len(properties) == 0 {
		return "Record<string, " + additional + ">"
	}
	required, _ := node["required"].([]any)
	margin := strings.Repeat("  ", indent+1)
	var text strings.Builder
	text.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		mark := "?"
		if slices.Contains(required, any(name)) {
			mark = ""
		}
		text.WriteString(w.propertyComment(properties[name], indent+1))
		fmt.Fprintf(&text, "%s%s%s: %s;\n", margin, propertyKey(name), mark, w.typeOf(properties[name], indent+1, depth+1))
	}
	if allowsMore {
		fmt.Fprintf(&text, "%s[name: string]: unknown;\n", margin)
	}
	text.WriteString(strings.Repeat("  ", indent) + "}")
	return text.String()
}

// additionalType returns the type of an object's additional properties, and whether they are allowed. By default they
// are allowed only if the schema lists no properties.
func (w *typeWriter) additionalType(node map[string]any, hasProperties bool, indent, depth int) (text string, allowed bool) {
	switch rest := node["additionalProperties"].(type) {
	case map[string]any:
		return w.typeOf(rest, indent, depth+1), true
	case bool:
		return unknown, rest
	}
	return unknown, !hasProperties
}

// propertyComment returns a property's description as a comment of one line, or "".
func (w *typeWriter) propertyComment(schema any, indent int) string {
	node, _ := schema.(map[string]any)
	text, _ := node["description"].(string)
	if !w.withComments || text == "" {
		return ""
	}
	return comment(clip.VisibleLine(text, maxRemark), indent)
}

// literals returns the union of values as TypeScript literals. If there are too many, or one is too long or no scalar, it
// returns the union of their types.
func literals(values []any) string {
	var all, types []string
	useLiterals := len(values) <= maxValues
	for _, value := range values {
		text, typeName := literal(value)
		useLiterals = useLiterals && typeName != unknown && len(text) <= maxLiteral
		if !slices.Contains(types, typeName) {
			types = append(types, typeName)
		}
		all = append(all, text)
	}
	if !useLiterals {
		all = types
	}
	if slices.Contains(all, unknown) {
		return unknown
	}
	return strings.Join(all, " | ")
}

// literal returns a value as a TypeScript literal, and its type. For lists and objects, the type is unknown.
func literal(value any) (text, typeName string) {
	raw, err := json.Marshal(value)
	if err != nil {
		return "", unknown
	}
	switch value.(type) {
	case string:
		return escapeBackticks(raw), "string"
	case float64:
		return string(raw), "number"
	case bool:
		return string(raw), "boolean"
	case nil:
		return "null", "null"
	}
	return "", unknown
}

// escapeBackticks returns a JSON string with its backticks escaped, so that it cannot end a code block.
func escapeBackticks(raw []byte) string { return strings.ReplaceAll(string(raw), "`", "\\u0060") }

// propertyKey returns a property's name as the key in a type, quoted if needed.
func propertyKey(name string) string {
	if name != "" && identifier(name) == name {
		return name
	}
	raw, err := json.Marshal(clip.Visible(name, maxLiteral))
	if err != nil {
		return `""`
	}
	return escapeBackticks(raw)
}
