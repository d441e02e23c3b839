// Package schematest holds documents to a schema as an editor does.
package schematest

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/must"
)

// Schema is a compiled JSON schema.
type Schema struct{ compiled *jsonschema.Schema }

// Compile compiles the schema of a format.
func Compile(t testing.TB, schema []byte) Schema {
	t.Helper()
	document := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(schema)))(t)
	compiler := jsonschema.NewCompiler()
	must.Do(t, compiler.AddResource("schema.json", document))
	return Schema{must.Get(compiler.Compile("schema.json"))(t)}
}

// Validate returns an error if the YAML document does not fit the schema.
func (s Schema) Validate(t testing.TB, document string) error {
	t.Helper()
	var value any
	must.Do(t, yaml.Unmarshal([]byte(document), &value))
	return s.compiled.Validate(value)
}
