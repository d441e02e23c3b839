package publish

import (
	"context"
	"errors"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// Lessons opens a pull request of its own for a change of nothing but lessons, or brings that of
// its branch up to date, which is named by what the lessons are. Of p it takes who publishes, and
// the change with its base. One that a person closed is an answer, and stays closed.
func Lessons(ctx context.Context, to Forge, p Proposal, told transcript.Lessons, name string) error {
	p.lessons, p.Summary, p.Stopped, p.InCheckout, p.Committed, p.notes, p.facts, p.earlier = &told, "", nil, nil, "", nil, nil, nil
	p.Table = transcript.Verify{Passed: true}
	p.Task = intake.Task{Key: name, Branch: intake.BranchPrefix + name, Actor: p.Task.Actor, ActorID: p.Task.ActorID}
	to.of = transcript.OfLessons
	err := to.Ready(ctx, p.Task.Branch, p.Base)
	if stop := (*outcome.Stop)(nil); errors.As(err, &stop) && stop.Outcome == outcome.Skipped {
		return nil
	}
	if err != nil {
		return err
	}
	return publishOver(ctx, to, &p, new(Publication))
}
