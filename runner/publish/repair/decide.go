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

// bounds count the attempts and dollars spent on a pull request so far.
type bounds struct {
	Attempts int
	Spent    float64
}

// readBounds reads them from the head commit and, for attempts without a push, from the comment if it
// is about the same head.
func readBounds(head *forge.Commit, noted state) bounds {
	b := bounds{}
	b.Attempts, b.Spent = intake.ParseTrailers(head)
	if noted.head == head.SHA {
		b.Attempts, b.Spent = max(b.Attempts, noted.attempts), max(b.Spent, noted.spentUSD)
	}
	return b
}

// Plan is the next attempt with its remaining budget.
type Plan struct {
	Attempt      intake.Repair
	RemainingUSD float64 // dollars that the attempt may cost; 0 for no bound
}

// decide returns the agent's next attempt. It ends a run without work, or one left to checks or a
// person, and reports so in the comment.
func (t *thread) decide(ctx context.Context, c *Case, head *forge.Commit, allowed job.Repair) (*Plan, error) {
	if err := t.read(ctx); err != nil {
		return nil, err
	}
	spent := readBounds(head, t.storedState)
	t.describeCase(c, spent)
	end := func(reason, format string, args ...any) (*Plan, error) {
		stop := outcome.Stopf(outcome.Skipped, reason, format, args...)
		if len(c.Red)+len(c.OnBase) == 0 && !c.ConflictsWithBase && t.id == 0 {
			return nil, stop // there is nothing to tell
		}
		here, _ := strings.CutSuffix(stop.Message, ": "+c.Pull.URL+".")
		t.end = markdown.Text(here + ".") // it has names of checks
		if err := t.write(ctx); err != nil {
			return nil, err
		}
		return nil, stop
	}
	pull := fmt.Sprintf("pull request #%d", c.Pull.Number)
	switch {
	case len(c.Red) == 0 && len(c.OnBase) > 0 && !c.ConflictsWithBase:
		return end("red_on_base", "What is red on %s is red on %s too (%s), and not of its change; mend %s first: %s.",
			pull, c.Pull.Base, list(c.OnBase, ", "), c.Pull.Base, c.Pull.URL)
	case len(c.Red) == 0 && !c.ConflictsWithBase:
		return end("nothing_red", "Nothing is red on %s, and it goes together with %s: %s.", pull, c.Pull.Base, c.Pull.URL)
	}
	if c.onlyInfrastructure() {
		asked, err := t.rerun(ctx, c)
		if err != nil {
			return nil, err
		}
		if asked {
			return end("rerun_asked", "What is red on %s looks like a failure of the machinery (%s): the failed jobs run again, once: %s.",
				pull, list(c.Red, "; "), c.Pull.URL)
		}
	}
	switch {
	case spent.Attempts >= allowed.Attempts:
		t.listRemaining(c)
		return end("repair_limit", "%s of %d to repair %s are used up (repair.attempts); it is left to a person: %s.",
			outcome.CountNoun(spent.Attempts, "attempt"), allowed.Attempts, pull, c.Pull.URL)
	case allowed.CostUSD > 0 && spent.Spent >= allowed.CostUSD:
		t.listRemaining(c)
		return end("repair_limit", "Attempts to repair %s have cost $%.2f of $%.2f (repair.cost_usd); it is left to a person: %s.",
			pull, spent.Spent, allowed.CostUSD, c.Pull.URL)
	}
	plan := &Plan{Attempt: intake.Repair{Head: c.Head, Attempt: spent.Attempts + 1, Spent: spent.Spent}}
	if allowed.CostUSD > 0 {
		plan.RemainingUSD = allowed.CostUSD - spent.Spent
	}
	return plan, nil
}

// onlyInfrastructure reports that only infrastructure failed, so an agent can fix nothing.
func (c *Case) onlyInfrastructure() bool {
	return len(c.Red) > 0 && !c.ConflictsWithBase && !slices.ContainsFunc(c.Red, func(r Red) bool { return r.Infrastructure == "" })
}

// rerun restarts failed jobs once, and reports whether any restarted.
func (t *thread) rerun(ctx context.Context, c *Case) (asked bool, err error) {
	if t.now.rerun {
		return false, nil
	}
	seen := map[int64]bool{}
	for _, red := range c.Red {
		run := c.runs[red.RunID]
		if run == nil || seen[run.ID] || run.Attempt > 1 {
			continue
		}
		seen[run.ID] = true
		err := t.Repository.RerunFailedJobs(ctx, run.ID)
		switch kind := forge.KindOf(err); {
		case err == nil:
			asked = true
		case kind == forge.Forbidden:
			t.sentences = append(t.sentences, "The failed jobs could not be run again: the token lacks the permission `actions: write`.")
			return asked, nil
		case kind == forge.Invalid:
			t.sentences = append(t.sentences, "The failed jobs could not be run again: "+markdown.Text(markdown.Cut(outcome.WithoutFullStop(err), 500))+".")
		default:
			return asked, intake.ForgeFailure(fmt.Sprintf("The failed jobs of workflow run %d cannot be run again", run.ID), err)
		}
	}
	t.now.rerun = asked
	return asked, nil
}
