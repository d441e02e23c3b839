package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
)

const (
	// maxFitted is the maximum size of a fitted schema, in bytes, because each request contains the schemas of all tools.
	maxFitted = 5000
	// deepestKept is the deepest level at which a shortened schema describes objects.
	deepestKept = 3
	// maxPropertyName is the maximum length of an argument's name, in bytes.
	maxPropertyName = 200
	// maxSchemaText is the maximum length of a description, in bytes.
	maxSchemaText = 2000
)

// Fit returns a short version of a foreign tool's JSON Schema for models. It uses only keywords that models' APIs know,
// and adds types that it can infer. It accepts at least what the original accepts, so check arguments by the original.
// The error says why raw is no schema of arguments.
func Fit(raw json.RawMessage) (json.RawMessage, error) {
	root, err := readSchema(raw)
	if err != nil {
		return nil, err
	}
	inlineRootReference(root)
	fitted := map[uintptr]bool{} // addresses; a reference may also lead to a value that is no schema, such as one of an enum
	walkSchema(root, func(node map[string]any) {
		fitKeywords(node)
		fitted[pointerOf(node)] = true
	})
	walkSchema(root, func(node map[string]any) {
		if target, _ := targetOf(root, node); !fitted[pointerOf(target)] {
			delete(node, "$ref")
		}
	})
	walkSchema(root, addType)
	if err := flatten(root); err != nil {
		return nil, err
	}
	dropUnusedDefinitions(root)
	for _, shorten := range []func(map[string]any){
		func(map[string]any) {}, // it may be short enough already
		dropKeywords("description", "title"), dropDefinitions, keepLevels(deepestKept), dropKeywords("anyOf", "oneOf", "allOf"), keepLevels(1), dropOptional,
	} {
		shorten(root)
		short, err := json.Marshal(root)
		if err != nil {
			return nil, fmt.Errorf("write the schema: %w", err)
		}
		if len(short) <= maxFitted {
			return short, nil
		}
	}
	return json.RawMessage(`{"properties":{},"type":"object"}`), nil
}

// readSchema parses the schema of a tool's arguments. For a missing one, null and true, it returns one that accepts any
// object.
func readSchema(raw json.RawMessage) (map[string]any, error) {
	var value any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &value); err != nil {
			return nil, fmt.Errorf("its schema cannot be read: %w", err)
		}
	}
	switch value {
	case nil, true:
		return map[string]any{}, nil
	case false:
		return nil, errors.New("its schema takes no arguments at all (false)")
	}
	schema, isObject := value.(map[string]any)
	if !isObject {
		return nil, errors.New("its schema is no object")
	}
	return schema, nil
}

// inlineRootReference replaces a root's reference to a value that is no schema, as in OpenAPI's components, by a copy of
// that value. Otherwise models would not see the arguments.
func inlineRootReference(root map[string]any) {
	target, _ := targetOf(root, root)
	if kindsOf(target) != kindObject {
		return
	}
	isSchema := false
	walkSchema(root, func(node map[string]any) { isSchema = isSchema || pointerOf(node) == pointerOf(target) })
	if isSchema {
		return
	}
	delete(root, "$ref")
	others, _ := root["allOf"].([]any)
	root["allOf"] = append(others, Plain(target))
}

// scalars maps the keywords whose values are kept unchanged to the type of their value. Values of other types are
// dropped, because an API would refuse the whole request.
var scalars = map[string]kinds{
	"format": kindString, "pattern": kindString, "uniqueItems": kindBoolean,
	"minLength": kindNumber, "maxLength": kindNumber, "minItems": kindNumber, "maxItems": kindNumber,
	"minProperties": kindNumber, "maxProperties": kindNumber, "multipleOf": kindNumber,
	"minimum": kindNumber, "maximum": kindNumber, "exclusiveMinimum": kindNumber, "exclusiveMaximum": kindNumber,
}

// fitKeywords converts the keywords of a schema. Schemas in it that are no objects become the type string, because a
// model can write every value as text.
func fitKeywords(node map[string]any) {
	if value, exists := node["const"]; exists {
		node["enum"] = []any{value}
	}
	if tuple, isList := node["items"].([]any); isList && node["prefixItems"] == nil { // JSON Schema before 2020-12
		node["prefixItems"] = tuple
	}
	if _, hasPatterns := node["patternProperties"]; hasPatterns && node["additionalProperties"] == false {
		node["additionalProperties"] = true
	}
	for keyword, value := range node {
		if node[keyword] = fitKeyword(keyword, value); node[keyword] == nil {
			delete(node, keyword)
		}
	}
	for _, sub := range subschemas(node) {
		if kindsOf(sub.schema) != kindObject && sub.keyword != "additionalProperties" {
			sub.replace(map[string]any{"type": "string"})
		}
	}
}

