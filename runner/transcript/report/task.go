package report

import (
	"cmp"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// overviewBytes is the most of one text of the overview.
const overviewBytes = 12_000

// overviewProse is a text of the overview; nothing says so where there is none.
func overviewProse(text, nothing string) g.Node {
	all := prose(cutProse(limit(overviewBytes), text))
	if len(all) == 0 {
		return sentence(nothing)
	}
	return g.Map(all, block.node)
}

func (o *overview) summarySection() g.Node {
	if !o.begun() {
		return nil
	}
	return section("summary", "Summary",
		h.Div(h.Class("prose"), overviewProse(o.View.Summary(), "The agent left no summary.")),
	)
}

func (o *overview) taskSection() g.Node {
	var source g.Node
	if from := o.source(); from.Value != "" {
		source = h.P(h.Class("source"), g.Text(from.Name+": "), from.value())
	}
	return section("task", "What was asked",
		source,
		h.Div(h.Class("prose quote"), overviewProse(o.View.Task.Text, "No task is recorded.")),
	)
}

// source is where the task came from; it has no value where that is not recorded.
func (o *overview) source() fact {
	t := o.View.Task
	if t.Issue != "" {
		return fact{Name: "Issue", Value: field(t.Issue), Link: link(t.URL)}
	}
	return fact{Name: "From", Value: field(t.Source)}
}

func (o *overview) planSection() g.Node {
	if !o.begun() {
		return nil
	}
	plan := o.View.Plan
	steps := sentence("The agent made no plan.")
	if len(plan.Steps) > 0 {
		steps = h.Ol(h.Class("plan"), g.Map(shownOf(plan.Steps), planStep))
	}
	return section("plan", "Plan",
		sentence(shownText(plan.Explanation, 1000)),
		steps,
		sentence(moreRows("step", len(plan.Steps))),
	)
}

var stepState = map[string]string{"completed": "done", "in_progress": "in progress"}

func planStep(s transcript.PlanStep) g.Node {
	return h.Li(
		h.Span(h.Class("sign"), h.Aria("hidden", "true"), g.Text(signOf(s.Status))),
		g.Text(" "+shownText(s.Step, 500)+" "),
		h.Span(h.Class("state"), g.Text(cmp.Or(stepState[s.Status], "not done"))),
	)
}
