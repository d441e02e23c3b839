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
	// maxFitted is how many bytes a schema may have before it is shortened: each request carries
	// the schemas of all tools.
	maxFitted = 5000
	// deepestKept is the level below which objects are not described any more in a shortened schema.
	deepestKept = 3
	// maxPropertyName is how many bytes the name of an argument may have.
	maxPropertyName = 200
	// maxSchemaText is how many bytes a description in a schema may have.
	maxSchemaText = 2000
	// maxFits is how many schemas within a schema are made fit, counting each reference.
	maxFits = 200_000
)

// Fit returns the JSON Schema of a foreign tool in the form for models: a short object whose
// properties have types, of the keywords that APIs of models know. It accepts what the original accepts;
// check arguments by the original. The error says why it is no schema of arguments.
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
		func(map[string]any) {}, dropKeywords("description", "title"), dropDefinitions, dropDeepLevels, dropKeywords("anyOf", "oneOf", "allOf"), dropProperties,
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

// readSchema parses a schema. A missing one, null and true accept any object.
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

// fitting makes one schema fit.
type fitting struct {
	root  map[string]any
	count int // schemas that were made fit; beyond maxFits none is any more
}

// scalars are the keywords whose values stay as they are, if they are of the right type: an API refuses a
// whole request for one that is not.
var scalars = map[string]kinds{
	"format": kindString, "pattern": kindString, "uniqueItems": kindBoolean,
	"minLength": kindNumber, "maxLength": kindNumber, "minItems": kindNumber, "maxItems": kindNumber,
	"minProperties": kindNumber, "maxProperties": kindNumber, "multipleOf": kindNumber,
	"minimum": kindNumber, "maximum": kindNumber, "exclusiveMinimum": kindNumber, "exclusiveMaximum": kindNumber,
}

// fitSchema returns a fit schema of a value. One that accepts all values becomes text, as which any value can be
// written.
func (f *fitting) fitSchema(value any) map[string]any {
	node, ok := value.(map[string]any)
	if f.count++; !ok || f.count > maxFits {
		return map[string]any{"type": "string"}
	}
	fit := map[string]any{}
	for keyword, value := range node {
		if v := f.fitKeyword(keyword, value); v != nil {
			fit[keyword] = v
		}
	}
	if value, exists := node["const"]; exists {
		fit["enum"] = []any{value}
	}
	if tuple, is := node["items"].([]any); is && fit["prefixItems"] == nil { // before 2020-12
		fit["prefixItems"] = f.fitList(tuple)
	}
	if _, patterns := node["patternProperties"]; patterns && fit["additionalProperties"] == false {
		fit["additionalProperties"] = true
	}
	return withType(fit)
}