// fitKeyword converts the value of a schema's keyword, but not the schemas in it. It returns nil if the keyword must be
// left out.
func fitKeyword(keyword string, value any) any {
	list, isList := value.([]any)
	switch keyword {
	case "description", "title":
		if text, _ := value.(string); clip.Visible(text, maxSchemaText) != "" {
			return clip.Visible(text, maxSchemaText)
		}
	case "type":
		return knownTypes(value)
	case "$ref":
		if kindsOf(value) == kindString {
			return value
		}
	case "required":
		if isList {
			return slices.DeleteFunc(list, func(name any) bool { return kindsOf(name) != kindString })
		}
	case "enum", "anyOf", "oneOf", "allOf", "prefixItems":
		if len(list) > 0 {
			return list
		}
	case "properties", "$defs", "definitions":
		if named, isObject := value.(map[string]any); isObject {
			maps.DeleteFunc(named, func(name string, _ any) bool { return clip.Visible(name, maxPropertyName) != name })
			return named
		}
	case "items", "additionalProperties":
		if kindsOf(value)&(kindObject|kindBoolean) != 0 {
			return value
		}
	default:
		if kindsOf(value)&scalars[keyword] != 0 {
			return value
		}
	}
	return nil
}

// knownTypes returns the value of the keyword type, a name or a list, without unknown and duplicate types. It returns
// nil if none is left.
func knownTypes(value any) any {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var known []any
	for _, name := range list {
		if kindOfType(name) != 0 && !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	return oneOrAll(known)
}

// oneOrAll returns a list of types as the value of the keyword type: nil, the only type, or the list.
func oneOrAll(types []any) any {
	switch len(types) {
	case 0:
		return nil
	case 1:
		return types[0]
	}
	return types
}

// addType adds the schema's type, if that can be inferred, and the keywords that APIs demand for the type: properties for
// an object, items for a list.
func addType(node map[string]any) {
	if node["type"] == nil && !isComposed(node) {
		kind := inferType(node)
		if kind == nil {
			keepKeyword(node, "description")
			return
		}
		node["type"] = kind
	}
	if allowsType(node, "object") && node["properties"] == nil && !isComposed(node) {
		node["properties"] = map[string]any{}
	}
	if allowsType(node, "array") && node["items"] == nil && node["prefixItems"] == nil {
		node["items"] = map[string]any{"type": "string"}
	}
}

// keepKeyword removes all keywords of a schema but one.
func keepKeyword(node map[string]any, kept string) {
	maps.DeleteFunc(node, func(keyword string, _ any) bool { return keyword != kept })
}

// isComposed reports whether a schema consists of other schemas, by a reference or a combination.
func isComposed(fit map[string]any) bool {
	return slices.ContainsFunc([]string{"$ref", "anyOf", "oneOf", "allOf"}, func(keyword string) bool { return fit[keyword] != nil })
}

// typeHints lists the keywords from which inferType infers a type.
var typeHints = []struct {
	typeName string
	keywords []string
}{
	{"object", []string{"properties", "required", "additionalProperties", "minProperties", "maxProperties"}},
	{"array", []string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
	{"string", []string{"format", "pattern", "minLength", "maxLength"}},
	{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
}

// inferType returns the type of a schema without the keyword type, as the value of that keyword: a name, a list of
// names, or nil if it is unknown.
func inferType(fit map[string]any) any {
	if values, isList := fit["enum"].([]any); isList {
		var all []any
		for _, value := range values {
			if name := kindsOf(value).String(); !slices.Contains(all, any(name)) {
				all = append(all, name)
			}
		}
		return oneOrAll(all)
	}
	for _, hint := range typeHints {
		if slices.ContainsFunc(hint.keywords, func(keyword string) bool { return fit[keyword] != nil }) {
			return hint.typeName
		}
	}
	return nil
}

// allowsType reports whether the keyword type of a schema is, or contains, the type called name.
func allowsType(fit map[string]any, name string) bool {
	list, _ := fit["type"].([]any)
	return fit["type"] == name || slices.Contains(list, any(name))
}

// flatten makes the root schema fit an object without references and combinations, which models' APIs refuse there. It
// gets the properties of all schemas that it was composed of, and requires those that every call needs.
func flatten(root map[string]any) error {
	mergeParts(root, root, true, map[mergedPart]bool{})
	for _, keyword := range []string{"$ref", "anyOf", "oneOf", "allOf", "enum"} {
		delete(root, keyword)
	}
	if name, isSingle := root["type"].(string); isSingle && name != "object" {
		return fmt.Errorf("its schema takes arguments of type %s; they must be an object", name)
	}
	if root["type"] != nil && !allowsType(root, "object") {
		return errors.New("its schema takes no object as arguments")
	}
	root["type"] = "object"
	if root["properties"] == nil {
		root["properties"] = map[string]any{}
	}
	limitRequired(root)
	return nil
}

// mergedPart is a part of a schema that was merged into it.
type mergedPart struct {
	address         uintptr
	isAlwaysApplied bool
}

// mergeParts adds to the root schema the properties of part, and of the schemas that part is composed of. If every value
// must match the part, it also adds its required names and description.
func mergeParts(root map[string]any, part any, isAlwaysApplied bool, merged map[mergedPart]bool) {
	node, isObject := part.(map[string]any)
	id := mergedPart{pointerOf(part), isAlwaysApplied}
	if !isObject || merged[id] {
		return
	}
	merged[id] = true
	if len(merged) > 1 { // the first part is the root itself
		mergePart(root, node, isAlwaysApplied)
	}
	target, _ := targetOf(root, node)
	mergeParts(root, target, isAlwaysApplied, merged)
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := node[keyword].([]any)
		mustMatchEach := keyword == "allOf" || len(branches) == 1
		for _, branch := range branches {
			mergeParts(root, branch, isAlwaysApplied && mustMatchEach, merged)
		}
	}
}

// mergePart adds to the root schema the properties of one part, without those of the schemas in it.
func mergePart(root, part map[string]any, isAlwaysApplied bool) {
	if properties, isObject := part["properties"].(map[string]any); isObject {
		all, exists := root["properties"].(map[string]any)
		if !exists {
			all = map[string]any{}
			root["properties"] = all
		}
		for name, schema := range properties {
			if _, exists := all[name]; !exists {
				all[name] = schema
			}
		}
	}
	if required, isList := part["required"].([]any); isList && isAlwaysApplied {
		existing, _ := root["required"].([]any)
		root["required"] = append(existing, required...)
	}
	if root["type"] == nil && part["type"] == "object" {
		root["type"] = "object"
	}
	if root["description"] == nil && part["description"] != nil && isAlwaysApplied {
		root["description"] = part["description"]
	}
	delete(root, "additionalProperties") // it would refuse the properties of other parts
}

// limitRequired removes duplicates and names of missing properties from the schema's required names.
func limitRequired(root map[string]any) {
	required, _ := root["required"].([]any)
	properties, _ := root["properties"].(map[string]any)
	isListed := map[any]bool{}
	required = slices.DeleteFunc(required, func(name any) bool {
		_, exists := properties[name.(string)]
		isDropped := !exists || isListed[name]
		isListed[name] = true
		return isDropped
	})
	root["required"] = required
	if len(required) == 0 {
		delete(root, "required")
	}
}

// dropUnusedDefinitions removes definitions that no reference leads to, and references without a target.
func dropUnusedDefinitions(root map[string]any) {
	used, seen := map[string]bool{}, map[uintptr]bool{} // the places of definitions; the addresses of schemas
	var follow func(any)
	follow = func(at any) {
		node, isObject := at.(map[string]any)
		if !isObject || seen[pointerOf(node)] {
			return
		}
		seen[pointerOf(node)] = true
		target, exists := targetOf(root, node)
		if !exists {
			delete(node, "$ref") // its target was dropped
		}
		if reference, isText := node["$ref"].(string); isText {
			tokens := append(strings.Split(reference, "/"), "", "")
			used[strings.Join(tokens[:3], "/")] = true
			follow(target)
		}
		for _, sub := range subschemas(node) {
			if sub.at != definition {
				follow(sub.schema)
			}
		}
	}
	follow(root)
	for _, keyword := range []string{"$defs", "definitions"} {
		definitions, _ := root[keyword].(map[string]any)
		maps.DeleteFunc(definitions, func(name string, _ any) bool {
			return !used["#/"+keyword+"/"+escapeToken.Replace(name)]
		})
		if len(definitions) == 0 {
			delete(root, keyword)
		}
	}
}

// The following functions shorten a schema, in the order of Fit. None makes the schema refuse more values.

// dropKeywords returns a function that removes these keywords from a schema and all schemas in it.
func dropKeywords(keywords ...string) func(root map[string]any) {
	return func(root map[string]any) {
		walkSchema(root, func(node map[string]any) {
			for _, keyword := range keywords {
				delete(node, keyword)
			}
		})
	}
}

// dropDefinitions removes the definitions. A schema with a reference then accepts any value.
func dropDefinitions(root map[string]any) {
	walkSchema(root, func(node map[string]any) {
		if _, exists := node["$ref"]; exists {
			clear(node)
		}
		delete(node, "$defs")
		delete(node, "definitions")
	})
}

// keepLevels returns a function that reduces the values at a level of objects and lists to their types. The root's
// properties are level 1.
func keepLevels(level int) func(root map[string]any) {
	return func(root map[string]any) {
		for _, sub := range subschemas(root) {
			inner, isObject := sub.schema.(map[string]any)
			levelsLeft := level
			if sub.at == property || sub.at == element {
				levelsLeft--
			}
			switch {
			case !isObject:
			case levelsLeft > 0:
				keepLevels(levelsLeft)(inner)
			default:
				keepType(inner)
			}
		}
	}
}

// keepType removes all keywords of a schema but its type, so that an object has any properties and a list any elements.
func keepType(node map[string]any) {
	keepKeyword(node, "type")
	for typeName, keyword := range map[string]string{"object": "properties", "array": "items"} {
		if allowsType(node, typeName) {
			node[keyword] = map[string]any{}
		}
	}
}

// dropOptional removes the root's properties that are not required.
func dropOptional(root map[string]any) {
	properties, _ := root["properties"].(map[string]any)
	required, _ := root["required"].([]any)
	kept := map[string]any{}
	for _, name := range required {
		text, _ := name.(string)
		kept[text] = properties[text]
	}
	root["properties"] = kept
}
