package runner

import (
	"context"
	"time"

	"github.com/agent-ci/agent-ci/runner/outcome"
)

// workUntilVerified lets the agent work, takes the change set and verifies it.
// An end that looks too early is pointed out once, a red row goes back to the
// agent verify_attempts times. Work that a budget ended is verified and kept:
// limits.time ends the agent's work, and no check that has a time limit of its own.
func (r *run) workUntilVerified(ctx context.Context) error {
	for attempt := r.attempts + 1; ; {
		if err := r.letWork(ctx); err != nil {
			return err
		}
		if err := r.inGrace(ctx, r.takeChanges); err != nil {
			return err
		}
		r.noteTime(ctx)
		if err := r.waitsForAnswers(); err != nil {
			return err
		}
		if nudged, err := r.nudge(); err != nil {
			return err
		} else if nudged {
			continue
		}
		if err := r.judgeSize(); err != nil {
			return err
		}
		if r.changes.Empty() || len(r.job.Verify) == 0 || r.untimed.Err() != nil {
			break
		}
		if err := r.verify(r.untimed, attempt); err != nil {
			return err
		}
		r.noteTime(ctx)
		if r.table.Passed || r.overBudget != nil || attempt > r.job.VerifyAttempts {
			break
		}
		if r.overBudget = r.conversation.NearlySpent(); r.overBudget != nil {
			break
		}
		if err := r.giveBack(); err != nil {
			return err
		}
		attempt++
	}
	return r.overBudgetUnlessDraft()
}

// nudge points out an end that looks too early.
func (r *run) nudge() (bool, error) {
	if r.overBudget != nil {
		return false, nil
	}
	return r.conversation.Nudge(r.changes.Empty(), r.leftBehind())
}

// graceTime is how long a run whose time is over may take to keep its work, and
// as long again to publish it.
const graceTime = time.Minute

// inGrace does what keeps work, also when the time of the run is over or nearly.
func (r *run) inGrace(ctx context.Context, work func(context.Context) error) error {
	end, limited := ctx.Deadline()
	if !limited {
		return work(ctx)
	}
	if least := time.Now().Add(graceTime); end.Before(least) {
		end = least
	}
	late, cancel := context.WithDeadline(r.untimed, end)
	defer cancel()
	return work(late)
}

// noteTime takes it that limits.time has ended the work.
func (r *run) noteTime(ctx context.Context) {
	if r.overBudget == nil && ctx.Err() != nil && r.untimed.Err() == nil {
		r.overBudget = outcome.Of(ctx, ctx.Err())
	}
}

// overBudgetUnlessDraft ends a run that a budget ended, unless its work is to
// be published as a draft.
func (r *run) overBudgetUnlessDraft() error {
	if r.overBudget == nil || r.job.Limits.OnBudget == "draft" && !r.changes.Empty() {
		return nil
	}
	return r.overBudget
}

// publishWork publishes the change, also when the time of the run is over and
// the job wants its work all the same.
func (r *run) publishWork(ctx context.Context) error { return r.inGrace(ctx, r.publishChange) }
