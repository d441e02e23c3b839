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
	func(s *Schema, arguments map[string]any) { s.readTexts(arguments, false) },
	func(s *Schema, arguments map[string]any) { s.readTexts(arguments, true) },
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

// readTexts parses arguments written as JSON text.
func (s *Schema) readTexts(arguments map[string]any, eager bool) {
	l := s.lenient()
	l.eager = eager
	l.read(arguments, []any{s.document})
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
		made := make(map[string]any, len(value))
		for name, v := range value {
			made[name] = Plain(v)
		}
		return made
	case []any:
		made := make([]any, len(value))
		for i, v := range value {
			made[i] = Plain(v)
		}
		return made
	}
	return value
}

// lenient parses arguments written as JSON text if the schema expects the parsed value. Some models
// write every value so, most do if a union or reference hides the type.
type lenient struct {
	root   any
	eager  bool // also where one alternative of several takes a string
	steps  int  // schemas that were looked at; beyond maxChecks nothing is read any more
	kinds  map[uintptr]kinds
	nested map[uintptr][]map[string]any // the schemas that a schema applies to the same value
}

func (s *Schema) lenient() *lenient {
	return &lenient{root: s.document, kinds: map[uintptr]kinds{}, nested: map[uintptr][]map[string]any{}}
}

// read returns the value with such texts read, on all its levels. Lists and objects are changed.
func (l *lenient) read(value any, schemas []any) any {
	if l.steps++; l.steps > maxChecks {
		return value
	}
	if text, is := value.(string); is {
		read, is := l.text(text, schemas)
		if !is {
			return value
		}
		value = read
	}
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			value[name] = l.read(v, l.below(schemas, func(node map[string]any) []any { return propertySchemas(node, name) }))
		}
	case []any:
		for i, v := range value {
			value[i] = l.read(v, l.below(schemas, func(node map[string]any) []any { return elementSchemas(node, i) }))
		}
	}
	return value
}

// text parses a text if a schema accepts the result and, unless eager, none accepts a string.
func (l *lenient) text(text string, schemas []any) (read any, ok bool) {
	if len(schemas) == 0 {
		return nil, false
	}
	if !json.Valid([]byte(text)) || Exactly(text, &read) != nil {
		return nil, false
	}
	kind := kindsOf(read)
	for _, schema := range schemas {
		takes := l.takes(schema)
		switch {
		case takes&kindString == 0:
			ok = ok || takes&kind != 0
		case !l.eager:
			return nil, false
		}
	}
	return read, ok && kind != kindString
}

// below returns the schemas of a property or an element, by those of the whole.
func (l *lenient) below(schemas []any, of func(node map[string]any) []any) (found []any) {
	seen := map[uintptr]bool{}
	for _, schema := range schemas {
		for _, node := range l.applied(schema) {
			l.steps++
			for _, sub := range of(node) {
				if id := identity(sub); id == 0 || !seen[id] {
					seen[id] = true
					found = append(found, sub)
				}
			}
		}
	}
	return found
}

// applied returns a schema with all those applied to the same value.
func (l *lenient) applied(schema any) []map[string]any {
	if found, known := l.nested[identity(schema)]; known {
		return found
	}
	var found []map[string]any
	seen := map[uintptr]bool{}
	var visit func(any)
	visit = func(at any) {
		node, is := at.(map[string]any)
		if !is || seen[identity(node)] {
			return
		}
		seen[identity(node)] = true
		found = append(found, node)
		for _, sub := range appliedTo(l.root, node, samePlace) {
			if l.steps++; sub.keyword != "not" && sub.keyword != "if" {
				visit(sub.schema)
			}
		}
	}
	visit(schema)
	l.nested[identity(schema)] = found
	return found
}

func propertySchemas(node map[string]any, name string) (found []any) {
	if named, is := node["properties"].(map[string]any); is && named[name] != nil {
		found = append(found, named[name])
	}
	if patterns, is := node["patternProperties"].(map[string]any); is {
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

func elementSchemas(node map[string]any, i int) []any {
	for _, keyword := range []string{"prefixItems", "items"} {
		if tuple, is := node[keyword].([]any); is && i < len(tuple) {
			return []any{tuple[i]}
		}
	}
	for _, keyword := range []string{"items", "additionalItems"} {
		if schema, is := node[keyword].(map[string]any); is {
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

// takes returns the types accepted by a schema.
func (l *lenient) takes(schema any) kinds {
	node, is := schema.(map[string]any)
	if !is {
		if schema == false {
			return 0
		}
		return anyKind
	}
	if known, is := l.kinds[identity(node)]; is {
		return known
	}
	l.kinds[identity(node)] = anyKind // while it is looked at: a loop excludes nothing
	set := anyKind
	narrow := func(keyword string, union func(any) kinds) {
		if list, is := node[keyword].([]any); is {
			var all kinds
			for _, one := range list {
				l.steps++
				all |= union(one)
			}
			set &= all
		}
	}
	narrow("type", kindOfType)
	narrow("enum", kindsOf)
	narrow("anyOf", l.takes)
	narrow("oneOf", l.takes)
	if name, is := node["type"].(string); is {
		set &= kindOfType(name)
	}
	if value, is := node["const"]; is {
		set &= kindsOf(value)
	}
	if parts, is := node["allOf"].([]any); is {
		for _, part := range parts {
			set &= l.takes(part)
		}
	}
	if reference, is := node["$ref"].(string); is {
		if to, found := Referred(l.root, reference); found {
			set &= l.takes(to)
		}
	}
	l.kinds[identity(node)] = set
	return set
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
