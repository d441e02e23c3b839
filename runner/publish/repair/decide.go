package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
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

// decide sets the next attempt. If there is nothing to fix, or a rerun or a person has to act, it reports that in
// the comment and returns an error.
func (a *Attempt) decide(ctx context.Context, head *forge.Commit) error {
	if err := a.readComment(ctx); err != nil {
		return err
	}
	last := lastAttempt(head, a.storedState)
	a.newState, a.redSummary = a.stateAfter(last), a.listRed()
	pull := fmt.Sprintf("pull request #%d", a.Pull.Number)
	switch {
	case len(a.Red) == 0 && len(a.OnBase) > 0 && !a.ConflictsWithBase:
		return a.stopWith(ctx, "red_on_base", "The checks that fail on %s fail on %s too (%s), so its change is not the cause; fix %s first: %s.",
			pull, a.Pull.Base, nameChecks(a.OnBase, ", "), a.Pull.Base, a.Pull.URL)
	case len(a.Red) == 0 && !a.ConflictsWithBase:
		return a.stopWith(ctx, "nothing_red", "No check fails on %s, and it does not conflict with %s: %s.", pull, a.Pull.Base, a.Pull.URL)
	}
	if a.onlyInfrastructure() {
		rerunStarted, err := a.rerunFailedJobs(ctx)
		if err != nil {
			return err
		}
		if rerunStarted {
			return a.stopWith(ctx, "rerun_asked", "The failure on %s looks like one of the CI system (%s): the failed jobs run again, once: %s.",
				pull, nameChecks(a.Red, "; "), a.Pull.URL)
		}
	}
	switch { // whether a further attempt is allowed
	case last.Attempt >= a.limits.Attempts:
		a.listRemaining()
		return a.stopWith(ctx, "repair_limit", "%s of %d to repair %s are used up (repair.attempts); it is left to a person: %s.",
			transcript.CountNoun(last.Attempt, "attempt"), a.limits.Attempts, pull, a.Pull.URL)
	case a.limits.CostUSD > 0 && last.SpentUSD >= a.limits.CostUSD:
		a.listRemaining()
		return a.stopWith(ctx, "repair_limit", "Attempts to repair %s have cost $%.2f of $%.2f (repair.cost_usd); it is left to a person: %s.",
			pull, last.SpentUSD, a.limits.CostUSD, a.Pull.URL)
	}
	a.Next = last
	a.Next.Attempt++
	if a.limits.CostUSD > 0 {
		a.RemainingUSD = a.limits.CostUSD - last.SpentUSD
	}
	return nil
}

// stopWith returns an outcome, and reports it in the comment. It makes no comment if nothing is red.
func (a *Attempt) stopWith(ctx context.Context, reason, format string, args ...any) error {
	stop := outcome.Stopf(outcome.Skipped, reason, format, args...)
	isGreen := len(a.Red)+len(a.OnBase) == 0 && !a.ConflictsWithBase
	if hasComment := a.id != 0; isGreen && !hasComment {
		return stop
	}
	sentence, _ := strings.CutSuffix(stop.Message, ": "+a.Pull.URL+".")
	a.conclusion = markdown.Text(sentence + ".") // escaped: it has names of checks
	if err := a.writeComment(ctx); err != nil {
		return err
	}
	return stop
}

// onlyInfrastructure reports whether all red checks failed by infrastructure, so that an agent can fix nothing.
func (c *Case) onlyInfrastructure() bool {
	return len(c.Red) > 0 && !c.ConflictsWithBase && !slices.ContainsFunc(c.Red, func(r Red) bool { return r.Infrastructure == "" })
}

// rerunFailedJobs starts the failed jobs again, once for each head commit. It reports whether any started.
func (a *Attempt) rerunFailedJobs(ctx context.Context) (started bool, err error) {
	if a.newState.rerunStarted {
		return false, nil
	}
	rerunIDs := map[int64]bool{}
	for _, red := range a.Red {
		run := a.runs[red.RunID]
		if run == nil || rerunIDs[run.ID] || run.Attempt > 1 {
			continue
		}
		rerunIDs[run.ID] = true
		err := a.repository.RerunFailedJobs(ctx, run.ID)
		switch kind := forge.KindOf(err); {
		case err == nil:
			started = true
		case kind == forge.Forbidden:
			a.notes = append(a.notes, "The failed jobs could not be run again: the token lacks the permission `actions: write`.")
			return started, nil
		case kind == forge.Invalid:
			a.notes = append(a.notes, "The failed jobs could not be run again: "+markdown.Text(markdown.Cut(outcome.WithoutFullStop(err), 500))+".")
		default:
			return started, intake.ForgeFailure(fmt.Sprintf("The failed jobs of workflow run %d cannot be run again", run.ID), err)
		}
	}
	a.newState.rerunStarted = started
	return started, nil
}
