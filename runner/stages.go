package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/check/inspect"
	"github.com/agent-ci/agent-ci/runner/check/verify"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/repair"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/setup/start"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// open opens a place, and registers it as the start of the work.
func (r *runner) open(ctx context.Context, p *start.Place) (*ready, error) {
	opened, err := r.Open(ctx, p)
	if opened == nil {
		return nil, err
	}
	return r.registerWork(work{ready: &ready{Opened: opened}}).ready, err
}

// registerWork stores the state of the work for the run's end, and returns it.
func (r *runner) registerWork(w work) work {
	if w.ready != nil {
		w.Lessons.RecordChecks(w.baseline.Rows, w.verification.Rows)
	}
	r.end.work = w
	return w
}

// checks returns what runs the job's checks on the base and on changes. The deadline of ctx limits
// proofs of tests.
func (r *runner) checks(ctx context.Context, w work) verify.Checks {
	until, _ := ctx.Deadline()
	return verify.Checks{
		Record: r.Record, Sandboxes: w.Sandboxes, Workspace: w.Workspace, Job: w.Job(), ProofDeadline: until, BaselineCache: w.baselineCache, Branch: w.Task.Branch,
		Commit: func(base gitops.Base, when time.Time) (gitops.CommitOptions, error) { // the commit that publishing would make
			p := r.proposal(w)
			p.Base = base
			return r.Publisher(w.Project, w.Workspace).TrialCommit(&p, when)
		},
	}
}

// brief gives the agent its task, with guides, hook texts and images. A replay has no source: its images
// are in the recorded conversation.
func (r *runner) brief(ctx context.Context, rd *ready) (err error) {
	briefing := briefing.Briefing{Guides: rd.Guides, HookContext: rd.HookText, Task: briefing.Task{Source: rd.Task.Name, Title: rd.Task.Title, Text: rd.Task.Text}}
	if !rd.Task.WorksOnHead() {
		if briefing.FurtherGuides, err = worker.FurtherGuides(ctx, rd.Workspace.Checkout(), rd.Job().Repository.Path); err != nil {
			return err
		}
	}
	if rd.Source != nil {
		briefing.Task.Images, briefing.Task.MissingImages = rd.Source.Images(ctx, rd.Task)
	}
	return rd.Agent.Brief(briefing, rd.baseline.Rows)
}

// applyEarlierChange applies the change of the pull request that the run continues to the work tree, as
// if the agent had made it. It runs after the baseline, so configuration and checks stay the base's. It
// tells the agent about conflicts.
func (r *runner) applyEarlierChange(ctx context.Context, rd *ready) (found startingChange, err error) {
	if rd.Task.Mode != intake.Continue {
		return found, nil
	}
	from := rd.Project.Forge.Repository(rd.Source.Event.Repository)
	earlier, err := r.Forge(rd.Project, rd.Workspace).EarlierChange(ctx, from, rd.Task.Pull, rd.Workspace.Base(), rd.Lessons.ReproposeEarlier)
	if err != nil || earlier == nil {
		return found, err
	}
	found.change = earlier.Change
	if err := rd.Workspace.ApplyChange(ctx, earlier.Change); err != nil {
		return found, fmt.Errorf("go on with pull request #%d: %w", rd.Task.Pull.Number, err)
	}
	if earlier.Clean() {
		found.cleanMerge = rd.Repair != nil && rd.Repair.ConflictsWithBase && len(rd.Repair.Red) == 0
		return found, nil
	}
	r.Record.Warn("base_conflicts", "%s moved since pull request #%d was made, and the two conflict in %s; the agent was asked to merge them.",
		workspace.BaseName(rd.Workspace.Base()), rd.Task.Pull.Number, earlier.Names())
	return found, rd.Agent.Tell(earlier.DescribeUnmerged())
}

