package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

const (
	// mostFitted is how many bytes a schema may have before it is shortened: each request carries
	// the schemas of all tools.
	mostFitted = 5000
	// deepestKept is below which level objects are not described any more, in a schema that has to
	// be shortened so far.
	deepestKept = 3
	// mostPropertyName is how many bytes the name of an argument may have.
	mostPropertyName = 200
	// mostSchemaText is how many bytes a description in a schema may have.
	mostSchemaText = 2000
	// mostFits is how many schemas within a schema are made fit, one that is referred to each time.
	mostFits = 200_000
)

// FitSchema makes of the JSON Schema of somebody's tool one that a model can be told of: an object
// whose properties all have types, of the keywords that APIs of models know, and short. It is
// less strict than the original, never stricter in what it has; arguments are to be checked by
// the original. The error says why it is no schema of arguments.
func FitSchema(raw json.RawMessage) (json.RawMessage, error) {
	root, err := readSchema(raw)
	if err != nil {
		return nil, err
	}
	f := &fitting{root: root}
	fitted := f.schema(root)
	if err := f.flatten(fitted); err != nil {
		return nil, err
	}
	if f.fits > mostFits {
		return nil, fmt.Errorf("its schema has, or refers to, more than %d others", mostFits)
	}
	prune(fitted)
	for _, shorten := range []func(map[string]any){
		nil, dropDescriptions, dropDefinitions, dropDepths, dropCompositions, dropProperties,
	} {
		if shorten != nil {
			shorten(fitted)
		}
		short, err := json.Marshal(fitted)
		if err != nil {
			return nil, fmt.Errorf("write the schema: %w", err)
		}
		if len(short) <= mostFitted {
			return short, nil
		}
	}
	return json.RawMessage(`{"properties":{},"type":"object"}`), nil
}

func readSchema(raw json.RawMessage) (map[string]any, error) {
	var value any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &value); err != nil {
			return nil, fmt.Errorf("its schema cannot be read: %w", err)
		}
	}
	switch schema := value.(type) {
	case nil:
		return map[string]any{"type": "object"}, nil
	case bool:
		if schema {
			return map[string]any{"type": "object"}, nil
		}
		return nil, errors.New("its schema takes no arguments at all (false)")
	case map[string]any:
		return schema, nil
	}
	return nil, errors.New("its schema is no object")
}

// fitting makes one schema fit.
type fitting struct {
	root map[string]any
	fits int // schemas that were made fit; beyond mostFits none is any more
}

// kept are the keywords that stay as they are, with what their values must be: an API refuses a
// whole request for one that is not.
var kept = map[string]func(any) bool{
	"format": isText, "pattern": isText, "uniqueItems": isBool,
	"minLength": isNumber, "maxLength": isNumber, "minItems": isNumber, "maxItems": isNumber,
	"minProperties": isNumber, "maxProperties": isNumber, "multipleOf": isNumber,
	"minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber, "exclusiveMaximum": isNumber,
}

func isText(value any) bool   { _, ok := value.(string); return ok }
func isNumber(value any) bool { _, ok := value.(float64); return ok }
func isBool(value any) bool   { _, ok := value.(bool); return ok }

var typeNames = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// schema is a fit schema of a value. Those that take all values become text, which any value can
// be written as.
func (f *fitting) schema(value any) map[string]any {
	node, ok := value.(map[string]any)
	if f.fits++; !ok || f.fits > mostFits {
		return map[string]any{"type": "string"}
	}
	fit := map[string]any{}
	for keyword, fits := range kept {
		if v, there := node[keyword]; there && fits(v) {
			fit[keyword] = v
		}
	}
	for _, keyword := range []string{"description", "title"} {
		if text, _ := node[keyword].(string); Visible(text, mostSchemaText) != "" {
			fit[keyword] = Visible(text, mostSchemaText)
		}
	}
	f.enum(node, fit)
	f.reference(node, fit)
	f.compositions(node, fit)
	f.properties(node, fit)
	f.items(node, fit)
	f.kind(node, fit)
	return fit
}

// enum keeps the values, a constant as the only one.
func (f *fitting) enum(node, fit map[string]any) {
	if values, ok := node["enum"].([]any); ok && len(values) > 0 {
		fit["enum"] = values
	}
	if value, there := node["const"]; there {
		fit["enum"] = []any{value}
	}
}

