package job

import (
	"bytes"
	"encoding/json"
)

// Schema is the JSON Schema (2020-12) of the job file, for editors: the same
// bytes every time. It describes what this version accepts. What it cannot say
// Load checks: how keys hang together, and some forms of text. It is stricter
// in one thing: a key written with null, which Load takes as not set.
func Schema() []byte { return encodeSchema(root(), "agent-ci job") }

func encodeSchema(of *key, title string) []byte {
	schema := schemaOf(of)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = title
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		panic(err) // the rules hold nothing that JSON can't
	}
	return out.Bytes()
}

func schemaOf(k *key) map[string]any {
	if k.foreign != nil && k.kind == openMap {
		return k.foreign.schema
	}
	schema := map[string]any{"type": kindNames[k.kind].schema}
	if k.scalars {
		schema["type"] = []string{"string", "number", "boolean"}
	}
	if k.about != "" {
		schema["description"] = k.about
	}
	if k.settled() {
		schema["default"] = k.defaultValue().Interface()
	}
	switch k.kind {
	case group:
		describeGroup(schema, k)
	case list:
		schema["items"] = schemaOf(k.elem)
		if k.most > 0 {
			schema["maxItems"] = k.most
		}
	case textMap, groupMap:
		schema["additionalProperties"] = schemaOf(k.elem)
		schema["propertyNames"] = textSchema(map[string]any{"minLength": 1}, k.names)
		if k.most > 0 {
			schema["maxProperties"] = k.most
		}
	case text:
		describeText(schema, k)
	case integer:
		schema["minimum"], schema["maximum"] = k.span.least, k.span.most
	case decimal:
		schema["minimum"] = 0
	case network:
		networkSchema(schema, k)
	case command:
		commandSchema(schema)
	case template:
		templateSchema(schema)
	case length:
		schema["pattern"] = `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`
	}
	return schema
}

// templateSchema names the keys of a job. Their values may be of a target.
func templateSchema(schema map[string]any) {
	properties := make(map[string]any)
	for _, k := range root().keys {
		properties[k.name] = map[string]any{"description": k.about}
	}
	schema["properties"], schema["additionalProperties"] = properties, false
}

// settled reports whether k has a value when nothing sets it; a required key,
// a command and an element of a list have none.
func (k *key) settled() bool {
	return k.about != "" && k.kind != group && k.kind != command && k.kind != template && !k.required
}

func describeGroup(schema map[string]any, k *key) {
	properties, required := make(map[string]any), []string{}
	for _, below := range k.keys {
		properties[below.name] = schemaOf(below)
		if below.required {
			required = append(required, below.name)
		}
	}
	schema["properties"], schema["additionalProperties"] = properties, false
	if len(required) > 0 {
		schema["required"] = required
	}
}

func describeText(schema map[string]any, k *key) {
	if k.values != nil {
		schema["enum"] = k.values
		if k.scalars { // of which true and false are some
			schema["enum"] = append([]any{false, true}, anys(k.values)...)
		}
		return
	}
	if k.filled || k.required {
		schema["minLength"] = 1
		textSchema(schema, k.form)
		return
	}
	if k.form != nil && k.form.pattern != "" {
		schema["pattern"] = "^(?:" + k.form.pattern + ")?$"
	}
}

func anys(values []string) []any {
	all := make([]any, len(values))
	for i, value := range values {
		all[i] = value
	}
	return all
}

// textSchema adds what f asks of a text that isn't empty.
func textSchema(schema map[string]any, f *form) map[string]any {
	if f != nil && f.pattern != "" {
		schema["pattern"] = "^(?:" + f.pattern + ")$"
	}
	return schema
}
