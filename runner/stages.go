package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
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

// openRun opens the sandboxes and makes the agent (start.Opened), and registers them for the run's end. ready
// is nil if there is nothing to close.
func (r *runner) openRun(ctx context.Context, p *start.Place) (*ready, error) {
	opened, err := r.Open(ctx, p)
	if opened == nil {
		return nil, err
	}
	return r.registerWork(work{ready: &ready{Opened: opened}}).ready, err
}

// registerWork stores the state of the work for the run's end and as evidence for lessons, and returns it.
func (r *runner) registerWork(w work) work {
	if w.ready != nil {
		w.Lessons.RecordChecks(w.baseline.Rows, w.verification.Rows)
	}
	r.end.work = w
	return w
}

// newChecks returns the runner of the job's checks for the state w of the work. The deadline of ctx limits
// the checks that prove tests.
func (r *runner) newChecks(ctx context.Context, w work) verify.Checks {
	until, _ := ctx.Deadline()
	return verify.Checks{
		Record: r.Record, Sandboxes: w.Sandboxes, Workspace: w.Workspace, Job: w.Job(), ProofDeadline: until, BaselineCache: w.baselineCache, Branch: w.Task.Branch,
		Commit: func(base gitops.Base, when time.Time) (gitops.CommitOptions, error) { // the commit that publishing would make
			p := r.newProposal(w)
			p.Base = base
			return r.Publisher(w.Project, w.Workspace).TrialCommit(&p, when)
		},
	}
}

// briefAgent gives the agent its task, with guides, hook texts and images. A replay has no source: its images
// are in the recorded conversation.
func (r *runner) briefAgent(ctx context.Context, rd *ready) (err error) {
	briefing := briefing.Briefing{Guides: rd.Guides, HookContext: rd.HookText, Task: briefing.Task{Source: rd.Task.Name, Title: rd.Task.Title, Text: rd.Task.Text}}
	if !rd.Task.WorksOnHead() {
		if briefing.FurtherGuides, err = assembly.FurtherGuides(ctx, rd.Workspace.Checkout(), rd.Job().Repository.Path); err != nil {
			return err
		}
	}
	if rd.Source != nil {
		briefing.Task.Images, briefing.Task.MissingImages = rd.Source.FetchImages(ctx, rd.Task)
	}
	return rd.Agent.Brief(briefing, rd.baseline.Rows)
}

// applyEarlierChange applies the change of the pull request that the run continues to the work tree, as
// if the agent had made it, and stores it in rd. It runs after the baseline, so configuration and checks
// stay the base's. It tells the agent about conflicts.
func (r *runner) applyEarlierChange(ctx context.Context, rd *ready) error {
	if rd.Task.Mode() != intake.Continue {
		return nil
	}
	earlier, err := r.Forge(rd.Project, rd.Workspace).EarlierChange(ctx, rd.Project.Forge.Repository(rd.Source.Event.Repository), rd.Task.Pull, rd.Workspace.Base(), rd.Lessons.ReproposeEarlier)
	if err != nil || earlier == nil {
		return err
	}
	rd.earlierChange = earlier.Change
	if err := rd.Workspace.ApplyChange(ctx, earlier.Change); err != nil {
		return fmt.Errorf("go on with pull request #%d: %w", rd.Task.Pull.Number, err)
	}
	if earlier.Clean() {
		rd.cleanMerge = rd.Repair != nil && rd.Repair.ConflictsWithBase && len(rd.Repair.Red) == 0
		return nil
	}
	r.Record.Warn("base_conflicts", "%s moved since pull request #%d was made, and the two conflict in %s; the agent was asked to merge them.",
		workspace.BaseName(rd.Workspace.Base()), rd.Task.Pull.Number, publish.DescribeConflicts(earlier.Conflicts))
	return rd.Agent.Tell(earlier.DescribeUnmerged())
}