// reference keeps one that can be followed within the schema, among its definitions.
func (f *fitting) reference(node, fit map[string]any) {
	for _, keyword := range []string{"$defs", "definitions"} {
		definitions, ok := node[keyword].(map[string]any)
		if !ok {
			continue
		}
		fitted := make(map[string]any, len(definitions))
		for name, definition := range definitions {
			fitted[name] = f.schema(definition)
		}
		fit[keyword] = fitted
	}
	text, _ := node["$ref"].(string)
	if _, ok := Referred(f.root, text); ok {
		fit["$ref"] = text
	}
}

func (f *fitting) compositions(node, fit map[string]any) {
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		branches, ok := node[keyword].([]any)
		if !ok || len(branches) == 0 {
			continue
		}
		fitted := make([]any, len(branches))
		for i, branch := range branches {
			fitted[i] = f.schema(branch)
		}
		fit[keyword] = fitted
	}
}

func (f *fitting) properties(node, fit map[string]any) {
	if properties, ok := node["properties"].(map[string]any); ok {
		fitted := make(map[string]any, len(properties))
		for name, property := range properties {
			if Visible(name, mostPropertyName) == name { // a model could not write another
				fitted[name] = f.schema(property)
			}
		}
		fit["properties"] = fitted
	}
	if required, ok := node["required"].([]any); ok {
		fit["required"] = slices.DeleteFunc(slices.Clone(required), func(name any) bool { return !isText(name) })
	}
	switch additional := node["additionalProperties"].(type) {
	case bool:
		_, patterns := node["patternProperties"]
		fit["additionalProperties"] = additional || patterns
	case map[string]any:
		fit["additionalProperties"] = f.schema(additional)
	}
}

func (f *fitting) items(node, fit map[string]any) {
	switch items := node["items"].(type) {
	case []any: // before 2020-12, what prefixItems is now
		fit["prefixItems"] = f.list(items)
	case map[string]any, bool:
		fit["items"] = f.schema(items)
	}
	if prefix, ok := node["prefixItems"].([]any); ok {
		fit["prefixItems"] = f.list(prefix)
	}
}

func (f *fitting) list(schemas []any) []any {
	fitted := make([]any, len(schemas))
	for i, s := range schemas {
		fitted[i] = f.schema(s)
	}
	return fitted
}

// kind gives the schema its type, as far as it can be known, and what a type has to have.
func (f *fitting) kind(node, fit map[string]any) {
	switch kind := node["type"].(type) {
	case string:
		if slices.Contains(typeNames, kind) {
			fit["type"] = kind
		}
	case []any:
		if kinds := knownTypes(kind); len(kinds) == 1 {
			fit["type"] = kinds[0]
		} else if len(kinds) > 1 {
			fit["type"] = kinds
		}
	}
	if _, typed := fit["type"]; !typed {
		if kind := inferred(fit); kind != nil {
			fit["type"] = kind
		} else if !composed(fit) {
			clear(fit)
			copyText(node, fit)
		}
	}
	if takesType(fit, "object") && fit["properties"] == nil && !composed(fit) {
		fit["properties"] = map[string]any{}
	}
	if takesType(fit, "array") && fit["items"] == nil && fit["prefixItems"] == nil {
		fit["items"] = map[string]any{"type": "string"}
	}
}

// copyText keeps what is said of a value of which nothing else is known.
func copyText(node, fit map[string]any) {
	if text, _ := node["description"].(string); Visible(text, mostSchemaText) != "" {
		fit["description"] = Visible(text, mostSchemaText)
	}
}

func knownTypes(kinds []any) []any {
	var known []any
	for _, kind := range kinds {
		if name, ok := kind.(string); ok && slices.Contains(typeNames, name) && !slices.Contains(known, kind) {
			known = append(known, name)
		}
	}
	return known
}

// composed says whether a schema says by others what it takes.
func composed(fit map[string]any) bool {
	for _, keyword := range []string{"$ref", "anyOf", "oneOf", "allOf"} {
		if _, there := fit[keyword]; there {
			return true
		}
	}
	return false
}

