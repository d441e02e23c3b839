package progress

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// TestProgressCommentGolden keeps the comment while a run is at work and at its end,
// for a look at it in a browser (e2e/browser).
func TestProgressCommentGolden(t *testing.T) {
	const run = "https://github.com/octo/widgets/actions/runs/123456789"
	b := &board{}
	c := b.comment()
	c.stage, c.Run, c.Artifacts = stages[transcript.TypeModelRequest], run, run+"#artifacts"
	plan := transcript.Plan{Steps: []transcript.PlanStep{
		{Step: "Look at loop.go", Status: "completed"},
		{Step: "Mend <script>evil()</script> of @octocat, see https://evil.example/x and [y](https://evil.example/y)", Status: "in_progress"},
	}}
	c.update(t.Context(), c.runningText(&transcript.View{}), plan)
	w := watching(c)
	end := End{
		Stop: outcome.Stopf(outcome.Changed, "pull_request", "Done."), Site: transcript.Site{Server: "https://github.com", Repository: "octo/widgets"},
		View: &transcript.View{Finished: &transcript.RunFinished{Seconds: 7}, Conversation: transcript.Conversation{Plan: plan}, ChangeState: transcript.ChangeState{
			PublishSteps: []transcript.Publish{{Step: "pull_request", Number: 8, URL: "https://github.com/octo/widgets/pull/8", Operation: "created"}},
			Change:       &transcript.Change{Files: []changeset.File{{Path: "loop.go", Status: "M"}}},
			Verify:       &transcript.Verify{Attempt: 1, Passed: true, Rows: []transcript.VerifyRow{{Name: "tests", Before: "red", After: "green", Passed: true}}},
		}},
	}
	for range 2 { // the second has no comment to conclude
		must.Do(t, w.Conclude(t.Context(), end))
	}
	must.Same(t, 2, len(b.bodies), "the comment was written")
	for i, path := range []string{"testdata/running.md", "testdata/ended.md"} {
		golden.Compare(t, path, b.bodies[i])
	}
}