// followRecipe runs the job's recipe before the agent's first turn. It tells the agent the recipe's change
// and its red checks. done means that all checks are green and the agent need not work.
func (r *runner) followRecipe(ctx, untimed context.Context, w work, attempts int) (_ work, done bool, err error) {
	if w.Job().Recipe.Run == "" || attempts > 0 || w.AlreadyWorked() || w.Task.Subject != nil {
		return w, false, nil
	}
	if err := r.checks(ctx, w).Recipe(ctx); err != nil {
		return w, false, err
	}
	if w, err = r.takeChange(ctx, w.Place, w); err != nil {
		return w, false, err
	}
	allGreen := !slices.ContainsFunc(w.baseline.Rows, func(row transcript.VerifyRow) bool { return row.Before != "green" })
	switch {
	case w.Job().Recipe.Agent == "always" || len(w.Job().Verify) == 0:
		return w, false, r.reportRecipe(ctx, w, "")
	case w.change.Empty() && allGreen:
		w.summary = "The recipe changed nothing, and every check is green."
		return r.registerWork(w), true, nil
	case w.change.Empty():
		return w, false, nil
	}
	if w, err = r.verify(ctx, untimed, w, 1); err != nil {
		return w, false, err
	}
	if w.verification.Passed {
		w.summary = "The recipe made this change. Every check is green on it, and no model was asked."
		return r.registerWork(w), true, nil
	}
	words, err := r.checks(ctx, w).DescribeRed(w.verification, "")
	if err != nil {
		return w, false, err
	}
	return w, false, r.reportRecipe(ctx, w, words)
}

// reportRecipe saves the recipe's change for a resume on another machine. It tells the agent about the
// change, and about red checks, which words describes.
func (r *runner) reportRecipe(ctx context.Context, w work, words string) error {
	if w.change.Empty() {
		return nil
	}
	if err := w.Agent.SaveUncalledChange(ctx, w.change); err != nil {
		return err
	}
	message := r.checks(ctx, w).RecipeWords()
	if words != "" {
		message += "\n\n" + words
	}
	return w.Agent.Tell(message)
}

// takeTurns lets the agent work until it finishes or a budget stops it.
func (r *runner) takeTurns(ctx context.Context, w work) (work, error) {
	did, err := w.Agent.Run(ctx)
	w.stopped = did.BudgetStop
	return r.registerWork(w), err
}

// takeChange reads the agent's change from the work tree and saves it. It reverts changes to protected
// paths if the job says so.
func (r *runner) takeChange(ctx context.Context, p *start.Place, w work) (work, error) {
	change, dropped, err := p.Lessons.TakeChange(ctx)
	w.droppedPaths = dropped
	if change != nil {
		w.change = change
	}
	return r.registerWork(w), err
}

// markTimedOut marks work as stopped if limits.time has ended ctx. A run that was cancelled has ended
// untimed too, and is not marked.
func (r *runner) markTimedOut(ctx, untimed context.Context, w work) work {
	if w.stopped == nil && ctx.Err() != nil && untimed.Err() == nil {
		w.stopped = outcome.ForError(ctx, ctx.Err())
	}
	return r.registerWork(w)
}

// question asks the agent to look again, once for each reason: its end looks too early, its change may not
// be published, or the change does not support its claims. again means that the agent has to work again.
func (r *runner) question(ctx, untimed context.Context, w work) (_ work, again bool, err error) {
	if w.stopped == nil {
		again, err = w.Agent.QuestionEnd(w.change.Empty(), workspace.DescribeLeftovers(w.change))
	}
	if err != nil || again || w.change.Empty() {
		return w, again, err
	}
	if again, err = r.reportRefusal(ctx, untimed, w); err != nil || again {
		return w, again, err
	}
	return r.reportClaims(ctx, w)
}

// verify runs the checks on the change, even after limits.time has ended ctx.
func (r *runner) verify(ctx, untimed context.Context, w work, attempt int) (work, error) {
	table, err := r.checks(ctx, w).VerifyChange(untimed, attempt, w.change, w.baseline.Rows)
	if len(table.Rows) > 0 {
		w.verification = table
	}
	return r.registerWork(w), err
}

