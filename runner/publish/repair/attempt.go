package repair

import (
	"context"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Attempt is a run's attempt to fix a pull request's red checks.
type Attempt struct {
	*Case
	Plan *Plan // nil before it is decided that there is something to fix

	thread *Thread
	rec    *record.Record
	bounds job.Repair
}

// NewAttempt returns the attempt for a repair request and adds its red checks to source. For other tasks it
// returns known, an earlier call's result, which may be nil. Nothing changes on the forge.
func NewAttempt(ctx context.Context, source *intake.Source, known *Attempt, pull *forge.PullRequest) (*Attempt, error) {
	if source.Request == nil || !source.Request.Repair {
		return known, nil
	}
	if known == nil {
		found, err := ReadCase(ctx, source.Forge.Repository(source.Event.Repository), pull, source.Head())
		if err != nil {
			return nil, err
		}
		known = &Attempt{Case: found}
	}
	source.Failing, source.Repair = known.Parts(), &intake.Repair{Head: known.Head}
	return known, nil
}

// Decide ends a run that has nothing to fix, or may not, and reports so on the pull request. link
// is the CI run's page; it may be empty.
func (a *Attempt) Decide(ctx context.Context, source *intake.Source, link string, bounds job.Repair) (*Attempt, error) {
	next := &Attempt{Case: a.Case, rec: source.Record, bounds: bounds, thread: &Thread{
		Server: source.Forge, Repository: source.Forge.Repository(source.Event.Repository), Number: a.Pull.Number,
		Run: source.Record.ID, Link: link, Redact: source.Record.Redact,
	}}
	var err error
	next.Plan, err = next.thread.Decide(ctx, a.Case, source.Head(), bounds)
	return next, err
}

// Begin counts the attempt.
func (a *Attempt) Begin(ctx context.Context) error {
	return a.thread.Attempt(ctx, a.Plan, a.bounds.Attempts)
}

// Conclude says on the pull request how the attempt ended. pushed is its commit; empty for none.
func (a *Attempt) Conclude(ctx context.Context, stop *outcome.Stop, cost *float64, pushed string) {
	here := a.rec.Path()
	message := strings.NewReplacer(here+"/", "", here, "the run directory").Replace(stop.Message) // its readers are not at this machine
	err := a.thread.Conclude(ctx, a.Case, AttemptEnd{
		Outcome: stop.Outcome, Reason: stop.Reason, Message: message, Commit: pushed,
		Spent: a.Plan.Attempt.SpentWith(cost), Last: a.Plan.Attempt.Attempt >= a.bounds.Attempts,
	})
	if err != nil {
		a.rec.Warn("comment_not_written", "The result of the repair could not be reported on the pull request: %v", err)
	}
}
