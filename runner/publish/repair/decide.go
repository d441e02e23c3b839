package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// lastAttempt returns the number of the last attempt and the cost of all. The head commit's trailers have both.
// The comment may have later numbers, of attempts that pushed nothing; they count if it is about the same head.
func lastAttempt(head *forge.Commit, inComment state) intake.Repair {
	last := intake.Repair{HeadSHA: head.SHA}
	last.Attempt, last.SpentUSD = intake.ParseTrailers(head)
	if inComment.head == head.SHA {
		last.Attempt, last.SpentUSD = max(last.Attempt, inComment.attempts), max(last.SpentUSD, inComment.spentUSD)
	}
	return last
}

// Plan is the next attempt with its remaining budget.
type Plan struct {
	Attempt      intake.Repair
	RemainingUSD float64 // US dollars that the attempt may cost; 0 for no limit
}

// decide returns the plan of the next attempt. If there is nothing to fix, or a rerun or a person has to act,
// it reports that in the comment and returns an error.
func (t *thread) decide(ctx context.Context, c *Case, head *forge.Commit, limits job.Repair) (*Plan, error) {
	if err := t.readComment(ctx); err != nil {
		return nil, err
	}
	last := lastAttempt(head, t.storedState)
	t.setCase(c, last)
	stopWith := func(reason, format string, args ...any) (*Plan, error) {
		stop := outcome.Stopf(outcome.Skipped, reason, format, args...)
		if len(c.Red)+len(c.OnBase) == 0 && !c.ConflictsWithBase && t.id == 0 {
			return nil, stop // no comment: nothing is red, and none exists
		}
		sentence, _ := strings.CutSuffix(stop.Message, ": "+c.Pull.URL+".")
		t.conclusion = markdown.Text(sentence + ".") // escaped: it has names of checks
		if err := t.writeComment(ctx); err != nil {
			return nil, err
		}
		return nil, stop
	}
	pull := fmt.Sprintf("pull request #%d", c.Pull.Number)
	switch {
	case len(c.Red) == 0 && len(c.OnBase) > 0 && !c.ConflictsWithBase:
		return stopWith("red_on_base", "The checks that fail on %s fail on %s too (%s), so its change is not the cause; fix %s first: %s.",
			pull, c.Pull.Base, nameChecks(c.OnBase, ", "), c.Pull.Base, c.Pull.URL)
	case len(c.Red) == 0 && !c.ConflictsWithBase:
		return stopWith("nothing_red", "No check fails on %s, and it does not conflict with %s: %s.", pull, c.Pull.Base, c.Pull.URL)
	}
	if c.onlyInfrastructure() {
		rerunStarted, err := t.rerunFailedJobs(ctx, c)
		if err != nil {
			return nil, err
		}
		if rerunStarted {
			return stopWith("rerun_asked", "The failure on %s looks like one of the CI system (%s): the failed jobs run again, once: %s.",
				pull, nameChecks(c.Red, "; "), c.Pull.URL)
		}
	}
	switch {
	case last.Attempt >= limits.Attempts:
		t.listRemaining(c)
		return stopWith("repair_limit", "%s of %d to repair %s are used up (repair.attempts); it is left to a person: %s.",
			outcome.CountNoun(last.Attempt, "attempt"), limits.Attempts, pull, c.Pull.URL)
	case limits.CostUSD > 0 && last.SpentUSD >= limits.CostUSD:
		t.listRemaining(c)
		return stopWith("repair_limit", "Attempts to repair %s have cost $%.2f of $%.2f (repair.cost_usd); it is left to a person: %s.",
			pull, last.SpentUSD, limits.CostUSD, c.Pull.URL)
	}
	plan := &Plan{Attempt: last}
	plan.Attempt.Attempt++
	if limits.CostUSD > 0 {
		plan.RemainingUSD = limits.CostUSD - last.SpentUSD
	}
	return plan, nil
}

// onlyInfrastructure reports whether all red checks failed by infrastructure, so that an agent can fix nothing.
func (c *Case) onlyInfrastructure() bool {
	return len(c.Red) > 0 && !c.ConflictsWithBase && !slices.ContainsFunc(c.Red, func(r Red) bool { return r.Infrastructure == "" })
}

// rerunFailedJobs starts the failed jobs again, once for each head commit. It reports whether any started.
func (t *thread) rerunFailedJobs(ctx context.Context, c *Case) (started bool, err error) {
	if t.newState.rerunStarted {
		return false, nil
	}
	rerunIDs := map[int64]bool{}
	for _, red := range c.Red {
		run := c.runs[red.RunID]
		if run == nil || rerunIDs[run.ID] || run.Attempt > 1 {
			continue
		}
		rerunIDs[run.ID] = true
		err := t.Repository.RerunFailedJobs(ctx, run.ID)
		switch kind := forge.KindOf(err); {
		case err == nil:
			started = true
		case kind == forge.Forbidden:
			t.notes = append(t.notes, "The failed jobs could not be run again: the token lacks the permission `actions: write`.")
			return started, nil
		case kind == forge.Invalid:
			t.notes = append(t.notes, "The failed jobs could not be run again: "+markdown.Text(markdown.Cut(outcome.WithoutFullStop(err), 500))+".")
		default:
			return started, intake.ForgeFailure(fmt.Sprintf("The failed jobs of workflow run %d cannot be run again", run.ID), err)
		}
	}
	t.newState.rerunStarted = started
	return started, nil
}
