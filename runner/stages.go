package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/team"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/check/inspect"
	"github.com/agent-ci/agent-ci/runner/check/verify"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/egress"
	"github.com/agent-ci/agent-ci/runner/place/enclosure"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/feedback"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/publish/repair"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// open prepares publishing, opens the sandboxes and finds the hooks. It writes the first events, or
// run.resumed for a resumed run. Then it runs the hooks for the start and makes the agent. hookText is
// text from hooks for the agent.
func (r *runner) open(ctx context.Context, p *place) (_ *ready, hookText string, err error) {
	rd := ready{place: p}
	if rd.key, err = r.preparePublishing(ctx, p); err != nil {
		return nil, "", err
	}
	if rd.sandboxes, err = r.confine(ctx, p); err != nil {
		return nil, "", err
	}
	if rd.hooks, err = r.findHooks(ctx, p, rd.sandboxes); err != nil {
		return nil, "", err
	}
	r.end.hooks = rd.hooks
	if p.resumedRun != nil {
		err = r.recordResumed(ctx, &rd)
	} else {
		err = r.begin(ctx, &rd)
	}
	if err != nil {
		return nil, "", err
	}
	if rd.hooks != nil {
		base, t := rd.workspace.Base(), rd.task
		hookText, err = rd.hooks.RunStart(ctx, hooks.Start{Source: t.Name, Title: t.Title, Text: t.Text, URL: t.URL, Base: base.Branch, SHA: base.SHA, Branch: t.Branch})
		if err = cmp.Or(err, rd.hooks.StopReason()); err != nil {
			return nil, "", err
		}
	}
	rd.agent, err = r.makeAgent(ctx, &rd)
	r.end.agent = rd.agent
	r.registerWork(work{ready: &rd})
	return &rd, hookText, err
}

// makeAgent makes the agent, with its earlier agents in a resumed run. In a replay, the recording
// answers for servers and people. Otherwise questions go to the issue, if the job allows them.
func (r *runner) makeAgent(ctx context.Context, rd *ready) (*worker.Agent, error) {
	var earlier []*transcript.Agent
	if rd.resumedRun != nil {
		earlier = rd.resumedRun.Agents
		if err := team.Resume(r.rec, rd.sandboxes, earlier); err != nil { // also removes what an unrecorded agent left
			return nil, err
		}
	}
	if err := extensions.KeepEmbedded(r.rec, rd.job(), rd.program.tools); err != nil {
		return nil, err
	}
	options := worker.Options{
		Shared: worker.Shared{Record: r.rec, Workspace: rd.workspace, Sandboxes: rd.sandboxes, Began: r.began, Hooks: rd.hooks},
		Job:    rd.job(), Model: rd.model, Skills: rd.skills, Tools: rd.program.tools, ScriptEngine: rd.program.engine, Memory: rd.lessons.Given, TakeLesson: rd.lessons.LessonTaker(),
	}
	var order *team.Order
	switch rec := rd.recording; {
	case rec != nil:
		options.Recorded, options.ReplayCommand, options.Ask, order = rec.Servers, rec.RecordedEnding, rec.AskNobody(), rec.RecordedOrder
	case rd.job().Task.Questions == "ask" && rd.task.Issue != nil && r.env.Token() != "":
		options.Ask = (&worker.IssuePeople{Forge: rd.project.Forge, Issue: *rd.task.Issue, Redact: r.rec.Redact}).Ask
	}
	return team.NewRunAgents(ctx, options, earlier, order)
}

// preparePublishing checks that a change can be published, before the first turn costs anything. It
// returns the key that signs the commit, or nil.
func (r *runner) preparePublishing(ctx context.Context, p *place) (*sshsig.Key, error) {
	if p.task.Subject != nil {
		switch p.project.Mode {
		case publish.Nowhere:
			return nil, nil
		case publish.ToLocal:
			return nil, outcome.Stopf(outcome.InvalidInput, "no_token",
				"publish.as is %s, which needs GitHub: set GITHUB_TOKEN, or use --publish none, which writes the findings to output.json.", p.job().Publish.As)
		}
		return nil, r.poster(p.assignment).RequireNotPosted(ctx)
	}
	to := r.publisher(p.project, p.workspace).Destination()
	if to == nil {
		return nil, nil
	}
	return publish.Prepare(ctx, to, p.task, p.workspace.Base(), p.job(), p.publish != "")
}

// poster returns what posts the agent's findings on the run's subject.
func (r *runner) poster(a *assignment) feedback.Poster {
	return feedback.Poster{
		Record: r.rec, Server: a.project.Forge, Publish: a.job().Publish, Subject: *a.task.Subject, Key: a.task.Key, RunID: r.rec.ID,
		Snapshot: a.task.InputDigest, Commanded: a.source == nil || a.source.IsForced(), Link: r.env.RunLink(), // a resumed run (source is nil) was admitted at its start
	}
}

