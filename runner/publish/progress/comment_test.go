package progress

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// board is a repository where a comment is written in a test.
type board struct {
	forge.Repository
	created int
	bodies  []string
	err     error
}

func (b *board) CreateComment(_ context.Context, _ int, body string) (*forge.Comment, error) {
	b.created++
	return &forge.Comment{ID: 1}, b.EditComment(context.Background(), 1, body)
}

func (b *board) EditComment(_ context.Context, _ int64, body string) error {
	b.bodies = append(b.bodies, body)
	return b.err
}

func (b *board) comment() *comment {
	return &comment{Thread: Thread{Repository: b}, stage: "starting"}
}

// watching returns a watch that shows events in a comment.
func watching(c *comment) *Watch {
	w := &Watch{}
	w.comment.Store(c)
	return w
}

func planned(t *testing.T, status string) transcript.Event {
	t.Helper()
	return event(t, transcript.TypePlan, transcript.Plan{Steps: []transcript.PlanStep{{Step: "Greet @octocat", Status: status}}})
}

func TestCommentUpdatesEveryFifteenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		p := b.comment()
		show := shownOn(watching(p))
		p.update(t.Context(), p.runningText(&transcript.View{}), transcript.Plan{})
		for _, step := range []struct {
			after time.Duration
			event transcript.Event
		}{
			{time.Second, planned(t, "pending")},
			{time.Second, event(t, transcript.TypeModelRequest, transcript.ModelRequest{})},
			{13 * time.Second, planned(t, "in_progress")}, // the 15th second
			{14 * time.Second, planned(t, "completed")},
			{time.Second, event(t, transcript.TypeToolStarted, transcript.ToolStarted{})}, // shows the plan that waited
			{time.Hour, event(t, transcript.TypeToolStarted, transcript.ToolStarted{})},   // nothing is new
		} {
			time.Sleep(step.after)
			show(step.event)
		}
		want := []string{
			intake.ProgressMark + "agent-ci is starting.\n",
			intake.ProgressMark + "agent-ci is at work.\n\n- [ ] Greet @&#8203;octocat *(in progress)*\n",
			intake.ProgressMark + "agent-ci is at work.\n\n- [x] Greet @&#8203;octocat\n",
		}
		must.Same(t, want, b.bodies)
		must.Same(t, 1, b.created, "comments")
	})
}

func TestRetriesFailedCommentLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{err: errors.New("no permission")}
		p := b.comment()
		show := shownOn(watching(p))
		p.update(t.Context(), p.runningText(&transcript.View{}), transcript.Plan{})
		pass := func(seconds, attempts int) {
			t.Helper()
			for range seconds {
				time.Sleep(time.Second)
				show(event(t, transcript.TypeToolStarted, transcript.ToolStarted{}))
			}
			must.Same(t, attempts, len(b.bodies))
		}
		pass(29, 1)
		pass(1, 2)
		pass(59, 2)
		b.err = nil
		pass(1, 3)
		must.Do(t, p.err)
		show(planned(t, "pending"))
		pass(15, 4)
	})
}

// mostUnits is how long GitHub lets a comment be, in UTF-16 code units.
const mostUnits = 65_536

func TestCommentFitsGitHubLimit(t *testing.T) {
	long, evil := strings.Repeat("@", 20_000), strings.Repeat("@#1 <\n", 1<<10)
	plan := transcript.Plan{Steps: slices.Repeat([]transcript.PlanStep{{Step: long, Status: "in_progress"}}, 200)}
	b := &board{}
	var w Watch
	w.comment.Store(b.comment())
	must.Do(t, w.Conclude(t.Context(), End{Stop: outcome.Stopf(outcome.VerifyFailed, "red", "%s", long), View: &transcript.View{Conversation: transcript.Conversation{Plan: plan}, ChangeState: transcript.ChangeState{Verify: &transcript.Verify{Attempt: 1, Rows: []transcript.VerifyRow{
		{Name: evil, After: "red", Tail: evil, Failing: []transcript.FailingTest{{Name: evil, Message: evil, New: true}}}, {Name: "small", After: "red", Tail: "the end"},
	}}}}}))
	body := b.bodies[0]
	if units := markdown.Units(body); units > mostUnits {
		t.Errorf("it has %d units", units)
	}
	must.Contain(t, body, " more ", "<summary>Tests of <b>")
}
