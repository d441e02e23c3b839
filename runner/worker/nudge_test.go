package worker

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

func TestAnEndThatLooksTooEarlyIsPointedOut(t *testing.T) {
	open := []transcript.PlanStep{{Step: "Look", Status: "completed"}, {Step: "Mend", Status: "in_progress"}, {Step: "Test", Status: "pending"}}
	const left = " but for sub, which cannot be part of a change"
	for _, test := range []struct {
		name      string
		expects   string
		steps     []transcript.PlanStep
		unchanged bool
		left      string
		want      string // empty for no nudge
	}{
		{"a change without a plan", "change", nil, false, "", ""},
		{"a change and a plan that is done", "change", open[:1], false, "", ""},
		{"a change and steps that are open", "change", open, false, "", "your plan has open steps:\n- Mend\n- Test\nDo them now"},
		{"a change beside what is left out", "change", nil, false, left, ""},
		{"no change", "change", open, true, "", "nothing in the checkout has changed"},
		{"nothing but what is left out", "change", open, true, left, "nothing of your work can be published: the checkout is as it was but for sub"},
		{"an answer", "answer", nil, true, "", ""},
		{"an answer with steps that are open", "answer", open, true, "", "your plan has open steps"},
		{"an answer beside what is left out", "answer", nil, true, left, "nothing of your work can be published"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := nudgeFor(test.expects, test.steps, test.unchanged, test.left)
			if test.want == "" && got != "" || !strings.HasPrefix(strings.TrimPrefix(got, nudgeWords), test.want) || got != "" && !strings.HasPrefix(got, nudgeWords) {
				t.Errorf("told %q, want %q", got, test.want)
			}
		})
	}
}
