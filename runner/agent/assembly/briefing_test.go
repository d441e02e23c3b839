package assembly

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

func TestReadsGuidesOfBaseCommit(t *testing.T) {
	o := site(t, &job.Job{}, map[string]string{
		"AGENTS.md": "Root.", "sub/AGENTS.md": strings.Repeat("x", settings.MaxFileBytes+1), "sub/deep/AGENTS.md": "Deep.", "sub/deep/er/AGENTS.md": "Deeper.",
		"other/AGENTS.md": "Other.", "sub/deeper/AGENTS.md": "Beside.",
	})
	var warned warnings
	guides := must.Get(ReadGuides(o.Workspace.Commit(), "sub/deep", warned.warn))(t)
	must.Same(t, []briefing.Guide{{Path: "AGENTS.md", Text: "Root."}, {Path: "sub/deep/AGENTS.md", Text: "Deep."}}, guides)
	must.Same(t, warnings{"guide_too_large"}, warned, "warned")
	for dir, want := range map[string][]string{
		"sub/deep":   {"er/AGENTS.md"},
		"./sub/deep": {"er/AGENTS.md"},
		"other":      nil,
		".":          {"other/AGENTS.md", "sub/AGENTS.md", "sub/deep/AGENTS.md", "sub/deep/er/AGENTS.md", "sub/deeper/AGENTS.md"},
	} {
		further := must.Get(FurtherGuides(t.Context(), o.Workspace.Checkout(), dir))(t)
		must.Same(t, want, further, "below", dir)
	}
}

func TestBriefingListsChecks(t *testing.T) {
	checks := []job.VerifyCheck{{Run: "make green", Must: "pass"}, {Run: "make red", Must: "pass"}, {Run: "make old", Must: "no_worse"}, {Run: "make later", Must: "pass"}}
	o := site(t, &job.Job{
		Setup: []job.SetupStep{{Run: "make deps"}}, Verify: checks, Task: job.Task{Expects: "answer"},
		Policy: job.Policy{Protect: []string{"*.lock"}, Change: job.Change{Protected: "drop"}}, Limits: job.Limits{DiffFiles: 3},
	}, nil)
	a := briefed(t, o, "  - output: [{say: unused}]\n")
	got := a.completeBriefing(briefing.Briefing{Guides: []briefing.Guide{{Path: "AGENTS.md", Text: "Say " + secret + "."}}},
		[]transcript.VerifyRow{{Before: "green", Log: "1.log"}, {Before: "red", Log: "2.log"}, {Before: "timeout", Log: "3.log", FailingMore: 2}})
	root, base := o.Workspace.SandboxPath(), o.Workspace.Base()
	want := briefing.Briefing{
		Place: briefing.Place{Root: root, Directory: root, Base: "main " + base.SHA, Sandbox: o.Sandboxes.DescribeFilesToModel(), Network: o.Sandboxes.DescribeNetworkToModel()},
		Ways:  briefing.ToolCallPhrases(),
		Setup: []string{"make deps"}, Protected: []string{"*.lock"}, MaxFiles: 3, Guides: []briefing.Guide{{Path: "AGENTS.md", Text: "Say [secret TOKEN]."}}, WantsAnswer: true,
		Verify: []briefing.Check{
			{Run: "make green"},
			{Run: "make red", Note: "before any change: red, see " + o.Record.Join("2.log") + "; it must become green"},
			{Run: "make old", Note: "before any change: timeout (2 failures), see " + o.Record.Join("3.log") + "; it may stay so"},
			{Run: "make later"},
		},
	}
	must.Same(t, want, got)
	o.Job.Policy.Change.Protected = "warn"
	must.None(t, a.completeBriefing(briefing.Briefing{}, nil).Protected, "changes are told not to be published, and are")
}

func TestQuestionsEarlyEnd(t *testing.T) {
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
			got := earlyEndQuestion(test.expects, test.steps, test.unchanged, test.left)
			if test.want == "" && got != "" || !strings.HasPrefix(strings.TrimPrefix(got, nudgeHead), test.want) || got != "" && !strings.HasPrefix(got, nudgeHead) {
				t.Errorf("told %q, want %q", got, test.want)
			}
		})
	}
}

// warnings keeps the codes of what people are warned of.
type warnings []string

func (w *warnings) warn(code, _ string, _ ...any) { *w = append(*w, code) }