// reportRefusal tells the agent once why its change may not be published, and reports whether it did.
// If it cannot tell the agent, it returns the refusal as the error. For work stopped by a budget, it
// only enforces the limit on the change's size.
func (r *runner) reportRefusal(ctx, untimed context.Context, w work) (bool, error) {
	err := inGrace(ctx, untimed, func(ctx context.Context) error { return r.refusal(ctx, w) })
	refusal := (*outcome.Stop)(nil)
	if !errors.As(err, &refusal) {
		return false, err
	}
	if w.stopped != nil {
		if refusal.Outcome == outcome.BudgetExceeded {
			return false, refusal
		}
		return false, nil
	}
	if w.Job().VerifyAttempts > 0 {
		if again, err := w.Agent.ReportRefused(refusal.Message); err != nil || again {
			return again, err
		}
	}
	return false, refusal
}

// refusal returns why the change may not be published, as far as the agent can correct it. It looks for signs
// only if the job refuses them.
func (r *runner) refusal(ctx context.Context, w work) error {
	if err := w.judgeCase(w.change).Refusal(ctx); err != nil {
		return err
	}
	if p := w.Job().Policy; p.Silenced != "refuse" && p.WorkflowRisk != "refuse" {
		return nil
	}
	found, err := r.inspection(w, w.change).Signs(ctx)
	return cmp.Or(err, inspect.Refusal(w.Job().Policy, found))
}

// reportClaims tells the agent once which claims of its summary the change does not support. It reports
// whether it did.
func (r *runner) reportClaims(ctx context.Context, w work) (work, bool, error) {
	if w.stopped != nil || w.Job().VerifyAttempts == 0 {
		return w, false, nil
	}
	names, err := r.inspection(w, w.change).Claims(ctx)
	if err != nil {
		return w, false, err
	}
	if len(names) > 0 {
		again, err := w.Agent.ReportClaims("It names what is neither in your change nor in your calls: " + markdown.SomeFiles(names) + ".")
		return w, again, err
	}
	w.supportedChange = w.change
	return r.registerWork(w), false, nil
}

// reportChecks tells the agent about red checks or, once, about tests that prove nothing. It reports
// whether the agent has to work again.
func (r *runner) reportChecks(ctx context.Context, w work, attempt int) (work, bool, error) {
	agent := w.Agent
	if w.stopped != nil || attempt > w.Job().VerifyAttempts {
		return w, false, nil
	}
	if w.verification.Passed {
		words := verify.DescribeUnproven(w.verification)
		if words == "" {
			return w, false, nil
		}
		again, err := agent.ReportUnproven(words)
		return w, again, err
	}
	if w.stopped = agent.StopWithoutTurn(); w.stopped != nil {
		return r.registerWork(w), false, nil
	}
	words, err := r.checks(ctx, w).DescribeRed(w.verification, worker.StoppedWords)
	if err != nil {
		return w, false, err
	}
	return w, true, agent.Tell(words)
}

// stoppedUnlessDraft returns the outcome of work that a budget stopped. It returns nil if the work
// becomes a draft, or was not stopped.
func (w work) stoppedUnlessDraft() error {
	if w.stopped == nil || w.Job().Limits.OnBudget == "draft" && !w.change.Empty() {
		return nil
	}
	return w.stopped
}

// askOutput asks the agent for the object that the job's output schema describes. It does nothing without
// a schema, or if a budget stopped the work.
func (r *runner) askOutput(ctx context.Context, w work) (work, error) {
	if w.OutputSchema.Source == nil || w.stopped != nil {
		return w, nil
	}
	did, err := w.Agent.Output(ctx, w.OutputSchema)
	if err != nil {
		return w, err
	}
	if w.stopped = did.BudgetStop; w.stopped == nil {
		w.outputFile = worker.OutputFile
	}
	return r.registerWork(w), w.stoppedUnlessDraft()
}

