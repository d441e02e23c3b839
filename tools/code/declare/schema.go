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

// writer converts one schema to a TypeScript type.
type writer struct {
	root    any      // the whole schema, for references
	remarks bool     // write the descriptions of properties
	types   int      // number of types written so far
	within  []string // references being followed, to detect cycles
}

const unknown = "unknown"

// of returns the type of the schema at. Its lines after the first are indented by indent levels. depth is
// the number of enclosing schemas.
func (w *writer) of(at any, indent, depth int) string {
	w.types++
	node, is := at.(map[string]any)
	if !is || depth > deepest || w.types > maxTypes {
		return unknown
	}
	if reference, is := node["$ref"].(string); is {
		return w.referred(reference, indent, depth)
	}
	if value, is := node["const"]; is {
		return literals([]any{value})
	}
	if values, is := node["enum"].([]any); is && len(values) > 0 {
		return literals(values)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if options, is := node[keyword].([]any); is && len(options) > 0 {
			return w.joined(options, " | ", indent, depth)
		}
	}
	if parts, is := node["allOf"].([]any); is && len(parts) > 0 {
		return w.whole(node, parts, indent, depth)
	}
	switch kind := node["type"].(type) {
	case string:
		return nullable(node, w.kind(kind, node, indent, depth))
	case []any:
		return w.kinds(kind, node, indent, depth)
	}
	return w.untyped(node, indent, depth)
}

// untyped returns the type implied by a schema's keywords.
func (w *writer) untyped(node map[string]any, indent, depth int) string {
	switch {
	case node["properties"] != nil:
		return w.object(node, indent, depth)
	case node["items"] != nil || node["prefixItems"] != nil:
		return w.array(node, indent, depth)
	}
	return unknown
}

// whole returns the type of a value that must match all of several schemas (allOf).
func (w *writer) whole(node map[string]any, parts []any, indent, depth int) string {
	if node["properties"] != nil {
		rest := maps.Clone(node)
		delete(rest, "allOf")
		parts = append([]any{rest}, parts...)
	}
	return w.joined(parts, " & ", indent, depth)
}

// referred returns the type of a referenced schema. It is unknown for a cycle or a missing schema.
func (w *writer) referred(reference string, indent, depth int) string {
	if slices.Contains(w.within, reference) {
		return unknown
	}
	at, there := schema.Referred(w.root, reference)
	if !there {
		return unknown
	}
	w.within = append(w.within, reference)
	defer func() { w.within = w.within[:len(w.within)-1] }()
	return w.of(at, indent, depth+1)
}

