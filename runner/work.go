package runner

import (
	"context"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/model"
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
		if words := r.nudge(); words != "" {
			r.nudged = true
			if err := r.conversation.Tell(words); err != nil {
				return err
			}
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

// letWork runs the agent until it ends or a budget is used up.
func (r *run) letWork(ctx context.Context) error {
	if done := r.endedBefore(); done {
		return nil
	}
	summary, err := r.converse(ctx)
	if summary != "" {
		r.summary = r.rec.Redact(summary) // as the transcript has it
	}
	r.endProcesses()
	if err == nil {
		return nil
	}
	stop := outcome.Of(ctx, err)
	if stop.Outcome != outcome.BudgetExceeded {
		return err
	}
	r.overBudget = stop
	return nil
}

// converse equips the agent and lets it take turns.
func (r *run) converse(ctx context.Context) (string, error) {
	if err := r.equip(ctx); err != nil {
		return "", err
	}
	r.kept = false // from here on the work is more than what was kept
	if err := r.catchUp(ctx); err != nil {
		return "", err
	}
	return r.conversation.Run(ctx)
}

// endedBefore says that the agent had ended before the run was killed.
func (r *run) endedBefore() bool {
	if r.history == nil {
		return false
	}
	words, ended := r.history.conversation.Ended()
	if ended {
		r.summary, r.history = words, nil
	}
	return ended
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

// nudgeWords begin every nudge.
const nudgeWords = "You ended, but "

// stoppedWords are for an agent that goes on after its end: with its last words
// its processes end.
const stoppedWords = "Commands that you had left running were stopped."

// nudge is what the agent is told, once, when its end looks too early.
func (r *run) nudge() string {
	if r.nudged || r.overBudget != nil || r.conversation.NearlySpent() != nil || !r.answersLeft() {
		return ""
	}
	if left := r.leftBehind(); left != "" && r.changes.Empty() {
		return nudgeWords + "nothing of your work can be published: the checkout is as it was" + left + ". A folder with a .git of its own, the commit of a submodule " +
			"and what nobody may read are never part of a change. Put that right, or end again and say why in your last message."
	}
	if r.job.Task.Expects == "change" && r.changes.Empty() {
		return nudgeWords + "nothing in the checkout has changed, and the task expects a change. If it can be made, make it now. " +
			"If nothing needs to change or it cannot be done, end again and say why in your last message. " + stoppedWords
	}
	var open []string
	for _, step := range r.plan.Steps {
		if step.Status != "completed" {
			open = append(open, "- "+step.Step)
		}
	}
	if len(open) == 0 {
		return ""
	}
	return nudgeWords + "your plan has open steps:\n" + strings.Join(open, "\n") +
		"\nDo them now, or bring the plan up to date and say in your last message what was left and why. " + stoppedWords
}

// answersLeft says that the model has more to say: a scripted session and a
// recorded run end with their last answer.
func (r *run) answersLeft() bool {
	if recorded := r.replayed(); recorded != nil {
		return recorded.next < len(recorded.answers)
	}
	script, scripted := r.scripted()
	return !scripted || script.Left() > 0
}

func (r *run) scripted() (*model.Script, bool) {
	retrying, ok := r.model.(*model.Retrying)
	if !ok {
		return nil, false
	}
	script, ok := retrying.Next.(*model.Script)
	return script, ok
}
