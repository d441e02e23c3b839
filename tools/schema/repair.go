package schema

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// repairs read arguments ever more leniently, in their order.
var repairs = []func(s *Schema, arguments map[string]any){
	(*Schema).dropNulls,
	func(s *Schema, arguments map[string]any) { s.parseTexts(arguments, false) },
	func(s *Schema, arguments map[string]any) { s.parseTexts(arguments, true) },
}

// dropNulls removes optional arguments that are null: models that were
// trained on strict schemas write them so.
func (s *Schema) dropNulls(arguments map[string]any) {
	for name, value := range arguments {
		if value == nil && !slices.Contains(s.root.Required, name) {
			delete(arguments, name)
		}
	}
}

// parseTexts parses arguments written as JSON text.
func (s *Schema) parseTexts(arguments map[string]any, allowedStrings bool) {
	parser := s.newTextParser()
	parser.parsesAllowedStrings = allowedStrings
	parser.parseTexts(arguments, []any{s.document})
}

// Exactly reads JSON with all digits of its numbers.
func Exactly(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// Plain returns a value with its numbers as float64, as encoding/json has them by default.
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

// textParser parses arguments written as JSON text if the schema expects the parsed value. Some models
// write every value so, most do if a union or reference hides the type.
type textParser struct {
	root                 any
	parsesAllowedStrings bool // also where one alternative of several takes a string
	steps                int  // schemas that were looked at; beyond maxChecks nothing is read any more
	kinds                map[uintptr]kinds
	appliedCache         map[uintptr][]map[string]any // the schemas that a schema applies to the same value
}

func (s *Schema) newTextParser() *textParser {
	return &textParser{root: s.document, kinds: map[uintptr]kinds{}, appliedCache: map[uintptr][]map[string]any{}}
}

// parseTexts returns the value with such texts parsed, on all its levels. Lists and objects are changed.
func (l *textParser) parseTexts(value any, schemas []any) any {
	if l.steps++; l.steps > maxChecks {
		return value
	}
	if text, ok := value.(string); ok {
		read, ok := l.parseText(text, schemas)
		if !ok {
			return value
		}
		value = read
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

// parseText parses a text if a schema accepts the result. If a schema also accepts strings, the text stays, unless
// parsesAllowedStrings is set.
func (l *textParser) parseText(text string, schemas []any) (parsed any, ok bool) {
	if len(schemas) == 0 {
		return nil, false
	}
	if !json.Valid([]byte(text)) || Exactly(text, &parsed) != nil {
		return nil, false
	}
	kind := kindsOf(parsed)
	for _, schema := range schemas {
		accepted := l.acceptedKinds(schema)
		switch {
		case accepted&kindString == 0:
			ok = ok || accepted&kind != 0
		case !l.parsesAllowedStrings:
			return nil, false
		}
	}
	return parsed, ok && kind != kindString
}

// schemasBelow returns the schemas of a property or an element, by those of the whole.
func (l *textParser) schemasBelow(schemas []any, schemasIn func(node map[string]any) []any) (found []any) {
	seen := map[uintptr]bool{}
	for _, schema := range schemas {
		for _, node := range l.appliedSchemas(schema) {
			l.steps++
			for _, sub := range schemasIn(node) {
				if id := pointerOf(sub); id == 0 || !seen[id] {
					seen[id] = true
					found = append(found, sub)
				}
			}
		}
	}
	return found
}

// appliedSchemas returns a schema with all those applied to the same value.
func (l *textParser) appliedSchemas(schema any) []map[string]any {
	if found, known := l.appliedCache[pointerOf(schema)]; known {
		return found
	}
	var found []map[string]any
	seen := map[uintptr]bool{}
	var visit func(any)
	visit = func(at any) {
		node, ok := at.(map[string]any)
		if !ok || seen[pointerOf(node)] {
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

func schemasOfProperty(node map[string]any, name string) (found []any) {
	if named, ok := node["properties"].(map[string]any); ok && named[name] != nil {
		found = append(found, named[name])
	}
	if patterns, ok := node["patternProperties"].(map[string]any); ok {
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

func schemasOfElement(node map[string]any, i int) []any {
	for _, keyword := range []string{"prefixItems", "items"} {
		if tuple, ok := node[keyword].([]any); ok && i < len(tuple) {
			return []any{tuple[i]}
		}
	}
	for _, keyword := range []string{"items", "additionalItems"} {
		if schema, ok := node[keyword].(map[string]any); ok {
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

var typeNames = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// kindOfType returns the values of a type, in the order of typeNames.
func kindOfType(name any) kinds {
	for i, known := range typeNames {
		if name == known {
			if k := kinds(1) << i; k != kindNumber {
				return k
			}
			return kindNumber | kindInteger
		}
	}
	return 0
}

// kindsOf returns the types of a value.
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

// acceptedKinds returns the types accepted by a schema.
func (l *textParser) acceptedKinds(schema any) kinds {
	node, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return 0
		}
		return anyKind
	}
	if known, ok := l.kinds[pointerOf(node)]; ok {
		return known
	}
	l.kinds[pointerOf(node)] = anyKind // while it is looked at: a loop excludes nothing
	accepted := anyKind
	narrow := func(keyword string, union func(any) kinds) {
		if list, ok := node[keyword].([]any); ok {
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
	if name, ok := node["type"].(string); ok {
		accepted &= kindOfType(name)
	}
	if value, ok := node["const"]; ok {
		accepted &= kindsOf(value)
	}
	if parts, ok := node["allOf"].([]any); ok {
		for _, part := range parts {
			accepted &= l.acceptedKinds(part)
		}
	}
	if reference, ok := node["$ref"].(string); ok {
		if to, found := ResolveReference(l.root, reference); found {
			accepted &= l.acceptedKinds(to)
		}
	}
	l.kinds[pointerOf(node)] = accepted
	return accepted
}

// String returns the names of the types, or "any value".
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
