package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// place says which values a subschema describes, given a value that its parent describes.
type place int

const (
	samePlace  place = iota // the value itself
	property                // a property of it
	element                 // an element of it
	definition              // none until something refers to it
)

// schemaKeywords lists the keywords whose value contains schemas: one schema, a list of schemas or, if named, an object
// with schemas by name.
var schemaKeywords = map[string]struct {
	at    place
	named bool
}{
	"not": {}, "if": {}, "then": {}, "else": {}, "allOf": {}, "anyOf": {}, "oneOf": {}, "dependentSchemas": {named: true},
	"properties": {property, true}, "patternProperties": {property, true}, "additionalProperties": {at: property}, "unevaluatedProperties": {at: property}, "propertyNames": {at: property},
	"items": {at: element}, "prefixItems": {at: element}, "additionalItems": {at: element}, "unevaluatedItems": {at: element}, "contains": {at: element},
	"$defs": {definition, true}, "definitions": {definition, true},
}

// subschema is a schema that is directly contained in another schema.
type subschema struct {
	at      place
	keyword string
	name    string // name of the property or definition, or ""
	schema  any
	replace func(any) // replaces the schema in its parent
}

// subschemas returns the schemas that are directly contained in a schema.
func subschemas(schema map[string]any) (found []subschema) {
	for keyword, value := range schema {
		contents, containsSchemas := schemaKeywords[keyword]
		list, isList := value.([]any)
		named, isMap := value.(map[string]any)
		switch {
		case !containsSchemas:
		case isList:
			for i, sub := range list {
				found = append(found, subschema{contents.at, keyword, "", sub, func(other any) { list[i] = other }})
			}
		case contents.named && isMap:
			for name, sub := range named {
				found = append(found, subschema{contents.at, keyword, name, sub, func(other any) { named[name] = other }})
			}
		case !contents.named:
			found = append(found, subschema{contents.at, keyword, "", value, func(other any) { schema[keyword] = other }})
		}
	}
	return found
}

// escapeToken and unescapeToken convert a name for a JSON pointer, and back.
var (
	escapeToken   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")
)

// ResolveReference returns the schema that a reference leads to in the document root. It supports only JSON pointers
// (RFC 6901), such as #/$defs/name.
func ResolveReference(root any, reference string) (schema any, found bool) {
	pointer, isLocal := strings.CutPrefix(reference, "#")
	isPointer := isLocal && (pointer == "" || pointer[0] == '/')
	if !isPointer || strings.Contains(pointer, "%") {
		return nil, false
	}
	at := root
	for _, token := range strings.Split(pointer, "/")[1:] { // the text before the first slash is empty
		token = unescapeToken.Replace(token)
		switch node := at.(type) {
		case map[string]any:
			if at, found = node[token]; !found {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(token)
			isIndex := err == nil && strconv.Itoa(i) == token && i >= 0 && i < len(node) // without leading zeros (RFC 6901)
			if !isIndex {
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

// targetOf returns the schema that the $ref of a schema leads to in the document root, or nil without a $ref. found is
// false if it leads nowhere.
func targetOf(root any, node map[string]any) (target any, found bool) {
	reference, exists := node["$ref"]
	if !exists {
		return nil, true
	}
	text, _ := reference.(string)
	return ResolveReference(root, text)
}

// walkSchema calls visit for a schema and then for all schemas in it.
func walkSchema(schema any, visit func(node map[string]any)) {
	if node, isObject := schema.(map[string]any); isObject {
		visit(node)
		for _, sub := range subschemas(node) {
			walkSchema(sub.schema, visit)
		}
	}
}

// pointerOf returns the address of a map or list, by which it can be recognized, and 0 for other values.
func pointerOf(value any) uintptr {
	switch value.(type) {
	case map[string]any, []any:
		return reflect.ValueOf(value).Pointer()
	}
	return 0
}

// appliedTo returns the subschemas of a schema that describe values at this place, including the target of $ref. root is
// the document that contains the schema.
func appliedTo(root any, node map[string]any, at place) []subschema {
	subs := slices.DeleteFunc(subschemas(node), func(s subschema) bool { return s.at != at })
	if at != samePlace {
		return subs
	}
	if target, _ := targetOf(root, node); target != nil {
		subs = append(subs, subschema{at: samePlace, schema: target})
	}
	return subs
}
