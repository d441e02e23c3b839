package schema

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// repairs are tried in this order on arguments that do not fit the schema. Each reads more leniently than its predecessor.
var repairs = []func(s *Schema, arguments map[string]any){
	(*Schema).dropNulls,
	func(s *Schema, arguments map[string]any) { s.parseTexts(arguments, false) },
	func(s *Schema, arguments map[string]any) { s.parseTexts(arguments, true) },
}

// dropNulls removes optional arguments that are null, as models write them that were trained on strict schemas.
func (s *Schema) dropNulls(arguments map[string]any) {
	for name, value := range arguments {
		if value == nil && !slices.Contains(s.root.Required, name) {
			delete(arguments, name)
		}
	}
}

// parseTexts replaces arguments that are a text of JSON by the parsed value, if the schema expects that. allowedStrings
// makes it also parse texts where the schema accepts strings.
func (s *Schema) parseTexts(arguments map[string]any, allowedStrings bool) {
	parser := s.newTextParser()
	parser.parsesAllowedStrings = allowedStrings
	parser.parseTexts(arguments, []any{s.document})
}

// Exactly decodes JSON into a value, keeping all digits of its numbers (json.Number).
func Exactly(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// Plain returns a copy of a decoded JSON value with each json.Number converted to float64.
func Plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		n, _ := value.Float64()
		return n
	case map[string]any:
		converted := make(map[string]any, len(value))
		for name, v := range value {
			converted[name] = Plain(v)
		}
		return converted
	case []any:
		converted := make([]any, len(value))
		for i, v := range value {
			converted[i] = Plain(v)
		}
		return converted
	}
	return value
}

// textParser parses values that a model wrote as a text of JSON, if the schema expects the parsed value. Some models
// write all values as texts, most do if a union or reference hides the type.
type textParser struct {
	root                 any
	parsesAllowedStrings bool // also parse texts where the schema accepts strings, too
	steps                int  // number of schemas visited; after maxChecks nothing is parsed
	kinds                map[uintptr]kinds
	appliedCache         map[uintptr][]map[string]any // the schemas that a schema applies to the same value
}

// newTextParser returns a parser for values of the schema.
func (s *Schema) newTextParser() *textParser {
	return &textParser{root: s.document, kinds: map[uintptr]kinds{}, appliedCache: map[uintptr][]map[string]any{}}
}

// parseTexts returns a value with texts of JSON parsed at all levels. It changes lists and objects in place. schemas
// apply to the value.
func (l *textParser) parseTexts(value any, schemas []any) any {
	if l.steps++; l.steps > maxChecks {
		return value
	}
	if text, isText := value.(string); isText {
		parsed, accepted := l.parseText(text, schemas)
		if !accepted {
			return value
		}
		value = parsed
	}
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			value[name] = l.parseTexts(v, l.schemasBelow(schemas, func(node map[string]any) []any { return schemasOfProperty(node, name) }))
		}
	case []any:
		for i, v := range value {
			value[i] = l.parseTexts(v, l.schemasBelow(schemas, func(node map[string]any) []any { return schemasOfElement(node, i) }))
		}
	}
	return value
}

// parseText parses a text of JSON. accepted is false if no schema accepts the parsed value, or if a schema accepts
// strings and parsesAllowedStrings is false: then the text must stay.
func (l *textParser) parseText(text string, schemas []any) (parsed any, accepted bool) {
	if len(schemas) == 0 {
		return nil, false
	}
	if !json.Valid([]byte(text)) || Exactly(text, &parsed) != nil {
		return nil, false
	}
	kind := kindsOf(parsed)
	for _, schema := range schemas {
		acceptedKinds := l.acceptedKinds(schema)
		switch {
		case acceptedKinds&kindString == 0:
			accepted = accepted || acceptedKinds&kind != 0
		case !l.parsesAllowedStrings:
			return nil, false
		}
	}
	return parsed, accepted && kind != kindString
}

// schemasBelow returns the schemas that apply to a property or element of a value. schemas apply to the value itself,
// schemasIn returns those of the property or element in one schema.
func (l *textParser) schemasBelow(schemas []any, schemasIn func(node map[string]any) []any) (found []any) {
	seen := map[uintptr]bool{}
	for _, schema := range schemas {
		for _, node := range l.appliedSchemas(schema) {
			l.steps++
			for _, sub := range schemasIn(node) {
				if id := pointerOf(sub); id == 0 || !seen[id] { // a bool has no address
					seen[id] = true
					found = append(found, sub)
				}
			}
		}
	}
	return found
}