// confine opens the sandboxes, before any command runs or the model is asked. Afterwards other runs may
// use the checkout too. They may not if this run publishes nothing, or if the change's branch is checked
// out.
func (r *runner) confine(ctx context.Context, p *place) (*confine.Sandboxes, error) {
	boxes := &confine.Sandboxes{
		Control: egress.Control{Record: r.rec, Environ: r.env, Job: p.job(), Rules: p.rules, Authorities: p.authorities},
		Dir:     p.dir, BaseTree: p.baseTree(), HasHooks: len(p.job().Hooks) > 0 || p.operator != "",
	}
	if p.resumedRun != nil {
		boxes.EarlierUses, boxes.Earlier.Backing = p.resumedRun.Secrets, p.resumedRun.WorkTreeKind()
	}
	r.end.sandboxes = boxes
	err := enclosure.Open(ctx, boxes, p.workspace, r.watch.Mask)
	switch {
	case err != nil || p.project.Mode == publish.Nowhere:
		return boxes, err
	case p.workspace.CheckedOut(p.task.Branch): // moving the branch would change the files of other runs
		return boxes, p.workspace.RequireAlone()
	}
	return boxes, p.workspace.AdmitOthers(ctx)
}

// findHooks returns the run's hooks, or nil without any. A resumed run must have the operator's hooks of
// its start.
func (r *runner) findHooks(ctx context.Context, p *place, boxes *confine.Sandboxes) (*hooks.Hooks, error) {
	if p.recording != nil {
		return p.recording.Answers.Hooks, nil
	}
	all, err := hooks.Find(ctx, p.operator, p.job(), p.workspace.Commit(), r.env.Get("HOME"))
	if err == nil && p.resumedRun != nil {
		err = p.resumedRun.RequireSameOperatorHooks(all)
	}
	if err != nil {
		return nil, err
	}
	found := hooks.New(all, boxes, p.workspace.SandboxPath())
	if found != nil && p.resumedRun != nil {
		found.Answers = p.resumedRun.HookAnswers()
	}
	return found, nil
}

// begin writes the first events of a new run, and starts the progress comment and the repair.
func (r *runner) begin(ctx context.Context, rd *ready) error {
	r.watch.InitStatus(nil, rd.job().Limits.CostUSD, rd.job().Limits.Tokens)
	if err := r.recordStart(rd.assignment); err != nil {
		return err
	}
	if err := rd.skills.Write(r.rec); err != nil { // before the events that make the run resumable
		return err
	}
	ws := rd.workspace
	if err := cmp.Or(
		r.rec.Append(transcript.TypeTask, rd.task.TranscriptEvent()),
		r.rec.Append(transcript.TypeWorkspace, ws.Event(rd.project.Name(), rd.task.Branch, rd.job().Repository.Path)),
		r.rec.Append(transcript.TypePolicy, rd.sandboxes.Event(ws.SandboxPathElsewhere())),
		rd.hooks.RecordList(), rd.lessons.RecordGiven(),
	); err != nil {
		return err
	}
	r.showProgress(ctx, rd.place, rd.task.ProgressOn, rd.task.ProgressLike)
	if rd.repair == nil {
		return nil
	}
	if err := rd.repair.Begin(ctx); err != nil {
		return err
	}
	r.end.atEnd = append(r.end.atEnd, func(ctx context.Context, stop *outcome.Stop) {
		pushed := ""
		if p := r.end.publication(); p.Remote != "" {
			pushed = p.Commit
		}
		rd.repair.Conclude(ctx, stop, r.rec.Cost(), pushed)
	})
	return nil
}

// showProgress starts a progress comment on the issue or pull request that requested the run. It reuses
// the comment of an earlier run, which it finds in like. It does nothing for number 0.
func (r *runner) showProgress(ctx context.Context, p *place, number int, like []forge.Comment) {
	if number == 0 || p.project.Mode != publish.ToForge {
		return
	}
	on := progress.Thread{
		Repository: p.project.Forge.Repository(r.env.Get("GITHUB_REPOSITORY")), Number: number, Pages: progress.Pages{Run: r.env.RunLink(), Artifacts: r.env.Artifacts()},
	}
	if earlier := intake.OwnProgress(ctx, p.project.Forge, like); earlier != nil {
		on.Earlier = earlier.ID
	}
	r.watch.Comment(ctx, on)
	r.end.atEnd = append(r.end.atEnd, r.concludeProgress)
}

