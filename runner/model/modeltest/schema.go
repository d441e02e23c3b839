package modeltest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// spec is OpenAI's published description of the Responses API (OpenAPI),
// reduced to its schemas.
//
//go:embed spec/responses.openapi.json
var spec []byte

// requestSchema is the description of a request's body.
type requestSchema struct {
	schema *jsonschema.Schema
	fields map[string]bool // every field that a body may have
}

// The descriptions of requests; they take long to read.
var (
	compiled        = sync.OnceValues(func() (*requestSchema, error) { return compile(spec, "CreateResponse") })
	compiledCompact = sync.OnceValues(func() (*requestSchema, error) { return compile(spec, "CompactResponseMethodPublicBody") })
)

// compile reads the description of a request by its name.
func compile(raw []byte, name string) (*requestSchema, error) {
	description, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read API description: %w", err)
	}
	// The variants of an item are told apart by a discriminator, which JSON
	// Schema does not know; without it two of them may fit the same item.
	loosen(description)
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("spec.json", description); err != nil {
		return nil, fmt.Errorf("read API description: %w", err)
	}
	schema, err := compiler.Compile("spec.json#/components/schemas/" + name)
	if err != nil {
		return nil, fmt.Errorf("read API description: %w", err)
	}
	fields := map[string]bool{}
	collectFields(schema, fields, map[*jsonschema.Schema]bool{})
	return &requestSchema{schema, fields}, nil
}

func loosen(value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			loosen(element)
		}
	case map[string]any:
		delete(v, "$recursiveAnchor") // of an older draft; a no-op here
		if variants, ok := v["oneOf"]; ok && v["anyOf"] == nil {
			v["anyOf"] = variants
			delete(v, "oneOf")
		}
		for _, element := range v {
			loosen(element)
		}
	}
}

func collectFields(s *jsonschema.Schema, fields map[string]bool, seen map[*jsonschema.Schema]bool) {
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	for name := range s.Properties {
		fields[name] = true
	}
	collectFields(s.Ref, fields, seen)
	for _, part := range s.AllOf {
		collectFields(part, fields, seen)
	}
}

func (s *requestSchema) validate(raw []byte) error {
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	if err := s.schema.Validate(body); err != nil {
		return fmt.Errorf("the body does not fit the API's description: %w", err)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil {
		return fmt.Errorf("the body is not an object: %w", err)
	}
	for name := range top {
		if !s.fields[name] {
			return fmt.Errorf("unknown parameter: %q", name)
		}
	}
	return nil
}
