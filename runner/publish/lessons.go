package publish

import (
	"context"
	"errors"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// Lessons opens or updates a separate pull request for lessons, on a branch named by their content.
// It takes author, change and base from p. A closed one stays closed: that is an answer.
func Lessons(ctx context.Context, to Forge, p Proposal, told transcript.Lessons, name string) error {
	p.Summary, p.Stopped, p.InCheckout, p.EarlierCommit, p.described = "", nil, nil, "", described{lessons: &told}
	p.Table = transcript.Verify{Passed: true}
	p.Task = intake.Task{Key: name, Branch: intake.BranchPrefix + name, Actor: p.Task.Actor, ActorID: p.Task.ActorID}
	to.subject = transcript.OfLessons
	err := to.RequirePublishable(ctx, p.Task.Branch, p.Base)
	if stop := (*outcome.Stop)(nil); errors.As(err, &stop) && stop.Outcome == outcome.Skipped {
		return nil
	}
	if err != nil {
		return err
	}
	return publishOverTip(ctx, to, &p, new(Publication))
}