// concludeProgress adds the run's end to the progress comment.
func (r *runner) concludeProgress(ctx context.Context, stop *outcome.Stop) {
	a, done := r.end.assignment, r.end.publication()
	end := progress.End{Stop: stop, Site: a.project.Site(), Draft: done.Draft}
	if view, err := r.rec.View(); err == nil { // without a view the comment still has the outcome
		end.View = view
	}
	if stop.Outcome == outcome.NoChanges && done.Commit == "" && a.task.InputDigest != "" {
		end.Trace = intake.FruitlessMark(a.task.InputDigest, done.Base.SHA)
	}
	if err := r.watch.Conclude(ctx, end); err != nil {
		r.rec.Warn("comment_not_written", "The progress could not be shown in a comment: %v", err)
	}
}

// registerWork stores the state of the work for the run's end, and returns it.
func (r *runner) registerWork(w work) work {
	if w.ready != nil {
		w.lessons.RecordChecks(w.baseline.Rows, w.verification.Rows)
	}
	r.end.work = w
	return w
}

// checks returns what runs the job's checks on the base and on changes. The deadline of ctx limits
// proofs of tests.
func (r *runner) checks(ctx context.Context, w work) verify.Checks {
	until, _ := ctx.Deadline()
	return verify.Checks{
		Record: r.rec, Sandboxes: w.sandboxes, Workspace: w.workspace, Job: w.job(), ProofDeadline: until, BaselineCache: w.baselineCache, Branch: w.task.Branch,
		Commit: func(base gitops.Base, when time.Time) (gitops.CommitOptions, error) { // the commit that publishing would make
			p := r.proposal(w)
			p.Base = base
			return r.publisher(w.project, w.workspace).TrialCommit(&p, when)
		},
	}
}

// brief gives the agent its task, with guides, hook texts and images. A replay has no source: its images
// are in the recorded conversation.
func (r *runner) brief(ctx context.Context, rd *ready, hookText string) (err error) {
	briefing := briefing.Briefing{Guides: rd.guides, HookContext: hookText, Task: briefing.Task{Source: rd.task.Name, Title: rd.task.Title, Text: rd.task.Text}}
	if !rd.task.WorksOnHead() {
		if briefing.FurtherGuides, err = worker.FurtherGuides(ctx, rd.workspace.Checkout(), rd.job().Repository.Path); err != nil {
			return err
		}
	}
	if rd.source != nil {
		briefing.Task.Images, briefing.Task.MissingImages = rd.source.Images(ctx, rd.task)
	}
	return rd.agent.Brief(briefing, rd.baseline.Rows)
}

// applyEarlierChange applies the change of the pull request that the run continues to the work tree, as
// if the agent had made it. It runs after the baseline, so configuration and checks stay the base's. It
// tells the agent about conflicts.
func (r *runner) applyEarlierChange(ctx context.Context, rd *ready) (found startingChange, err error) {
	if rd.task.Mode != intake.Continue {
		return found, nil
	}
	from := rd.project.Forge.Repository(rd.source.Event.Repository)
	earlier, err := r.forge(rd.project, rd.workspace).EarlierChange(ctx, from, rd.task.Pull, rd.workspace.Base(), rd.lessons.ReproposeEarlier)
	if err != nil || earlier == nil {
		return found, err
	}
	found.change = earlier.Change
	if err := rd.workspace.ApplyChange(ctx, earlier.Change); err != nil {
		return found, fmt.Errorf("go on with pull request #%d: %w", rd.task.Pull.Number, err)
	}
	if earlier.Clean() {
		found.cleanMerge = rd.repair != nil && rd.repair.ConflictsWithBase && len(rd.repair.Red) == 0
		return found, nil
	}
	r.rec.Warn("base_conflicts", "%s moved since pull request #%d was made, and the two conflict in %s; the agent was asked to merge them.",
		workspace.BaseName(rd.workspace.Base()), rd.task.Pull.Number, earlier.Names())
	return found, rd.agent.Tell(earlier.DescribeUnmerged())
}

