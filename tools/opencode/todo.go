package opencode

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/plan"
)

// todo is a plan's step in OpenCode's form.
type todo struct {
	Content  string `json:"content"`
	Status   string `json:"status"`
	Priority string `json:"priority,omitempty"`
	ID       string `json:"id,omitempty"`
}

// cancelled is the status of a todo removed from the plan.
const cancelled = "cancelled"

var todoWriteSpec = tools.Spec{
	Name: "todowrite",
	Description: "Sets the task's todo list, which is its plan: all items, each with a status. At most one is in_progress at a time. " +
		"Call it again whenever one is done or the list changes.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"todos":{"type":"array","description":"All items in order.","items":{"type":"object","properties":{` +
		`"content":{"type":"string","description":"What is done, in a few words."},` +
		`"status":{"type":"string","enum":["pending","in_progress","completed","cancelled"]},` +
		`"priority":{"type":"string","description":"high, medium or low."},` +
		`"id":{"type":"string","description":"By which the item is known."}` +
		`},"required":["content","status"],"additionalProperties":false}}` +
		`},"required":["todos"],"additionalProperties":false}`),
}

// todoWrite returns the tool todowrite. It sets the plan with the tool setPlan, without cancelled todos.
func todoWrite(setPlan tools.Tool) tools.Tool {
	type arguments struct {
		Todos []todo `json:"todos"`
	}
	return tools.Tool{Spec: todoWriteSpec, Mutates: true, Run: tools.Decoded(func(ctx context.Context, _ tools.Call, a arguments) (tools.Result, error) {
		steps := []plan.Step{}
		for _, t := range a.Todos {
			if t.Status != cancelled {
				steps = append(steps, plan.Step{Step: t.Content, Status: t.Status})
			}
		}
		result, err := callTool(ctx, setPlan, todoWriteSpec.Name, map[string]any{"plan": steps})
		if err != nil || result.Failed {
			return result, err
		}
		return formatTodos(a.Todos)
	})}
}

var todoReadSpec = tools.Spec{
	Name:        "todoread",
	Description: "Returns the todo list.",
	Parameters:  json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
}

// todoRead returns the tool todoread. It shows the steps of the current plan.
func todoRead(current func() plan.Plan) tools.Tool {
	return tools.Tool{Spec: todoReadSpec, Run: tools.Decoded(func(context.Context, tools.Call, struct{}) (tools.Result, error) {
		todos := []todo{}
		for _, step := range current().Steps {
			todos = append(todos, todo{Content: step.Step, Status: step.Status})
		}
		return formatTodos(todos)
	})}
}

// formatTodos returns a todo list as a result for the model.
func formatTodos(todos []todo) (tools.Result, error) {
	var text strings.Builder
	if err := plainjson.Write(&text, todos); err != nil {
		return tools.Result{}, fmt.Errorf("write the todo list: %w", err)
	}
	return tools.Result{Output: strings.TrimSuffix(text.String(), "\n")}, nil
}