// fitKeyword returns the value of a keyword in a fit schema, or nil.
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
		if _, ok := ResolveReference(f.root, text); ok {
			return text
		}
	case "anyOf", "oneOf", "allOf", "prefixItems":
		if len(list) > 0 {
			return f.fitList(list)
		}
	case "properties", "$defs", "definitions":
		if named, ok := value.(map[string]any); ok {
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

func (f *fitting) fitList(schemas []any) []any {
	fitted := make([]any, len(schemas))
	for i, s := range schemas {
		fitted[i] = f.fitSchema(s)
	}
	return fitted
}

// knownTypes returns the types that are known, each once.
func (f *fitting) knownTypes(value any) any {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var known []any
	for _, kind := range list {
		if kindOfType(kind) != 0 && !slices.Contains(known, kind) {
			known = append(known, kind)
		}
	}
	return oneOrAll(known)
}

// oneOrAll returns the only one of some types, or all; nil for none.
func oneOrAll(kinds []any) any {
	switch len(kinds) {
	case 0:
		return nil
	case 1:
		return kinds[0]
	}
	return kinds
}

// withType returns a schema with its type, as far as that can be known, and what that type has to have.
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

// onlyKeyword returns a schema with one of its keywords.
func onlyKeyword(fit map[string]any, keyword string) map[string]any {
	if value, exists := fit[keyword]; exists {
		return map[string]any{keyword: value}
	}
	return map[string]any{}
}

// isComposed reports whether a schema says by others what it takes.
func isComposed(fit map[string]any) bool {
	return slices.ContainsFunc([]string{"$ref", "anyOf", "oneOf", "allOf"}, func(keyword string) bool { return fit[keyword] != nil })
}

// typeHints are the keywords by which a type is known that a schema does not name.
var typeHints = []struct {
	kind     string
	keywords []string
}{
	{"object", []string{"properties", "required", "additionalProperties", "minProperties", "maxProperties"}},
	{"array", []string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
	{"string", []string{"format", "pattern", "minLength", "maxLength"}},
	{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
}

// inferType returns the type, or the types, of a schema that names none, or nil.
func inferType(fit map[string]any) any {
	if values, ok := fit["enum"].([]any); ok {
		var all []any
		for _, value := range values {
			if kind := kindsOf(value).String(); !slices.Contains(all, any(kind)) {
				all = append(all, kind)
			}
		}
		return oneOrAll(all)
	}
	for _, hint := range typeHints {
		if slices.ContainsFunc(hint.keywords, func(keyword string) bool { return fit[keyword] != nil }) {
			return hint.kind
		}
	}
	return nil
}

func allowsType(fit map[string]any, kind string) bool {
	list, _ := fit["type"].([]any)
	return fit["type"] == kind || slices.Contains(list, any(kind))
}

// flatten makes the root an object without a composition or reference, which APIs of models
// refuse there: it gets the properties of all branches, and requires those that each call needs.
func (f *fitting) flatten(fit map[string]any) error {
	f.mergeBranches(fit, fit, true, map[string]bool{})
	for _, keyword := range []string{"$ref", "anyOf", "oneOf", "allOf", "enum"} {
		delete(fit, keyword)
	}
	if kind, single := fit["type"].(string); single && kind != "object" {
		return fmt.Errorf("its schema takes arguments of type %s; they must be an object", kind)
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

// mergeBranches adds the properties of the schemas that from is composed of. isAlwaysApplied means that each
// call must match from. seen contains the references already followed.
func (f *fitting) mergeBranches(into, from map[string]any, isAlwaysApplied bool, seen map[string]bool) {
	if text, ok := from["$ref"].(string); ok && !seen[text] {
		seen[text] = true
		if to, ok := ResolveReference(f.root, text); ok {
			f.mergeBranch(into, f.fitSchema(to), isAlwaysApplied, seen)
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := from[keyword].([]any)
		for _, branch := range branches {
			if b, ok := branch.(map[string]any); ok {
				f.mergeBranch(into, b, isAlwaysApplied && (keyword == "allOf" || len(branches) == 1), seen)
			}
		}
	}
}

// mergeBranch adds a branch's properties to a schema. It adds the required names and the description too if the
// branch always applies.
func (f *fitting) mergeBranch(into, branch map[string]any, isAlwaysApplied bool, seen map[string]bool) {
	if properties, ok := branch["properties"].(map[string]any); ok {
		existing, _ := into["properties"].(map[string]any)
		into["properties"] = properties
		maps.Copy(properties, existing)
	}
	if required, ok := branch["required"].([]any); ok && isAlwaysApplied {
		existing, _ := into["required"].([]any)
		into["required"] = slices.Concat(existing, required)
	}
	if into["type"] == nil && branch["type"] == "object" {
		into["type"] = "object"
	}
	if text, ok := branch["description"].(string); ok && into["description"] == nil && isAlwaysApplied {
		into["description"] = text
	}
	delete(into, "additionalProperties") // of the root alone, it would refuse those of the branches
	f.mergeBranches(into, branch, isAlwaysApplied, seen)
}

// limitRequired keeps required names of existing properties, without duplicates.
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

// dropUnusedDefinitions removes definitions that nothing leads to.
func dropUnusedDefinitions(root map[string]any) {
	used, seen := map[string]bool{}, map[uintptr]bool{}
	var follow func(any)
	follow = func(at any) {
		node, ok := at.(map[string]any)
		if !ok || seen[pointerOf(node)] {
			return
		}
		seen[pointerOf(node)] = true
		if text, ok := node["$ref"].(string); ok && !used[text] {
			to, exists := ResolveReference(root, text)
			if exists {
				used[text] = true
				follow(to)
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
			leads := func(reference string) bool { return reference == pointer || strings.HasPrefix(reference, pointer+"/") }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(used)), leads) {
				delete(definitions, name)
			}
		}
		if len(definitions) == 0 {
			delete(root, keyword)
		}
	}
}

// The stages by which a schema is shortened, in their order; each leaves a schema that accepts no less.

// dropKeywords removes keywords everywhere.
func dropKeywords(keywords ...string) func(root map[string]any) {
	return func(root map[string]any) {
		walkSchema(root, func(node map[string]any) {
			for _, keyword := range keywords {
				delete(node, keyword)
			}
		})
	}
}

// dropDefinitions removes the definitions; a reference to one then allows any value.
func dropDefinitions(root map[string]any) {
	walkSchema(root, func(node map[string]any) {
		if _, exists := node["$ref"]; exists {
			clear(node)
		}
		delete(node, "$defs")
		delete(node, "definitions")
	})
}

// dropDeepLevels leaves of deep objects and lists only their types.
func dropDeepLevels(root map[string]any) {
	var walk func(node map[string]any, depth int)
	walk = func(node map[string]any, depth int) {
		for _, sub := range subschemas(node) {
			inner, ok := sub.schema.(map[string]any)
			if !ok {
				continue
			}
			below := depth
			if sub.at == property || sub.at == element {
				below++
			}
			if below >= deepestKept && len(subschemas(inner)) > 0 {
				sub.replace(typeAlone(inner))
				continue
			}
			walk(inner, below)
		}
	}
	walk(root, 0)
}

// typeAlone returns a schema of the same type that describes nothing below.
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

// dropProperties reduces the root's properties to types, and too many to the required ones.
func dropProperties(root map[string]any) {
	properties, _ := root["properties"].(map[string]any)
	size := 0
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