// inferred is the type, or the types, that the other keywords speak of, or nil.
func inferred(fit map[string]any) any {
	if composed(fit) {
		return nil
	}
	if values, ok := fit["enum"].([]any); ok {
		return typesOf(values)
	}
	for _, guess := range []struct {
		kind     string
		keywords []string
	}{
		{"object", []string{"properties", "required", "additionalProperties", "minProperties", "maxProperties"}},
		{"array", []string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
		{"string", []string{"format", "pattern", "minLength", "maxLength"}},
		{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	} {
		for _, keyword := range guess.keywords {
			if _, there := fit[keyword]; there {
				return guess.kind
			}
		}
	}
	return nil
}

// typesOf is the type that values have, or a list of their types.
func typesOf(values []any) any {
	var kinds []any
	for _, value := range values {
		kind := "null"
		switch value.(type) {
		case string:
			kind = "string"
		case float64:
			kind = "number"
		case bool:
			kind = "boolean"
		case []any:
			kind = "array"
		case map[string]any:
			kind = "object"
		}
		if !slices.Contains(kinds, any(kind)) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 1 {
		return kinds[0]
	}
	return kinds
}

func takesType(fit map[string]any, kind string) bool {
	switch kinds := fit["type"].(type) {
	case string:
		return kinds == kind
	case []any:
		return slices.Contains(kinds, any(kind))
	}
	return false
}

// flatten makes the root an object without a composition or reference, which APIs of models
// refuse there: properties of all branches are properties of it, and those are required that
// each call needs.
func (f *fitting) flatten(fit map[string]any) error {
	f.merge(fit, fit, true, map[string]bool{})
	for _, keyword := range []string{"$ref", "anyOf", "oneOf", "allOf", "enum"} {
		delete(fit, keyword)
	}
	switch kind := fit["type"].(type) {
	case nil:
		fit["type"] = "object"
	case string:
		if kind != "object" {
			return fmt.Errorf("its schema takes arguments of type %s; they must be an object", kind)
		}
	case []any:
		if !slices.Contains(kind, any("object")) {
			return errors.New("its schema takes no object as arguments")
		}
		fit["type"] = "object"
	}
	if fit["properties"] == nil {
		fit["properties"] = map[string]any{}
	}
	limitRequired(fit)
	return nil
}

// merge puts into a root what a branch of it says of properties.
func (f *fitting) merge(into, from map[string]any, always bool, seen map[string]bool) {
	if text, ok := from["$ref"].(string); ok && !seen[text] {
		seen[text] = true
		if to, ok := Referred(f.root, text); ok {
			f.absorb(into, f.schema(to), always, seen)
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := from[keyword].([]any)
		for _, branch := range branches {
			if b, ok := branch.(map[string]any); ok {
				f.absorb(into, b, always && (keyword == "allOf" || len(branches) == 1), seen)
			}
		}
	}
}

func (f *fitting) absorb(into, branch map[string]any, always bool, seen map[string]bool) {
	if properties, ok := branch["properties"].(map[string]any); ok {
		own, _ := into["properties"].(map[string]any)
		if own == nil {
			own = map[string]any{}
		}
		for name, property := range properties {
			if _, there := own[name]; !there {
				own[name] = property
			}
		}
		into["properties"] = own
	}
	if required, ok := branch["required"].([]any); ok && always {
		own, _ := into["required"].([]any)
		into["required"] = slices.Concat(own, required)
	}
	if into["type"] == nil && branch["type"] == "object" {
		into["type"] = "object"
	}
	if text, ok := branch["description"].(string); ok && into["description"] == nil && always {
		into["description"] = text
	}
	delete(into, "additionalProperties") // of the root alone, it would refuse those of the branches
	f.merge(into, branch, always, seen)
}

// limitRequired leaves of the required names those that the root has, each once.
func limitRequired(fit map[string]any) {
	required, _ := fit["required"].([]any)
	properties, _ := fit["properties"].(map[string]any)
	names, listed := []any{}, map[string]bool{}
	for _, name := range required {
		text, _ := name.(string)
		if _, there := properties[text]; there && !listed[text] {
			listed[text] = true
			names = append(names, name)
		}
	}
	delete(fit, "required")
	if len(names) > 0 {
		fit["required"] = names
	}
}

// prune takes away definitions that nothing leads to.
func prune(root map[string]any) {
	used, seen := map[string]bool{}, map[uintptr]bool{}
	var follow func(any)
	follow = func(at any) {
		node, ok := at.(map[string]any)
		if !ok || seen[identity(node)] {
			return
		}
		seen[identity(node)] = true
		if text, ok := node["$ref"].(string); ok && !used[text] {
			to, there := Referred(root, text)
			if there {
				used[text] = true
				follow(to)
			} else {
				delete(node, "$ref") // it led to what is not told to the model
			}
		}
		for _, sub := range subschemas(node) {
			if sub.at != aside {
				follow(sub.schema)
			}
		}
	}
	follow(root)
	for _, keyword := range []string{"$defs", "definitions"} {
		definitions, _ := root[keyword].(map[string]any)
		for name := range definitions {
			if !leadsTo(used, "#/"+keyword+"/"+escapePointer(name)) {
				delete(definitions, name)
			}
		}
		if len(definitions) == 0 {
			delete(root, keyword)
		}
	}
}
