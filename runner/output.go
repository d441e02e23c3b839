package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// outputFile holds the object that task.output_schema describes.
const outputFile = "output.json"

// askOutput asks for the object that the job wants beside the change. A budget
// that is used up leaves none for it.
func (r *run) askOutput(ctx context.Context) error {
	if r.output.Source == nil || r.overBudget != nil {
		return nil
	}
	value, wrong, err := r.conversation.Output(ctx, r.output.Source, r.output.Check)
	if err != nil {
		return r.withoutOutput(ctx, err)
	}
	if wrong != nil {
		return outcome.Stopf(outcome.ModelFailed, "output_schema",
			"The model did not give a result that fits task.output_schema (%s); check the schema, or run again.", outcome.Trimmed(wrong)).Because(wrong)
	}
	if value, err = transcript.RedactJSON(value, r.rec.Redact); err != nil {
		return err
	}
	if err := r.rec.Write(outputFile, append(value, '\n')); err != nil {
		return err
	}
	r.outputFile = outputFile
	return nil
}

// withoutOutput is what becomes of the work when its output could not be had: a
// budget that is used up by then ends the run as it does in a turn.
func (r *run) withoutOutput(ctx context.Context, err error) error {
	stop := outcome.Of(ctx, err)
	if stop.Outcome != outcome.BudgetExceeded {
		return err
	}
	r.overBudget = stop
	return r.overBudgetUnlessDraft()
}
