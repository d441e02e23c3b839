package settings

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agent-ci/agent-ci/runner/outcome"
)

// OutputSchema is task.output_schema. The zero value is none.
type OutputSchema struct {
	Source   json.RawMessage // nil when the job has none
	resolved *jsonschema.Resolved
}

// ReadOutputSchema reads task.output_schema, which stands beside the job file.
func (s *Source) ReadOutputSchema(ctx context.Context, base Commit, from *Settings) (OutputSchema, error) {
	name := from.Job.Task.OutputSchema
	if name == "" {
		return OutputSchema{}, nil
	}
	content, err := s.ReadBeside(ctx, base, from, name, MaxFile)
	if err != nil {
		return OutputSchema{}, err
	}
	schema, err := ParseOutputSchema(content)
	if err != nil {
		return schema, outcome.Stopf(outcome.InvalidInput, "output_schema", "%s is no JSON Schema that can be used (%v); correct it.", name, err).Because(err)
	}
	return schema, nil
}

// ParseOutputSchema takes a JSON Schema.
func ParseOutputSchema(content []byte) (s OutputSchema, err error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(content, &schema); err != nil {
		return s, err
	}
	if s.resolved, err = schema.Resolve(nil); err != nil {
		return s, err
	}
	var compact json.RawMessage
	if err := json.Unmarshal(content, &compact); err != nil {
		return s, err
	}
	s.Source, err = json.Marshal(compact)
	return s, err
}

// Check says what is wrong with a value.
func (s OutputSchema) Check(raw json.RawMessage) error {
	var value map[string]any
	if err := json.Unmarshal(raw, &value); err != nil {
		return fmt.Errorf("it is not a JSON object: %w", err)
	}
	return s.resolved.Validate(value)
}
