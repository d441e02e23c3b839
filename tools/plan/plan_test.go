package plan_test

import (
	"errors"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/plan"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

func call(t *testing.T, take func(plan.Plan) error, name, input string) tools.Result {
	t.Helper()
	return toolstest.Call(t.Context(), plan.New(take), name, input)
}

func TestUpdatePlan(t *testing.T) {
	for _, test := range []struct {
		name, tool, input string
		want              plan.Plan
	}{
		{
			"all states", "update_plan",
			`{"explanation":"why","plan":[{"step":"a","status":"completed"},{"step":"b","status":"in_progress"},{"step":"c","status":"pending"}]}`,
			plan.Plan{Explanation: "why", Steps: []plan.Step{{"a", "completed"}, {"b", "in_progress"}, {"c", "pending"}}},
		},
		{
			"another agent's", "TodoWrite", `{"todos":[{"content":"a","status":"pending","activeForm":"doing a"}]}`,
			plan.Plan{Steps: []plan.Step{{"a", "pending"}}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got plan.Plan
			result := call(t, func(p plan.Plan) error { got = p; return nil }, test.tool, test.input)
			if result.Output != "Plan updated" || result.Failed {
				t.Errorf("result is %+v", result)
			}
			must.Same(t, test.want, got)
		})
	}
}

func TestUpdatePlanRefuses(t *testing.T) {
	for _, test := range []struct{ name, input, want string }{
		{"two in progress", `{"plan":[{"step":"a","status":"in_progress"},{"step":"b","status":"in_progress"}]}`, `at most one step can be in_progress, but these are: "a", "b"`},
		{"unknown status", `{"plan":[{"step":"a","status":"done"}]}`, `plan[].status: expected one of "pending", "in_progress", "completed", got "done"`},
		{"no steps", `{"plan":[]}`, "the plan has no steps"},
		{"empty step", `{"plan":[{"step":" ","status":"pending"}]}`, "plan[0].step is empty"},
		{"no plan", `{}`, `expected "plan"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			must.Contain(t, toolstest.Failure(t, call(t, func(plan.Plan) error { t.Error("the plan was taken"); return nil }, "update_plan", test.input)), test.want)
		})
	}
}

func TestFailedUpdateFailsCall(t *testing.T) {
	result := call(t, func(plan.Plan) error { return errors.New("disk full") }, "update_plan", `{"plan":[{"step":"a","status":"pending"}]}`)
	must.Same(t, "update_plan failed: take the plan: disk full", toolstest.Failure(t, result))
}
