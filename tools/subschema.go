package tools

import "strings"

// place is where a schema stands in another one, and so which values it is for.
type place int

const (
	samePlace place = iota // the value itself
	property               // a property of it
	element                // an element of it
	aside                  // none until something refers to it
)

// The keywords that hold schemas.
var (
	schemaKeywords = map[string]place{
		"not": samePlace, "if": samePlace, "then": samePlace, "else": samePlace,
		"additionalProperties": property, "unevaluatedProperties": property, "propertyNames": property,
		"items": element, "additionalItems": element, "unevaluatedItems": element, "contains": element,
	}
	schemaListKeywords = map[string]place{
		"allOf": samePlace, "anyOf": samePlace, "oneOf": samePlace, "prefixItems": element, "items": element,
	}
	schemaMapKeywords = map[string]place{
		"properties": property, "patternProperties": property, "dependentSchemas": samePlace,
		"$defs": aside, "definitions": aside,
	}
)

func holdsSchemas(keyword string) bool {
	_, one := schemaKeywords[keyword]
	_, list := schemaListKeywords[keyword]
	_, named := schemaMapKeywords[keyword]
	return one || list || named
}

// subschema is a schema that stands directly in another one.
type subschema struct {
	at      place
	keyword string
	name    string // of a property or a definition
	schema  any
	replace func(any) // puts another in its place
}

// subschemas are the schemas that stand directly in a schema.
func subschemas(schema map[string]any) []subschema {
	var found []subschema
	for keyword, value := range schema {
		if list, ok := value.([]any); ok {
			if at, known := schemaListKeywords[keyword]; known {
				for i, sub := range list {
					found = append(found, subschema{at, keyword, "", sub, func(other any) { list[i] = other }})
				}
			}
			continue
		}
		if at, known := schemaKeywords[keyword]; known {
			found = append(found, subschema{at, keyword, "", value, func(other any) { schema[keyword] = other }})
			continue
		}
		if at, known := schemaMapKeywords[keyword]; known {
			if named, ok := value.(map[string]any); ok {
				for name, sub := range named {
					found = append(found, subschema{at, keyword, name, sub, func(other any) { named[name] = other }})
				}
			}
		}
	}
	return found
}

// Referred is what a reference within the document points to; only pointers (RFC 6901) are
// followed.
func Referred(root any, reference string) (any, bool) {
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
			i := indexOf(token, len(node))
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

// indexOf reads an index below n as RFC 6901 has it, without leading zeros, or gives -1: no place
// has two names.
func indexOf(token string, n int) int {
	i := 0
	if token == "" || len(token) > 6 || token[0] == '0' && token != "0" {
		return -1
	}
	for _, digit := range token {
		if digit < '0' || digit > '9' {
			return -1
		}
		i = i*10 + int(digit-'0')
	}
	if i >= n {
		return -1
	}
	return i
}