// judge returns an error for a change that may not be published. Otherwise it returns the verdict with
// the change's description.
func (r *runner) judge(ctx context.Context, w work) (*verdict, error) {
	c := w.judgeCase(w.change)
	if w.change.Empty() {
		if err := c.RefuseExcludedOnly(); err != nil {
			return nil, err
		}
	} else if err := c.Judge(ctx); err != nil {
		return nil, err
	} else if err := r.inspect(ctx, w, w.Job(), w.change); err != nil {
		return nil, err
	}
	if before := w.repairedChange(); before != nil && !w.change.Empty() {
		if err := repair.RequireKeptTests(before, w.change, w.verification); err != nil {
			return nil, err
		}
	}
	if w.Task.Repair != nil && !w.change.Empty() {
		if err := w.Source.CheckNotStopped(ctx, w.Task.Pull.Number); err != nil {
			return nil, err
		}
	}
	p := r.proposal(w)
	if w.stopped == nil {
		p.Callbacks.Verify = r.checks(ctx, w).VerifyOnNewBase
	}
	return &verdict{w, p}, nil
}

// proposal returns the change with its description.
func (r *runner) proposal(w work) publish.Proposal {
	summary := r.end.summary()
	if summary == "" && w.Task.Repair != nil {
		summary = fmt.Sprintf("The change was laid over %s, as that is by now.", w.Workspace.Base().Branch)
	}
	p := publish.Proposal{
		Cost: r.Record.Cost(), RunID: r.Record.ID, Job: w.Job(), Task: w.Task, Base: w.Workspace.Base(), Change: w.change, Verification: w.verification,
		Summary: summary, Stopped: w.stopped, CommitFacts: publish.CommitFacts{Key: w.Key}, InCheckout: w.change, Inspection: &r.end.inspection, Hooks: w.Hooks,
		Callbacks: r.withInspection(w.ready, w.Lessons.Callbacks(w.repairedChange())),
	}
	if w.ResumedRun != nil {
		p.EarlierCommit = w.ResumedRun.CommitSHA()
	}
	return p
}

// inspect looks for signs in a change that a reviewer should see first, and records them. It returns an
// error if the job refuses such signs. It skips the search for unsupported claims if the same change
// already passed it.
func (r *runner) inspect(ctx context.Context, w work, j *job.Job, change *gitops.ChangeSet) (err error) {
	c := r.inspection(w, change)
	found, err := c.Signs(ctx)
	if err == nil && w.supportedChange != change {
		found.Claims, err = c.Claims(ctx)
	}
	if err != nil {
		return err
	}
	nothingFound := r.end.inspection.Empty() && found.Empty()
	r.end.inspection = found
	if !nothingFound {
		if err := r.Record.Append(transcript.TypeInspection, found); err != nil {
			return err
		}
	}
	return inspect.Refusal(j.Policy, found)
}

// inspection returns what inspects change, with the checks and the summary of w.
func (r *runner) inspection(w work, change *gitops.ChangeSet) inspect.Case {
	return inspect.Case{
		Record: r.Record, Checkout: w.Workspace.Checkout(), Job: w.Job(), Branch: w.Task.Branch, Baseline: w.baseline.Rows, Table: w.verification.Rows,
		Summary: r.end.summary(), Change: change,
	}
}

// withInspection returns f with a Judge that also inspects the change.
func (r *runner) withInspection(rd *ready, f publish.Callbacks) publish.Callbacks {
	judge := f.Judge
	f.Judge = func(ctx context.Context, j *job.Job, change *gitops.ChangeSet) error {
		if err := judge(ctx, j, change); err != nil {
			return err
		}
		return r.inspect(ctx, work{ready: rd, verification: r.end.work.verification}, j, change)
	}
	return f
}
