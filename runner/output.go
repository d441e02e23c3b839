package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// outputFile holds the object that task.output_schema describes.
const outputFile = "output.json"

// outputSchema is task.output_schema.
type outputSchema struct {
	source   json.RawMessage // nil when the job has none
	resolved *jsonschema.Resolved
}

// readOutputSchema reads task.output_schema, which stands beside the job file.
func (r *run) readOutputSchema(ctx context.Context) error {
	name := r.job.Task.OutputSchema
	if name == "" {
		return nil
	}
	if r.history != nil { // as it was when the run was started
		return r.output.read(r.history.Started.OutputSchema)
	}
	path := name
	if r.jobFile.path != "" {
		path = filepath.Join(filepath.Dir(r.jobFile.path), filepath.FromSlash(name))
	}
	file, err := r.readConfig(ctx, path)
	if err != nil {
		return err
	}
	if err := r.output.read(file.content); err != nil {
		return outcome.Stopf(outcome.InvalidInput, "output_schema", "%s is no JSON Schema that can be used (%v); correct it.", name, err).Because(err)
	}
	return nil
}

func (s *outputSchema) read(content []byte) error {
	var schema jsonschema.Schema
	if err := json.Unmarshal(content, &schema); err != nil {
		return err
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return err
	}
	var compact json.RawMessage
	if err := json.Unmarshal(content, &compact); err != nil {
		return err
	}
	s.resolved = resolved
	s.source, err = json.Marshal(compact)
	return err
}

// check says what is wrong with a value.
func (s *outputSchema) check(raw json.RawMessage) error {
	var value map[string]any
	if err := json.Unmarshal(raw, &value); err != nil {
		return fmt.Errorf("it is not a JSON object: %w", err)
	}
	return s.resolved.Validate(value)
}

// askOutput asks for the object that the job wants beside the change. A budget
// that is used up leaves none for it.
func (r *run) askOutput(ctx context.Context) error {
	if r.output.source == nil || r.overBudget != nil {
		return nil
	}
	value, wrong, err := r.conversation.Output(ctx, r.output.source, r.output.check)
	if err != nil {
		return r.withoutOutput(ctx, err)
	}
	if wrong != nil {
		return outcome.Stopf(outcome.ModelFailed, "output_schema",
			"The model did not give a result that fits task.output_schema (%s); check the schema, or run again.", trimmed(wrong)).Because(wrong)
	}
	if value, err = transcript.RedactJSON(value, r.redactor.Redact); err != nil {
		return err
	}
	if err := r.dir.write(outputFile, append(value, '\n')); err != nil {
		return err
	}
	r.outputFile = outputFile
	return nil
}

// withoutOutput is what becomes of the work when its output could not be had: a
// budget that is used up by then ends the run as it does in a turn.
func (r *run) withoutOutput(ctx context.Context, err error) error {
	stop := endOf(ctx, err)
	if stop.Outcome != outcome.BudgetExceeded {
		return err
	}
	r.overBudget = stop
	return r.overBudgetUnlessDraft()
}
