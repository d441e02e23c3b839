package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// place is the keyword kind under which a schema lies in its parent. It decides which values the schema
// describes.
type place int

const (
	samePlace  place = iota // the value itself
	property                // a property of it
	element                 // an element of it
	definition              // none until something refers to it
)

// schemaKeywords are the keywords that hold schemas: one, a list of them, or, if named, some by names.
var schemaKeywords = map[string]struct {
	at    place
	named bool
}{
	"not": {}, "if": {}, "then": {}, "else": {}, "allOf": {}, "anyOf": {}, "oneOf": {}, "dependentSchemas": {named: true},
	"properties": {property, true}, "patternProperties": {property, true}, "additionalProperties": {at: property}, "unevaluatedProperties": {at: property}, "propertyNames": {at: property},
	"items": {at: element}, "prefixItems": {at: element}, "additionalItems": {at: element}, "unevaluatedItems": {at: element}, "contains": {at: element},
	"$defs": {definition, true}, "definitions": {definition, true},
}

// subschema is a direct part of a schema.
type subschema struct {
	at      place
	keyword string
	name    string // of a property or a definition
	schema  any
	replace func(any) // puts another in its place
}

// subschemas returns the schemas that stand directly in a schema.
func subschemas(schema map[string]any) (found []subschema) {
	for keyword, value := range schema {
		holds, known := schemaKeywords[keyword]
		list, isList := value.([]any)
		named, isMap := value.(map[string]any)
		switch {
		case !known:
		case isList:
			for i, sub := range list {
				found = append(found, subschema{holds.at, keyword, "", sub, func(other any) { list[i] = other }})
			}
		case holds.named && isMap:
			for name, sub := range named {
				found = append(found, subschema{holds.at, keyword, name, sub, func(other any) { named[name] = other }})
			}
		case !holds.named:
			found = append(found, subschema{holds.at, keyword, "", value, func(other any) { schema[keyword] = other }})
		}
	}
	return found
}

// ResolveReference resolves a reference inside the document. It only supports pointers (RFC 6901).
func ResolveReference(root any, reference string) (any, bool) {
	pointer, ok := strings.CutPrefix(reference, "#")
	if !ok || pointer != "" && pointer[0] != '/' || strings.Contains(pointer, "%") {
		return nil, false
	}
	at := root
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch node := at.(type) {
		case map[string]any:
			if at, ok = node[token]; !ok {
				return nil, false
			}
		case []any:
			i := parseIndex(token, len(node))
			if i < 0 {
				return nil, false
			}
			at = node[i]
		default:
			return nil, false
		}
	}
	switch at.(type) {
	case map[string]any, bool:
		return at, true
	}
	return nil, false
}

// parseIndex reads an index below n as RFC 6901 has it, without leading zeros, or gives -1: no place
// has two names.
func parseIndex(token string, n int) int {
	i, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(i) != token || i >= n {
		return -1
	}
	return i
}

// walkSchema visits each schema in a schema, the root first.
func walkSchema(at any, visit func(node map[string]any)) {
	if node, ok := at.(map[string]any); ok {
		visit(node)
		for _, sub := range subschemas(node) {
			walkSchema(sub.schema, visit)
		}
	}
}

// pointerOf tells a map or list from all others.
func pointerOf(value any) uintptr {
	switch value.(type) {
	case map[string]any, []any:
		return reflect.ValueOf(value).Pointer()
	}
	return 0
}

// appliedTo returns the schemas that a schema applies at a place, those that it refers to included.
func appliedTo(root any, node map[string]any, at place) []subschema {
	subs := slices.DeleteFunc(subschemas(node), func(s subschema) bool { return s.at != at })
	if text, ok := node["$ref"].(string); ok && at == samePlace {
		if to, ok := ResolveReference(root, text); ok {
			subs = append(subs, subschema{at: samePlace, schema: to})
		}
	}
	return subs
}