// joined returns the types of several schemas, each once, joined by sign.
func (w *writer) joined(schemas []any, sign string, indent, depth int) string {
	var all []string
	for _, schema := range schemas {
		text := w.of(schema, indent, depth+1)
		if sign == " & " && strings.Contains(text, " | ") {
			text = "(" + text + ")"
		}
		if text == unknown && sign == " | " {
			return unknown
		}
		if !slices.Contains(all, text) && (text != unknown || sign == " | ") {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return unknown
	}
	return strings.Join(all, sign)
}

// kinds returns the union of several JSON types.
func (w *writer) kinds(kinds []any, node map[string]any, indent, depth int) string {
	var all []string
	for _, kind := range kinds {
		name, _ := kind.(string)
		if text := w.kind(name, node, indent, depth); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) == 0 || slices.Contains(all, unknown) {
		return unknown
	}
	return strings.Join(all, " | ")
}

// kind returns the type for one JSON type.
func (w *writer) kind(name string, node map[string]any, indent, depth int) string {
	switch name {
	case "string", "number", "boolean", "null":
		return name
	case "integer":
		return "number"
	case "array":
		return w.array(node, indent, depth)
	case "object":
		return w.object(node, indent, depth)
	}
	return unknown
}

func nullable(node map[string]any, text string) string {
	if node["nullable"] == true && text != unknown {
		return text + " | null"
	}
	return text
}

// array returns the type of a list, or of a tuple if the schema has prefixItems.
func (w *writer) array(node map[string]any, indent, depth int) string {
	if first, is := node["prefixItems"].([]any); is && len(first) > 0 {
		all := make([]string, len(first))
		for i, item := range first {
			all[i] = w.of(item, indent, depth+1)
		}
		if node["items"] != false {
			all = append(all, "...unknown[]")
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	items := unknown
	if node["items"] != nil {
		items = w.of(node["items"], indent, depth+1)
	}
	if strings.Contains(items, " | ") || strings.Contains(items, " & ") {
		return "Array<" + items + ">"
	}
	return items + "[]"
}

// object returns the type of an object: its properties sorted by name, then other properties if they are allowed.
func (w *writer) object(node map[string]any, indent, depth int) string {
	properties, _ := node["properties"].(map[string]any)
	rest, more := w.rest(node, len(properties) > 0, indent, depth)
	if len(properties) == 0 && !more {
		return "{}"
	}
	if len(properties) == 0 {
		return "Record<string, " + rest + ">"
	}
	required, _ := node["required"].([]any)
	margin := strings.Repeat("  ", indent+1)
	var all strings.Builder
	all.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		mark := "?"
		if slices.Contains(required, any(name)) {
			mark = ""
		}
		all.WriteString(w.remark(properties[name], indent+1))
		fmt.Fprintf(&all, "%s%s%s: %s;\n", margin, key(name), mark, w.of(properties[name], indent+1, depth+1))
	}
	if more {
		fmt.Fprintf(&all, "%s[name: string]: unknown;\n", margin)
	}
	all.WriteString(strings.Repeat("  ", indent) + "}")
	return all.String()
}

// rest returns the type of additional properties. more reports whether they are allowed; named means
// that the schema lists properties, so that none are by default.
func (w *writer) rest(node map[string]any, named bool, indent, depth int) (text string, more bool) {
	switch rest := node["additionalProperties"].(type) {
	case map[string]any:
		return w.of(rest, indent, depth+1), true
	case bool:
		return unknown, rest
	}
	return unknown, !named
}

// remark returns a property's description as a comment of one line, or "".
func (w *writer) remark(schema any, indent int) string {
	node, _ := schema.(map[string]any)
	text, _ := node["description"].(string)
	if !w.remarks || text == "" {
		return ""
	}
	return comment(strings.Join(strings.Fields(clip.Visible(text, maxRemark)), " "), indent)
}

// literals returns a union of values. If they are too many or too long, it returns the union of their
// types.
func literals(values []any) string {
	var all, kinds []string
	short := len(values) <= maxValues
	for _, value := range values {
		text, kind := literal(value)
		short = short && kind != unknown && len(text) <= maxLiteral
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		all = append(all, text)
	}
	if !short {
		all = kinds
	}
	if slices.Contains(all, unknown) {
		return unknown
	}
	return strings.Join(all, " | ")
}

// literal returns a value as a TypeScript literal, and its type. The type is unknown for lists and objects.
func literal(value any) (text, kind string) {
	raw, err := json.Marshal(value)
	if err != nil {
		return "", unknown
	}
	switch value.(type) {
	case string:
		return quoted(raw), "string"
	case float64:
		return string(raw), "number"
	case bool:
		return string(raw), "boolean"
	case nil:
		return "null", "null"
	}
	return "", unknown
}

// quoted returns a text as a one-line literal that cannot end a code block.
func quoted(raw []byte) string { return strings.ReplaceAll(string(raw), "`", "\\u0060") }

// key returns a property's name in a type.
func key(name string) string {
	if name != "" && identifier(name) == name {
		return name
	}
	raw, err := json.Marshal(clip.Visible(name, maxLiteral))
	if err != nil {
		return `""`
	}
	return quoted(raw)
}
