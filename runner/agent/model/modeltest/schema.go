package modeltest

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// openAPISpec is OpenAI's published description of the Responses API (OpenAPI),
// reduced to its schemas.
//
//go:embed spec/responses.openapi.json
var openAPISpec []byte

// requestSchema is the published JSON Schema of a request's body.
type requestSchema struct {
	schema *jsonschema.Schema
	fields map[string]bool // every field that a body may have
}

// The schemas of requests. They are compiled once, because that is slow.
var (
	createSchema  = sync.OnceValue(func() *requestSchema { return compile("CreateResponse") })
	compactSchema = sync.OnceValue(func() *requestSchema { return compile("CompactResponseMethodPublicBody") })
)

// compile returns the request schema called name in openAPISpec. It panics on an invalid schema.
func compile(name string) *requestSchema {
	description, err := jsonschema.UnmarshalJSON(bytes.NewReader(openAPISpec))
	if err != nil {
		panic(err)
	}
	// The variants of an item are told apart by a discriminator, which JSON
	// Schema does not know; without it two of them may fit the same item.
	allowAnyVariant(description)
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("spec.json", description); err != nil {
		panic(err)
	}
	schema := compiler.MustCompile("spec.json#/components/schemas/" + name)
	fields := map[string]bool{}
	collectFields(schema, fields, map[*jsonschema.Schema]bool{})
	return &requestSchema{schema, fields}
}

// allowAnyVariant replaces oneOf by anyOf everywhere in a JSON Schema.
func allowAnyVariant(value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			allowAnyVariant(element)
		}
	case map[string]any:
		delete(v, "$recursiveAnchor") // of an older draft; a no-op here
		if variants, exists := v["oneOf"]; exists && v["anyOf"] == nil {
			v["anyOf"] = variants
			delete(v, "oneOf")
		}
		for _, element := range v {
			allowAnyVariant(element)
		}
	}
}

// collectFields adds the names of an object's fields, also from schemas that it refers to or combines. seen has
// the schemas visited so far.
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

// validate returns an error if a request's body does not fit the schema, or has an unknown field.
func (s *requestSchema) validate(raw []byte) error {
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	if err := s.schema.Validate(body); err != nil {
		return fmt.Errorf("the body does not fit the API's description: %w", err)
	}
	top, isObject := body.(map[string]any)
	if !isObject {
		return errors.New("the body is not an object")
	}
	for name := range top {
		if !s.fields[name] {
			return fmt.Errorf("unknown parameter: %q", name)
		}
	}
	return nil
}
