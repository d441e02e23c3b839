// Package schematest holds documents to a schema as an editor does.
package schematest

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// Schema is a compiled JSON schema.
type Schema struct{ compiled *jsonschema.Schema }

// Compile compiles the schema of a format.
func Compile(t testing.TB, schema []byte) Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return Schema{compiled}
}

// Validate returns an error if the YAML document does not fit the schema.
func (s Schema) Validate(t testing.TB, document string) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(document), &value); err != nil {
		t.Fatal(err)
	}
	return s.compiled.Validate(value)
}
