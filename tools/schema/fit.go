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
	// maxFits is the maximum number of schemas within a schema, counting each reference.
	maxFits = 200_000
)

// Fit returns a short version of a foreign tool's JSON Schema for models. It uses only keywords that models' APIs know,
// and each property has a type. It accepts at least what the original accepts, so check arguments by the original. The
// error says why raw is no schema of arguments.
func Fit(raw json.RawMessage) (json.RawMessage, error) {
	root, err := readSchema(raw)
	if err != nil {
		return nil, err
	}
	f := &fitting{root: root}
	fitted := f.fitSchema(root)
	if err := f.flatten(fitted); err != nil {
		return nil, err
	}
	if f.count > maxFits {
		return nil, fmt.Errorf("its schema has, or refers to, more than %d others", maxFits)
	}
	dropUnusedDefinitions(fitted)
	for _, shorten := range []func(map[string]any){
		func(map[string]any) {}, // it may be short enough already
		dropKeywords("description", "title"), dropDefinitions, dropDeepLevels, dropKeywords("anyOf", "oneOf", "allOf"), dropProperties,
	} {
		shorten(fitted)
		short, err := json.Marshal(fitted)
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
	switch schema := value.(type) {
	case map[string]any:
		return schema, nil
	case nil:
		return map[string]any{"type": "object"}, nil
	case bool:
		if schema {
			return map[string]any{"type": "object"}, nil
		}
		return nil, errors.New("its schema takes no arguments at all (false)")
	}
	return nil, errors.New("its schema is no object")
}

// fitting converts one schema for Fit.
type fitting struct {
	root  map[string]any
	count int // number of schemas converted; after maxFits no more are
}

// scalars maps the keywords whose values are kept unchanged to the type of their value. Values of other types are
// dropped, because an API would refuse the whole request.
var scalars = map[string]kinds{
	"format": kindString, "pattern": kindString, "uniqueItems": kindBoolean,
	"minLength": kindNumber, "maxLength": kindNumber, "minItems": kindNumber, "maxItems": kindNumber,
	"minProperties": kindNumber, "maxProperties": kindNumber, "multipleOf": kindNumber,
	"minimum": kindNumber, "maximum": kindNumber, "exclusiveMinimum": kindNumber, "exclusiveMaximum": kindNumber,
}

// fitSchema converts a schema. One that accepts every value becomes the type string, because a model can write every
// value as text.
func (f *fitting) fitSchema(schema any) map[string]any {
	node, isObject := schema.(map[string]any)
	f.count++
	if !isObject || f.count > maxFits {
		return map[string]any{"type": "string"}
	}
	fit := map[string]any{}
	for keyword, value := range node {
		if fitted := f.fitKeyword(keyword, value); fitted != nil {
			fit[keyword] = fitted
		}
	}
	if value, exists := node["const"]; exists {
		fit["enum"] = []any{value}
	}
	if tuple, isList := node["items"].([]any); isList && fit["prefixItems"] == nil { // JSON Schema before 2020-12
		fit["prefixItems"] = f.fitList(tuple)
	}
	if _, hasPatterns := node["patternProperties"]; hasPatterns && fit["additionalProperties"] == false {
		fit["additionalProperties"] = true
	}
	return withType(fit)
}

// fitKeyword converts the value of a schema's keyword. It returns nil if the keyword must be left out.
func (f *fitting) fitKeyword(keyword string, value any) any {
	list, isList := value.([]any)
	switch keyword {
	case "description", "title":
		if text, _ := value.(string); clip.Visible(text, maxSchemaText) != "" {
			return clip.Visible(text, maxSchemaText)
		}
	case "type":
		return f.knownTypes(value)
	case "enum":
		if len(list) > 0 {
			return list
		}
	case "required":
		if isList {
			return slices.DeleteFunc(slices.Clone(list), func(name any) bool { return kindsOf(name) != kindString })
		}
	case "$ref":
		text, _ := value.(string)
		if _, found := ResolveReference(f.root, text); found {
			return text
		}
	case "anyOf", "oneOf", "allOf", "prefixItems":
		if len(list) > 0 {
			return f.fitList(list)
		}
	case "properties", "$defs", "definitions":
		if named, isObject := value.(map[string]any); isObject {
			fitted := make(map[string]any, len(named))
			for name, s := range named {
				if clip.Visible(name, maxPropertyName) == name {
					fitted[name] = f.fitSchema(s)
				}
			}
			return fitted
		}
	case "items", "additionalProperties":
		_, isBool := value.(bool)
		switch {
		case isBool && keyword == "additionalProperties":
			return value
		case isBool || kindsOf(value) == kindObject:
			return f.fitSchema(value)
		}
	default:
		if kindsOf(value)&scalars[keyword] != 0 {
			return value
		}
	}
	return nil
}

// fitList converts a list of schemas.
func (f *fitting) fitList(schemas []any) []any {
	fitted := make([]any, len(schemas))
	for i, s := range schemas {
		fitted[i] = f.fitSchema(s)
	}
	return fitted
}

// knownTypes returns the value of the keyword type, a name or a list, without unknown and duplicate types. It returns
// nil if none is left.
func (f *fitting) knownTypes(value any) any {
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

// withType returns a schema with its type, if that can be inferred, and with the keywords that APIs demand for the type:
// properties for an object, items for a list.
func withType(fit map[string]any) map[string]any {
	if fit["type"] == nil && !isComposed(fit) {
		if kind := inferType(fit); kind != nil {
			fit["type"] = kind
		} else {
			return onlyKeyword(fit, "description")
		}
	}
	if allowsType(fit, "object") && fit["properties"] == nil && !isComposed(fit) {
		fit["properties"] = map[string]any{}
	}
	if allowsType(fit, "array") && fit["items"] == nil && fit["prefixItems"] == nil {
		fit["items"] = map[string]any{"type": "string"}
	}
	return fit
}

// onlyKeyword returns a schema with all keywords but one left out.
func onlyKeyword(fit map[string]any, keyword string) map[string]any {
	if value, exists := fit[keyword]; exists {
		return map[string]any{keyword: value}
	}
	return map[string]any{}
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
func (f *fitting) flatten(fit map[string]any) error {
	f.mergeBranches(fit, fit, true, map[string]bool{})
	for _, keyword := range []string{"$ref", "anyOf", "oneOf", "allOf", "enum"} {
		delete(fit, keyword)
	}
	if name, isSingle := fit["type"].(string); isSingle && name != "object" {
		return fmt.Errorf("its schema takes arguments of type %s; they must be an object", name)
	}
	if fit["type"] != nil && !allowsType(fit, "object") {
		return errors.New("its schema takes no object as arguments")
	}
	fit["type"] = "object"
	if fit["properties"] == nil {
		fit["properties"] = map[string]any{}
	}
	limitRequired(fit)
	return nil
}

// mergeBranches adds to the schema into the properties of the schemas that from is composed of. isAlwaysApplied means
// that every value must match from. seen contains the references already followed.
func (f *fitting) mergeBranches(into, from map[string]any, isAlwaysApplied bool, seen map[string]bool) {
	if reference, isText := from["$ref"].(string); isText && !seen[reference] {
		seen[reference] = true
		if target, found := ResolveReference(f.root, reference); found {
			f.mergeBranch(into, f.fitSchema(target), isAlwaysApplied, seen)
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := from[keyword].([]any)
		mustMatchEach := keyword == "allOf" || len(branches) == 1
		for _, branch := range branches {
			if schema, isObject := branch.(map[string]any); isObject {
				f.mergeBranch(into, schema, isAlwaysApplied && mustMatchEach, seen)
			}
		}
	}
}

// mergeBranch adds a branch's properties to the schema into. If every value must match the branch, it also adds its
// required names and description.
func (f *fitting) mergeBranch(into, branch map[string]any, isAlwaysApplied bool, seen map[string]bool) {
	if properties, isObject := branch["properties"].(map[string]any); isObject {
		existing, _ := into["properties"].(map[string]any)
		into["properties"] = properties
		maps.Copy(properties, existing)
	}
	if required, isList := branch["required"].([]any); isList && isAlwaysApplied {
		existing, _ := into["required"].([]any)
		into["required"] = slices.Concat(existing, required)
	}
	if into["type"] == nil && branch["type"] == "object" {
		into["type"] = "object"
	}
	if text, isText := branch["description"].(string); isText && isAlwaysApplied && into["description"] == nil {
		into["description"] = text
	}
	delete(into, "additionalProperties") // it would refuse the properties of other branches
	f.mergeBranches(into, branch, isAlwaysApplied, seen)
}

// limitRequired removes duplicates and names of missing properties from the schema's required names.
func limitRequired(fit map[string]any) {
	required, _ := fit["required"].([]any)
	properties, _ := fit["properties"].(map[string]any)
	listed := map[any]bool{}
	required = slices.DeleteFunc(required, func(name any) bool {
		text, _ := name.(string)
		_, exists := properties[text]
		if !exists || listed[name] {
			return true
		}
		listed[name] = true
		return false
	})
	fit["required"] = required
	if len(required) == 0 {
		delete(fit, "required")
	}
}

// dropUnusedDefinitions removes definitions that no reference leads to, and references without a target.
func dropUnusedDefinitions(root map[string]any) {
	used, seen := map[string]bool{}, map[uintptr]bool{}
	var follow func(any)
	follow = func(at any) {
		node, isObject := at.(map[string]any)
		if !isObject || seen[pointerOf(node)] {
			return
		}
		seen[pointerOf(node)] = true
		if reference, isText := node["$ref"].(string); isText && !used[reference] {
			target, exists := ResolveReference(root, reference)
			if exists {
				used[reference] = true
				follow(target)
			} else {
				delete(node, "$ref") // its target was dropped
			}
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
		for name := range definitions {
			pointer := "#/" + keyword + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			leadsInto := func(reference string) bool { return reference == pointer || strings.HasPrefix(reference, pointer+"/") }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(used)), leadsInto) {
				delete(definitions, name)
			}
		}
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

// dropDeepLevels reduces objects and lists below the level deepestKept to their types.
func dropDeepLevels(root map[string]any) {
	var walk func(node map[string]any, depth int)
	walk = func(node map[string]any, depth int) {
		for _, sub := range subschemas(node) {
			inner, isObject := sub.schema.(map[string]any)
			if !isObject {
				continue
			}
			innerDepth := depth
			if sub.at == property || sub.at == element {
				innerDepth++
			}
			if innerDepth >= deepestKept && len(subschemas(inner)) > 0 {
				sub.replace(typeAlone(inner))
				continue
			}
			walk(inner, innerDepth)
		}
	}
	walk(root, 0)
}

// typeAlone returns a schema of the same type without the schemas of its properties or elements.
func typeAlone(node map[string]any) map[string]any {
	switch {
	case len(subschemas(node)) == 0:
		return onlyKeyword(node, "type")
	case node["type"] == "object":
		return map[string]any{"type": "object", "properties": map[string]any{}}
	case node["type"] == "array":
		return map[string]any{"type": "array", "items": map[string]any{}}
	}
	return map[string]any{}
}

// dropProperties reduces the root's properties to their types. If they are still too long together, it keeps only the
// required ones.
func dropProperties(root map[string]any) {
	properties, _ := root["properties"].(map[string]any)
	size := 0 // estimated bytes
	for name, value := range properties {
		node, _ := value.(map[string]any)
		properties[name] = typeAlone(node)
		size += len(name) + len(`"":{"type":"string"},`)
	}
	delete(root, "additionalProperties")
	if size <= maxFitted*3/4 {
		return
	}
	required, _ := root["required"].([]any)
	requiredProperties := map[string]any{}
	for _, name := range required {
		text, _ := name.(string)
		requiredProperties[text] = properties[text]
	}
	root["properties"] = requiredProperties
}
