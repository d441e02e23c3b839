package runner

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/check/verify"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/setup/start"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Run performs one run and always returns a result. It leaves a run directory with transcript and
// result.json, with two exceptions: the folder could not be made, or the input was invalid and the user
// named no folder.
func Run(ctx context.Context, o Options) record.Result {
	r := newRunner(record.NewID(time.Now()), start.Request{
		Dir: o.Dir, Publish: o.Publish, Operator: o.Operator, Script: o.Replay, Tools: o.Tools, ScriptEngine: o.ScriptEngine, Baselines: !o.NoBaselineCache,
	}, settings.Inputs{
		JobFile: o.JobFile, Issue: o.Issue, Prompt: o.Prompt, PromptFile: o.PromptFile, Model: o.Model, Set: o.Set, Stdin: o.Stdin,
	}, o.Surroundings)
	result := r.runAndReport(ctx, func() record.Result {
		if err := workspace.MakeRunDirectory(r.Record, r.Env.Get, o.Out, o.Dir, r.Watch.Show); err != nil {
			return r.resultWithoutRecord(err)
		}
		r.end.SetRecord(r.Record)
		err := recoverPanic(ctx, func(ctx context.Context) error { return r.run(ctx, o.Repair) })
		isInvalid := err != nil && outcome.ForError(ctx, err).Outcome == outcome.InvalidInput
		r.Watch.NoRunDirectory = isInvalid && o.Out == "" && !r.Env.InActions() && !r.Record.Started()
		return r.finish(ctx, err)
	})
	// Invalid input, such as a mistyped path, leaves nothing behind, unless the user named the run directory.
	if r.Watch.NoRunDirectory && result.Outcome == outcome.InvalidInput && result.Directory != "" && os.RemoveAll(result.Directory) == nil {
		result.Directory, result.File, result.ReportFile = "", "", ""
	}
	return result
}

// run performs a run in stages: event, settings, checkout, sandboxes, agent, verdict, publication. repairs
// is the pull request of agent-ci repair, or "". Each stage registers its results in r.end; finish derives
// the outcome from them, or from the error.
func (r *runner) run(ctx context.Context, repairs string) error {
	event := intake.ReadEvent(ctx, intake.ReadSurroundings(r.Env))
	if repairs != "" {
		var err error
		if event, err = intake.RepairEvent(repairs, r.Env.ForgeServer(), r.Env.Token() != ""); err != nil {
			return err
		}
	}
	checkout, checkoutErr := r.OpenHere(ctx, event, repairs != "")
	if checkoutErr != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	set, err := workspace.Configure(ctx, r.Record, r.Source, checkout)
	r.Assignment = &start.Assignment{Request: r.Assignment.Request, Settings: set}
	if err != nil {
		return err
	}
	var a *start.Assignment
	if err := r.runWithTimeLimit(ctx, set.Job.Limits, func(ctx context.Context) (err error) {
		a, err = r.EnsureCheckout(ctx, event, checkout, checkoutErr)
		return err
	}); err != nil {
		return err
	}
	// A clone may have brought another limits.time, so start again with its limit.
	return r.runWithTimeLimit(ctx, a.Job().Limits, func(limited context.Context) error {
		p, err := r.PreparePlace(limited, a, r.end.Workspace)
		if err != nil {
			return err
		}
		rd, err := r.makeReady(limited, p)
		if err != nil {
			return err
		}
		return r.workAndPublish(limited, ctx, rd, 0)
	})
}

// makeReady opens the sandboxes, writes the first events, makes the agent, runs the checks on the base,
// and gives the agent its task.
func (r *runner) makeReady(ctx context.Context, p *start.Place) (*ready, error) {
	rd, err := r.openRun(ctx, p)
	if err != nil {
		return nil, err
	}
	return r.setUp(ctx, rd)
}

// setUp runs applies_if, the setup commands and the checks on the base, and gives the agent its task. If the
// agent of a resumed run has already worked, the results come from the record. Then setUp restores the work of
// a resumed run, or applies the change of a pull request that the run continues. opened stays unchanged.
func (r *runner) setUp(ctx context.Context, opened *ready) (_ *ready, err error) {
	prepared := *opened
	if !opened.AlreadyWorked() {
		checks := r.newChecks(ctx, work{ready: opened})
		if err := checks.RunAppliesIf(ctx); err != nil {
			return nil, err
		}
		if err := checks.SetUp(ctx); err != nil {
			return nil, err
		}
	}
	if opened.Baselines {
		prepared.baselineCache = verify.OpenBaselineCache(r.Record, record.BaselinesPath(r.Env.Get), opened.Sandboxes)
		r.end.baselineCache = prepared.baselineCache
	}
	if opened.AlreadyWorked() {
		prepared.baseline, err = opened.ResumedRun.BaselineTable()
	} else {
		prepared.baseline, err = r.newChecks(ctx, work{ready: &prepared}).Baseline(ctx)
	}
	if err != nil {
		return nil, err
	}
	r.registerWork(work{ready: &prepared, verification: prepared.baseline})
	if err := r.briefAgent(ctx, &prepared); err != nil {
		return nil, err
	}
	if opened.ResumedRun != nil {
		return &prepared, r.resumeWork(ctx, &prepared)
	}
	return &prepared, r.applyEarlierChange(ctx, &prepared)
}

