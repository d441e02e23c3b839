package config

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/task/form"
)

// Schema returns the format's JSON Schema (2020-12) for editors. The bytes are always the same. It
// describes the keys that this version accepts, but not the rules between keys nor all rules for texts. It
// rejects null, which loading treats as an unset key.
func (f *Format) Schema() []byte {
	schema := schemaOf(f.Root)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "agent-ci " + f.Name
	var out bytes.Buffer
	if err := plainjson.Write(&out, schema); err != nil {
		panic(err) // the tags hold nothing that JSON can't
	}
	return out.Bytes()
}

// schemaOf returns the JSON Schema of a key and of all keys below it.
func schemaOf(k *Key) map[string]any {
	if k.Foreign != nil && k.Shape == OpenMap {
		return k.Foreign.Schema
	}
	schema := map[string]any{"type": shapes[k.Shape].schema}
	if k.Scalars {
		schema["type"] = []string{"string", "number", "boolean"}
	}
	if k.Meaning != "" {
		schema["description"] = k.Meaning
	}
	if k.HasDefault() {
		schema["default"] = k.Default().Interface()
	}
	switch k.Shape {
	case Group:
		describeGroup(schema, k)
	case List:
		schema["items"] = schemaOf(k.Elem)
		if k.maxEntries > 0 {
			schema["maxItems"] = k.maxEntries
		}
		if k.NonEmpty {
			schema["minItems"] = 1
		}
	case TextMap, GroupMap:
		schema["additionalProperties"] = schemaOf(k.Elem)
		schema["propertyNames"] = addPattern(map[string]any{"minLength": 1}, k.Names)
		if k.maxEntries > 0 {
			schema["maxProperties"] = k.maxEntries
		}
	case Text:
		describeText(schema, k)
	case Integer:
		schema["minimum"], schema["maximum"] = k.Span.Min, k.Span.Max
	case Decimal:
		schema["minimum"] = 0
	case Either:
		delete(schema, "type")
		schema["anyOf"] = k.notationSchemas()
	case Undecoded:
		maps.Copy(schema, reflect.New(k.goType).Interface().(RawMapping).Schema())
	case Duration:
		schema["pattern"] = `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`
	}
	return schema
}

// notationSchemas returns the schemas of a MultiNotation, one of which must match: one for each notation. A
// key of its mapping that must stand alone gets a schema of its own.
func (k *Key) notationSchemas() (all []any) {
	for _, kind := range []yaml.Kind{yaml.ScalarNode, yaml.SequenceNode} {
		if k.notations[kind] != nil {
			all = append(all, schemaOf(k.notations[kind]))
		}
	}
	if mapping := k.notations[yaml.MappingNode]; mapping != nil {
		groups := [][]*Key{slices.DeleteFunc(slices.Clone(mapping.Keys), func(below *Key) bool { return below.Alone })}
		for _, below := range mapping.Keys {
			if below.Alone {
				groups = append(groups, []*Key{below})
			}
		}
		for _, keys := range groups {
			part := *mapping
			part.Keys = keys
			schema := schemaOf(&part)
			schema["minProperties"] = 1
			all = append(all, schema)
		}
	}
	return all
}

// describeGroup adds the keys of a group to its schema.
func describeGroup(schema map[string]any, k *Key) {
	properties, required := make(map[string]any), []string{}
	for _, below := range k.Keys {
		properties[below.Name] = schemaOf(below)
		if below.Required {
			required = append(required, below.Name)
		}
	}
	schema["properties"], schema["additionalProperties"] = properties, false
	if len(required) > 0 {
		schema["required"] = required
	}
}

// describeText adds the permitted values of a text, or its pattern, to its schema.
func describeText(schema map[string]any, k *Key) {
	if k.Values != nil {
		schema["enum"] = k.Values
		if k.Scalars { // YAML reads "true" and "false" as truth values
			all := []any{false, true}
			for _, value := range k.Values {
				all = append(all, value)
			}
			schema["enum"] = all
		}
		return
	}
	if k.NonEmpty || k.Required {
		schema["minLength"] = 1
		addPattern(schema, k.Form)
		return
	}
	if k.Form != nil && k.Form.Pattern != "" {
		schema["pattern"] = "^(?:" + k.Form.Pattern + ")?$"
	}
}

// addPattern adds the pattern of f to the schema of a non-empty text, and returns the schema.
func addPattern(schema map[string]any, f *form.Form) map[string]any {
	if f != nil && f.Pattern != "" {
		schema["pattern"] = "^(?:" + f.Pattern + ")$"
	}
	return schema
}