// appliedSchemas returns a schema and the schemas in it that apply to the same value, such as those of allOf.
func (l *textParser) appliedSchemas(schema any) []map[string]any {
	if found, known := l.appliedCache[pointerOf(schema)]; known {
		return found
	}
	var found []map[string]any
	seen := map[uintptr]bool{}
	var visit func(any)
	visit = func(at any) {
		node, isObject := at.(map[string]any)
		if !isObject || seen[pointerOf(node)] {
			return
		}
		seen[pointerOf(node)] = true
		found = append(found, node)
		for _, sub := range appliedTo(l.root, node, samePlace) {
			if l.steps++; sub.keyword != "not" && sub.keyword != "if" {
				visit(sub.schema)
			}
		}
	}
	visit(schema)
	l.appliedCache[pointerOf(schema)] = found
	return found
}

// schemasOfProperty returns the schemas that a schema has for the property called name.
func schemasOfProperty(node map[string]any, name string) (found []any) {
	if named, isObject := node["properties"].(map[string]any); isObject && named[name] != nil {
		found = append(found, named[name])
	}
	if patterns, isObject := node["patternProperties"].(map[string]any); isObject {
		for pattern, schema := range patterns {
			if matches, err := regexp.MatchString(pattern, name); err == nil && matches {
				found = append(found, schema)
			}
		}
	}
	if others := node["additionalProperties"]; len(found) == 0 && others != nil {
		found = append(found, others)
	}
	return found
}

// schemasOfElement returns the schemas that a schema has for the element i of a list.
func schemasOfElement(node map[string]any, i int) []any {
	for _, keyword := range []string{"prefixItems", "items"} {
		if tuple, isList := node[keyword].([]any); isList && i < len(tuple) {
			return []any{tuple[i]}
		}
	}
	for _, keyword := range []string{"items", "additionalItems"} {
		if schema, isObject := node[keyword].(map[string]any); isObject {
			return []any{schema}
		}
	}
	return nil
}

// kinds is a set of JSON types.
type kinds uint8

const (
	kindString kinds = 1 << iota
	kindNumber
	kindInteger
	kindBoolean
	kindObject
	kindArray
	kindNull
	anyKind = kindNull<<1 - 1
)

// typeNames are the names of the kinds, in the order of the constants.
var typeNames = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// kindOfType returns the kinds of values that the JSON Schema type called name has, or 0 if there is no such type.
func kindOfType(name any) kinds {
	if name == "number" {
		return kindNumber | kindInteger
	}
	for i, known := range typeNames {
		if name == known {
			return kinds(1) << i
		}
	}
	return 0
}

// kindsOf returns the kinds that a decoded JSON value has. Every number counts as an integer, too.
func kindsOf(value any) kinds {
	switch value.(type) {
	case nil:
		return kindNull
	case string:
		return kindString
	case bool:
		return kindBoolean
	case []any:
		return kindArray
	case map[string]any:
		return kindObject
	}
	return kindNumber | kindInteger
}

// acceptedKinds returns the kinds of values that a schema accepts.
func (l *textParser) acceptedKinds(schema any) kinds {
	node, isObject := schema.(map[string]any)
	if !isObject {
		if schema == false {
			return 0
		}
		return anyKind
	}
	if known, isKnown := l.kinds[pointerOf(node)]; isKnown {
		return known
	}
	l.kinds[pointerOf(node)] = anyKind // for references to the schema itself
	accepted := anyKind
	narrow := func(keyword string, union func(any) kinds) {
		if list, isList := node[keyword].([]any); isList {
			var all kinds
			for _, each := range list {
				l.steps++
				all |= union(each)
			}
			accepted &= all
		}
	}
	narrow("type", kindOfType)
	narrow("enum", kindsOf)
	narrow("anyOf", l.acceptedKinds)
	narrow("oneOf", l.acceptedKinds)
	if name, isText := node["type"].(string); isText {
		accepted &= kindOfType(name)
	}
	if value, exists := node["const"]; exists {
		accepted &= kindsOf(value)
	}
	if parts, isList := node["allOf"].([]any); isList {
		for _, part := range parts {
			accepted &= l.acceptedKinds(part)
		}
	}
	if target, _ := targetOf(l.root, node); target != nil {
		accepted &= l.acceptedKinds(target)
	}
	l.kinds[pointerOf(node)] = accepted
	return accepted
}

// String returns the names of the types, joined by "or", or "any value".
func (k kinds) String() string {
	if k == anyKind {
		return "any value"
	}
	if k&kindNumber != 0 {
		k &^= kindInteger
	}
	var names []string
	for i, name := range typeNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}