// followRecipe runs the job's recipe before the agent's first turn, and tells the agent its change and the
// failed checks. done means that every check passes, so the agent need not work. It does nothing if a resumed
// run has got further (earlierAttempts counts its verifications), or if the task only wants feedback.
func (r *runner) followRecipe(ctx, untimed context.Context, w work, earlierAttempts int) (_ work, done bool, err error) {
	if w.Job().Recipe.Run == "" || earlierAttempts > 0 || w.AlreadyWorked() || w.Task.Subject != nil {
		return w, false, nil
	}
	if err := r.newChecks(ctx, w).RunRecipe(ctx); err != nil {
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
	if w, err = r.verifyChange(ctx, untimed, w, 1); err != nil {
		return w, false, err
	}
	if w.verification.Passed {
		w.summary = "The recipe made this change. Every check is green on it, and no model was asked."
		return r.registerWork(w), true, nil
	}
	failures, err := r.newChecks(ctx, w).DescribeRed(w.verification, "")
	if err != nil {
		return w, false, err
	}
	return w, false, r.reportRecipe(ctx, w, failures)
}

// reportRecipe tells the agent about the recipe's change, and about failed checks if failures describes
// some. It also saves the change, so that a run resumed on another machine has it.
func (r *runner) reportRecipe(ctx context.Context, w work, failures string) error {
	if w.change.Empty() {
		return nil
	}
	if err := w.Agent.SaveUncalledChange(ctx, w.change); err != nil {
		return err
	}
	message := r.newChecks(ctx, w).DescribeRecipe()
	if failures != "" {
		message += "\n\n" + failures
	}
	return w.Agent.Tell(message)
}

// takeTurns lets the agent work until it finishes or a budget stops it.
func (r *runner) takeTurns(ctx context.Context, w work) (work, error) {
	turns, err := w.Agent.Run(ctx)
	w.stopped = turns.BudgetStop
	return r.registerWork(w), err
}

// takeChange reads the agent's change from the work tree of p, saves it, and returns w with it. If the job says
// so, it leaves changes to protected files out; droppedPaths lists those.
func (r *runner) takeChange(ctx context.Context, p *start.Place, w work) (work, error) {
	change, dropped, err := p.Lessons.TakeChange(ctx)
	w.droppedPaths = dropped
	if change != nil {
		w.change = change
	}
	return r.registerWork(w), err
}

// markTimedOut marks work as stopped if limits.time has ended ctx. It does not mark a cancelled run, whose
// untimed has ended too.
func (r *runner) markTimedOut(ctx, untimed context.Context, w work) work {
	if w.stopped == nil && ctx.Err() != nil && untimed.Err() == nil {
		w.stopped = outcome.ForError(ctx, ctx.Err())
	}
	return r.registerWork(w)
}

// askToReconsider returns again if the agent has to work again, once for each reason: its end looks too early,
// its change may not be published, or the change does not support its claims.
func (r *runner) askToReconsider(ctx, untimed context.Context, w work) (_ work, again bool, err error) {
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

// verifyChange runs the checks on the change, even after limits.time has ended ctx.
func (r *runner) verifyChange(ctx, untimed context.Context, w work, attempt int) (work, error) {
	table, err := r.newChecks(ctx, w).VerifyChange(untimed, attempt, w.change, w.baseline.Rows)
	if len(table.Rows) > 0 {
		w.verification = table
	}
	return r.registerWork(w), err
}

// reportRefusal tells the agent once why its change may not be published. told is false if the change may
// be published, or if a budget already stopped the agent. The error is the refusal if the agent was told
// before, or if a stopped agent's change is too large.
func (r *runner) reportRefusal(ctx, untimed context.Context, w work) (told bool, err error) {
	err = runWithGrace(ctx, untimed, func(ctx context.Context) error { return r.reasonToRefuse(ctx, w) })
	switch refusal, isRefusal := errors.AsType[*outcome.Stop](err); {
	case isRefusal && w.stopped != nil && refusal.Outcome != outcome.BudgetExceeded:
		return false, nil
	case isRefusal && w.stopped == nil && w.Job().VerifyAttempts > 0:
		if told, err := w.Agent.ReportRefused(refusal.Message); err != nil || told {
			return told, err
		}
	}
	return false, err
}

// reasonToRefuse returns an *outcome.Stop if the change may not be published as it is, but the agent could
// correct it. It searches for suspicious signs only if the job refuses them.
func (r *runner) reasonToRefuse(ctx context.Context, w work) error {
	if err := w.judgeCase(w.change).Refusal(ctx); err != nil {
		return err
	}
	if p := w.Job().Policy; p.Silenced != "refuse" && p.WorkflowRisk != "refuse" {
		return nil
	}
	found, err := r.inspectionCase(w, w.change).Signs(ctx)
	return cmp.Or(err, inspect.Refusal(w.Job().Policy, found))
}

// reportClaims tells the agent once which claims of its summary the change does not support. again reports
// whether it did. A change without such claims is stored as supportedChange.
func (r *runner) reportClaims(ctx context.Context, w work) (_ work, again bool, err error) {
	if w.stopped != nil || w.Job().VerifyAttempts == 0 {
		return w, false, nil
	}
	names, err := r.inspectionCase(w, w.change).Claims(ctx)
	if err != nil {
		return w, false, err
	}
	if len(names) > 0 {
		again, err = w.Agent.ReportClaims("It names what is neither in your change nor in your calls: " + markdown.SomeFiles(names) + ".")
		return w, again, err
	}
	w.supportedChange = w.change
	return r.registerWork(w), false, nil
}

// reportChecks tells the agent about failed checks or, once, about tests that prove nothing. again reports
// whether the agent has to work again.
func (r *runner) reportChecks(ctx context.Context, w work, attempt int) (_ work, again bool, err error) {
	if w.stopped != nil || attempt > w.Job().VerifyAttempts {
		return w, false, nil
	}
	if w.verification.Passed {
		words := verify.DescribeUnproven(w.verification)
		if words == "" {
			return w, false, nil
		}
		again, err = w.Agent.ReportUnproven(words)
		return w, again, err
	}
	if w.stopped = w.Agent.StopIfNoTurnLeft(); w.stopped != nil {
		return r.registerWork(w), false, nil
	}
	words, err := r.newChecks(ctx, w).DescribeRed(w.verification, assembly.StoppedWords)
	if err != nil {
		return w, false, err
	}
	return w, true, w.Agent.Tell(words)
}

// stopUnlessDraft returns the outcome of work that a budget stopped. It returns nil if the work was not
// stopped, or if limits.on_budget publishes it as a draft.
func (w work) stopUnlessDraft() error {
	if w.stopped == nil || w.Job().Limits.OnBudget == "draft" && !w.change.Empty() {
		return nil
	}
	return w.stopped
}

// askOutput asks the agent for the JSON object required by task.output_schema. It does nothing without a
// schema, or if a budget stopped the work.
func (r *runner) askOutput(ctx context.Context, w work) (work, error) {
	if w.OutputSchema.Source == nil || w.stopped != nil {
		return w, nil
	}
	asked, err := w.Agent.Output(ctx, w.OutputSchema)
	if err != nil {
		return w, err
	}
	if w.stopped = asked.BudgetStop; w.stopped == nil {
		w.outputFile = assembly.OutputFile
	}
	return r.registerWork(w), w.stopUnlessDraft()
}

// judgeWork returns an error for a change that may not be published. Otherwise it returns the verdict with
// the change's description.
func (r *runner) judgeWork(ctx context.Context, w work) (*verdict, error) {
	c := w.judgeCase(w.change)
	if w.change.Empty() {
		if err := c.RefuseExcludedOnly(); err != nil {
			return nil, err
		}
	} else if err := c.Judge(ctx); err != nil {
		return nil, err
	} else if err := r.inspectChange(ctx, w, w.Job(), w.change); err != nil {
		return nil, err
	}
	if before := w.repairedChange(); before != nil && !w.change.Empty() {
		if err := repair.RequireKeptTests(before, w.change, w.verification); err != nil {
			return nil, err
		}
	}
	if w.Task.Repair != nil && !w.change.Empty() {
		if err := w.Source.RecheckNotStopped(ctx, w.Task.Pull.Number); err != nil {
			return nil, err
		}
	}
	p := r.newProposal(w)
	if w.stopped == nil {
		p.Checks = r.newChecks(ctx, w)
	}
	return &verdict{w, p}, nil
}

// newProposal returns the change with its description.
func (r *runner) newProposal(w work) publish.Proposal {
	summary := r.end.summary()
	if summary == "" && w.Task.Repair != nil {
		summary = fmt.Sprintf("The change was laid over %s, as that is by now.", w.Workspace.Base().Branch)
	}
	p := publish.Proposal{
		Cost: r.Record.Cost(), RunID: r.Record.ID, Job: w.Job(), Task: w.Task, Base: w.Workspace.Base(), Change: w.change, Verification: w.verification,
		Summary: summary, Stopped: w.stopped, CommitFacts: publish.CommitFacts{Key: w.Key}, InCheckout: w.change, Inspection: &r.end.inspection, Hooks: w.Hooks,
		Judge: r.judgeOf(w.ready), Lessons: w.Lessons,
	}
	if w.ResumedRun != nil {
		p.EarlierCommit = w.ResumedRun.CommitSHA()
	}
	return p
}

// inspectChange looks for signs in a change that a reviewer should see first, and records them. It returns an
// error if the job refuses such signs. It skips the search for unsupported claims if the same change
// already passed it.
func (r *runner) inspectChange(ctx context.Context, w work, j *job.Job, change *gitops.ChangeSet) (err error) {
	c := r.inspectionCase(w, change)
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
		if err := r.Record.Append(found); err != nil {
			return err
		}
	}
	return inspect.Refusal(j.Policy, found)
}

// inspectionCase returns the input for inspecting change: the job, the results of the checks, and the
// summary.
func (r *runner) inspectionCase(w work, change *gitops.ChangeSet) inspect.Case {
	return inspect.Case{
		Record: r.Record, Checkout: w.Workspace.Checkout(), Job: w.Job(), Branch: w.Task.Branch, Baseline: w.baseline.Rows, Table: w.verification.Rows,
		Summary: r.end.summary(), Change: change,
	}
}

// judgeOf returns a function that judges and inspects a change with a job.
func (r *runner) judgeOf(rd *ready) func(ctx context.Context, j *job.Job, change *gitops.ChangeSet) error {
	return func(ctx context.Context, j *job.Job, change *gitops.ChangeSet) error {
		if err := rd.Lessons.JudgeCase(j, change, rd.repairedChange()).Judge(ctx); err != nil {
			return err
		}
		return r.inspectChange(ctx, work{ready: rd, verification: r.end.work.verification}, j, change)
	}
}
