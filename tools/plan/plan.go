// Package plan holds the tool update_plan, with which a model reports its plan and progress. It checks plans and passes them
// to a receiver.
package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
)

// Step is one step of a plan.
type Step struct {
	Step   string `json:"step"`
	Status string `json:"status"` // pending, in_progress, completed
}

// Plan is a complete plan. It replaces the one before.
type Plan struct {
	Explanation string `json:"explanation"` // why the plan changed; may be empty
	Steps       []Step `json:"plan"`
}

var spec = tools.Spec{
	Name: "update_plan",
	Description: "Sets the task's plan: all its steps, each with a status. At most one step is in_progress at a time. " +
		"Call it again whenever a step is done or the plan changes.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"explanation":{"type":"string","description":"Why the plan changed, where that is not plain."},` +
		`"plan":{"type":"array","description":"All steps in order.","items":{"type":"object","properties":{` +
		`"step":{"type":"string","description":"What is done in this step, in a few words."},` +
		`"status":{"type":"string","enum":["pending","in_progress","completed"]}` +
		`},"required":["step","status"],"additionalProperties":false}}` +
		`},"required":["plan"],"additionalProperties":false}`),
}

// New returns the tool update_plan. setPlan receives each valid plan. If it returns an error, the call fails.
func New(setPlan func(Plan) error) tools.Tool {
	return tools.Tool{Spec: spec, Mutates: true, Run: tools.Decoded(func(_ context.Context, _ tools.Call, p Plan) (tools.Result, error) {
		if problem := p.problem(); problem != "" {
			return tools.Refuse("update_plan: " + problem), nil
		}
		if err := setPlan(p); err != nil {
			return tools.Result{}, fmt.Errorf("take the plan: %w", err)
		}
		return tools.Result{Output: "Plan updated"}, nil
	})}
}

// problem tells the model what is wrong with a plan that fits the schema, or returns "".
func (p Plan) problem() string {
	if len(p.Steps) == 0 {
		return "the plan has no steps; give all of them, with their statuses"
	}
	var inProgress []string
	for i, step := range p.Steps {
		if strings.TrimSpace(step.Step) == "" {
			return fmt.Sprintf("plan[%d].step is empty; say in a few words what is done in it", i)
		}
		if step.Status == "in_progress" {
			inProgress = append(inProgress, fmt.Sprintf("%q", step.Step))
		}
	}
	if len(inProgress) > 1 {
		return "at most one step can be in_progress, but these are: " + strings.Join(inProgress, ", ")
	}
	return ""
}