// followRecipe runs the job's recipe before the agent's first turn. It tells the agent the recipe's change
// and its red checks. done means that all checks are green and the agent need not work.
func (r *runner) followRecipe(ctx, untimed context.Context, w work, attempts int) (_ work, done bool, err error) {
	if w.job().Recipe.Run == "" || attempts > 0 || w.alreadyWorked() || w.task.Subject != nil {
		return w, false, nil
	}
	if err := r.checks(ctx, w).Recipe(ctx); err != nil {
		return w, false, err
	}
	if w, err = r.takeChange(ctx, w.place, w); err != nil {
		return w, false, err
	}
	allGreen := !slices.ContainsFunc(w.baseline.Rows, func(row transcript.VerifyRow) bool { return row.Before != "green" })
	switch {
	case w.job().Recipe.Agent == "always" || len(w.job().Verify) == 0:
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
	if err := w.agent.SaveUncalledChange(ctx, w.change); err != nil {
		return err
	}
	message := r.checks(ctx, w).RecipeWords()
	if words != "" {
		message += "\n\n" + words
	}
	return w.agent.Tell(message)
}

// takeTurns lets the agent work until it finishes or a budget stops it.
func (r *runner) takeTurns(ctx context.Context, w work) (work, error) {
	did, err := w.agent.Run(ctx)
	w.stopped = did.BudgetStop
	return r.registerWork(w), err
}

// takeChange reads the agent's change from the work tree and saves it. It reverts changes to protected
// paths if the job says so.
func (r *runner) takeChange(ctx context.Context, p *place, w work) (work, error) {
	change, dropped, err := p.lessons.TakeChange(ctx)
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
		again, err = w.agent.QuestionEnd(w.change.Empty(), workspace.DescribeLeftovers(w.change))
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
	if w.job().VerifyAttempts > 0 {
		if again, err := w.agent.ReportRefused(refusal.Message); err != nil || again {
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
	if p := w.job().Policy; p.Silenced != "refuse" && p.WorkflowRisk != "refuse" {
		return nil
	}
	found, err := r.inspection(w, w.change).Signs(ctx)
	return cmp.Or(err, inspect.Refusal(w.job().Policy, found))
}

// reportClaims tells the agent once which claims of its summary the change does not support. It reports
// whether it did.
func (r *runner) reportClaims(ctx context.Context, w work) (work, bool, error) {
	if w.stopped != nil || w.job().VerifyAttempts == 0 {
		return w, false, nil
	}
	names, err := r.inspection(w, w.change).Claims(ctx)
	if err != nil {
		return w, false, err
	}
	if len(names) > 0 {
		again, err := w.agent.ReportClaims("It names what is neither in your change nor in your calls: " + markdown.SomeFiles(names) + ".")
		return w, again, err
	}
	w.supportedChange = w.change
	return r.registerWork(w), false, nil
}

// reportChecks tells the agent about red checks or, once, about tests that prove nothing. It reports
// whether the agent has to work again.
func (r *runner) reportChecks(ctx context.Context, w work, attempt int) (work, bool, error) {
	agent := w.agent
	if w.stopped != nil || attempt > w.job().VerifyAttempts {
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
	if w.stopped == nil || w.job().Limits.OnBudget == "draft" && !w.change.Empty() {
		return nil
	}
	return w.stopped
}

// askOutput asks the agent for the object that the job's output schema describes. It does nothing without
// a schema, or if a budget stopped the work.
func (r *runner) askOutput(ctx context.Context, w work) (work, error) {
	if w.outputSchema.Source == nil || w.stopped != nil {
		return w, nil
	}
	did, err := w.agent.Output(ctx, w.outputSchema)
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
	} else if err := r.inspect(ctx, w, w.job(), w.change); err != nil {
		return nil, err
	}
	if before := w.repairedChange(); before != nil && !w.change.Empty() {
		if err := repair.RequireKeptTests(before, w.change, w.verification); err != nil {
			return nil, err
		}
	}
	if w.task.Repair != nil && !w.change.Empty() {
		if err := w.source.CheckNotStopped(ctx, w.task.Pull.Number); err != nil {
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
	if summary == "" && w.task.Repair != nil {
		summary = fmt.Sprintf("The change was laid over %s, as that is by now.", w.workspace.Base().Branch)
	}
	p := publish.Proposal{
		Cost: r.rec.Cost(), RunID: r.rec.ID, Job: w.job(), Task: w.task, Base: w.workspace.Base(), Change: w.change, Verification: w.verification,
		Summary: summary, Stopped: w.stopped, CommitFacts: publish.CommitFacts{Key: w.key}, InCheckout: w.change, Inspection: &r.end.inspection, Hooks: w.hooks,
		Callbacks: r.withInspection(w.ready, w.lessons.Callbacks(w.repairedChange())),
	}
	if w.resumedRun != nil {
		p.EarlierCommit = w.resumedRun.CommitSHA()
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
		if err := r.rec.Append(transcript.TypeInspection, found); err != nil {
			return err
		}
	}
	return inspect.Refusal(j.Policy, found)
}

// inspection returns what inspects change, with the checks and the summary of w.
func (r *runner) inspection(w work, change *gitops.ChangeSet) inspect.Case {
	return inspect.Case{
		Record: r.rec, Checkout: w.workspace.Checkout(), Job: w.job(), Branch: w.task.Branch, Baseline: w.baseline.Rows, Table: w.verification.Rows,
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