// workAndPublish lets the agent work until its change is verified, and publishes it. limits.time ends ctx but not
// untimed: work that took all its time can still be published. earlierAttempts counts earlier verifications.
func (r *runner) workAndPublish(ctx, untimed context.Context, rd *ready, earlierAttempts int) error {
	w, err := r.workAndVerify(ctx, untimed, rd, earlierAttempts)
	if err != nil {
		return err
	}
	if w, err = r.askOutput(ctx, w); err != nil {
		return err
	}
	if err := rd.Hooks.RequireAnswered(); err != nil {
		return err
	}
	return runWithGrace(ctx, untimed, func(ctx context.Context) error {
		v, err := r.judgeWork(ctx, w)
		if err != nil {
			return err
		}
		return r.publish(ctx, v)
	})
}

// workAndVerify runs the job's recipe, lets the agent work, and verifies the change. limits.time ends ctx but not
// untimed. earlierAttempts counts earlier verifications.
func (r *runner) workAndVerify(ctx, untimed context.Context, rd *ready, earlierAttempts int) (work, error) {
	defer rd.Agent.Close()
	w, done, err := r.followRecipe(ctx, untimed, r.registerWork(work{ready: rd, verification: rd.baseline}), earlierAttempts)
	if err != nil || done {
		return w, err
	}
	if w, err = r.workUntilVerified(ctx, untimed, w, earlierAttempts); err != nil {
		return w, err
	}
	if !w.change.Empty() {
		if err := rd.Lessons.WarnOfUnproven(w.change); err != nil {
			return w, err
		}
	}
	return w, w.stopUnlessDraft()
}

// workUntilVerified lets the agent work, takes its change and verifies it. It returns some problems to the
// agent once each: an early end, a refused change, unsupported claims, and unproven tests. It returns red
// checks up to verify_attempts times. It verifies and keeps work that a budget stopped, limits.time included.
func (r *runner) workUntilVerified(ctx, untimed context.Context, w work, earlierAttempts int) (work, error) {
	var err error
	attempt := earlierAttempts + 1
	for skipTurn := w.cleanMerge; ; skipTurn = false { // a clean merge needs the model only if checks fail
		if !skipTurn {
			if w, err = r.takeTurns(ctx, w); err != nil {
				return w, err
			}
		}
		if w, err = r.takeFinalChange(ctx, untimed, w); err != nil {
			return w, err
		}
		if isInBase := skipTurn && w.change.Empty(); isInBase { // the merged change
			return w, nil
		}
		again := false
		if w, again, err = r.askToReconsider(ctx, untimed, w); err != nil {
			return w, err
		}
		if again {
			continue
		}
		if needsChecks := !w.change.Empty() && len(w.Job().Verify) > 0 && untimed.Err() == nil; !needsChecks {
			return w, nil
		}
		if w, err = r.verifyChange(ctx, untimed, w, attempt); err != nil {
			return w, err
		}
		w = r.markTimedOut(ctx, untimed, w)
		if w, again, err = r.reportChecks(ctx, w, attempt); err != nil || !again {
			return w, err
		}
		attempt++
	}
}

// takeFinalChange takes the change after the agent's turns, even after limits.time. It returns an error if
// the agent waits for answers to its questions.
func (r *runner) takeFinalChange(ctx, untimed context.Context, w work) (work, error) {
	if err := runWithGrace(ctx, untimed, func(ctx context.Context) (err error) {
		w, err = r.takeChange(ctx, w.Place, w)
		return err
	}); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			r.end.tookTooLong = err
		}
		return w, err
	}
	w = r.markTimedOut(ctx, untimed, w)
	return w, w.Agent.Work().StopForAnswers(w.Task.Issue)
}

// publish commits, pushes and opens the pull request, or posts the agent's findings. It does less for
// --publish local, and nothing for none.
func (r *runner) publish(ctx context.Context, v *verdict) (err error) {
	if v.Project.Mode == publish.Nowhere {
		return nil
	}
	publication := r.end.publication()
	r.end.published = &publication
	if v.Task.Subject != nil {
		base := v.Workspace.Base()
		d := hooks.Draft{Base: base.Branch, BaseSHA: base.SHA, To: v.Project.Mode, Title: v.Task.Title}
		r.end.posted, err = r.Poster(v.Assignment).PostFromFile(ctx, v.outputFile, v.Hooks, d)
		return err
	}
	to := r.Publisher(v.Project, v.Workspace).Destination()
	if err = publish.Publish(ctx, to, v.proposal, &publication); err == nil {
		v.Lessons.Publish(ctx, to, v.proposal, publication)
	}
	return err
}
