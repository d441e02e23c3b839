package runner

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/agent/skills"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/settings"
	"github.com/agent-ci/agent-ci/tools"
)

// ResumeOptions names the run to resume. All settings except limits come from its transcript, so a
// resumed run gets no new permissions.
type ResumeOptions struct {
	RunDir   string
	Dir      string   // the checkout; empty means the run's own
	Set      []string // changed limits, as KEY=VALUE
	Operator string   // path of the operator's file; empty for none
	Replay   string   // the run's scripted session; empty if it had none
	JobFile  string   // the job of a run recorded on another machine; optional
	// Tools must be those of the run's start; see Options.
	Tools []tools.Tool

	Surroundings
}

// Resume continues a killed or stopped run after its last event. If it fails before the run continues,
// the run directory stays unchanged, for another attempt.
func Resume(ctx context.Context, o ResumeOptions) record.Result {
	r := newRunner("", settings.Inputs{JobFile: o.JobFile}, o.Surroundings)
	return r.runAndReport(ctx, func() record.Result {
		var h *history.Run
		err := recoverPanic(ctx, func(ctx context.Context) (err error) {
			h, err = history.Reopen(ctx, r.rec, o.RunDir, o.Set, o.Replay, r.watch.Show)
			return err
		})
		if h != nil && h.Finished != nil && !r.rec.Has(record.ResultFile) {
			result := record.Project(h.View) // the run was killed between its last event and result.json
			r.rec.WriteResult(record.ResultFile, &result)
			return result
		}
		if err == nil {
			a := r.adoptTranscript(h, &request{dir: o.Dir, operator: o.Operator, script: o.Replay, program: program{o.Tools, o.ScriptEngine}})
			if err = r.rec.Reserve(); err == nil {
				err = recoverPanic(ctx, func(ctx context.Context) error { return r.resume(ctx, a) })
			}
		}
		if r.end.resumed {
			return r.finish(ctx, err)
		}
		if h != nil && h.Foreign { // leftover state would prevent another attempt
			r.rec.Remove(record.StateFolder)
		}
		return r.resultWithoutRecord(err)
	})
}

// resume runs the stages from the recorded state. A run without time left still publishes its finished
// work.
func (r *runner) resume(ctx context.Context, a assignment) error {
	p, err := r.resumePlace(ctx, a)
	if err != nil {
		return outcome.ForError(ctx, err)
	}
	rd, added, err := r.open(ctx, p)
	if err != nil {
		return outcome.ForError(ctx, err)
	}
	return r.inTime(ctx, a.job().Limits, func(limited context.Context) error {
		rd, err := r.setUp(limited, rd, added)
		if err != nil {
			return err
		}
		return r.workAndPublish(limited, ctx, rd, a.resumedRun.Work.VerifyAttempts)
	})
}

// adoptTranscript returns the assignment in a resumed run's transcript. It sets the runner's id, clock,
// secrets and totals from it.
func (r *runner) adoptTranscript(h *history.Run, req *request) assignment {
	req.resumedRun, req.publish = h, h.Started.Publish
	if h.Foreign {
		req.dir = cmp.Or(req.dir, ".") // the folder recorded on another machine has no meaning here
	}
	a := *recordedAssignment(h, req)
	r.rec.ID, r.began = h.Started.RunID, time.Now().Add(-h.Elapsed)
	r.rec.SetSecrets(settings.Secrets(r.env, a.job()))
	r.rec.ResumeWarnings(h.Warnings)
	r.watch.InitStatus(h.View, a.job().Limits.CostUSD, a.job().Limits.Tokens)
	r.end.assignment = &a
	return a
}

// resumePlace makes a resumed run's place from its record and the checkout.
func (r *runner) resumePlace(ctx context.Context, a assignment) (_ *place, err error) {
	h := a.resumedRun
	if h.Foreign {
		if err := h.RefuseForeignExcess(ctx, r.source, r.rec, r.checkoutOptions(a.dir)); err != nil {
			return nil, err
		}
	}
	if a.model, err = provider.Find(ctx, a.job(), a.script, h.ScriptedTurns, r.env, r.version, r.rec); err != nil {
		return nil, err
	}
	a.model.Profile.Price = h.Started.Price // keep the price of the run's start
	if a.project, err = r.recordedProject(&a, h); err != nil {
		return nil, err
	}
	if err := confine.KillLeftovers(ctx, r.rec.Directory); err != nil {
		return nil, err
	}
	p := place{assignment: &a}
	from := r.checkoutOptions(a.dir)
	from.Filters = a.job().Git.FilterReads()
	p.workspace, h.FoundWork, err = workspace.Resume(ctx, r.rec, from, h.WorkspaceState())
	r.end.workspace = p.workspace
	if err != nil {
		return nil, err
	}
	if p.skills, err = skills.ReadOffer(r.rec.Directory, h.Skills); err != nil {
		return nil, workspace.CannotResume("%v; start a new run", err)
	}
	if !h.AgentBegan() { // if the agent worked, its images are in the conversation already
		a.source = r.intakeSource(intake.Event{}, a.request, a.settings, p.workspace)
		a.source.Forge, a.source.Target = a.project.Forge, a.project.Repo
	}
	if h.Job.Task.OutputSchema != "" || h.Job.Publish.IsFeedback() {
		if a.outputSchema, err = settings.ParseOutputSchema(h.Started.OutputSchema); err != nil {
			return nil, err
		}
	}
	return r.recall(ctx, p, proposals.Recorded(r.rec, h.View))
}

// recordResumed writes run.resumed. From then on the old result is deleted, and the run writes a new one.
func (r *runner) recordResumed(ctx context.Context, rd *ready) error {
	h := rd.resumedRun
	if err := rd.workspace.BeginMove(h.FoundWork.Place); err != nil {
		return err
	}
	if err := r.rec.Append(transcript.TypeRunResumed, h.ResumeEvent(r.version, rd.sandboxes.Confinement().WorkTree)); err != nil {
		return err
	}
	r.end.resumed = true
	r.rec.StartHeartbeat()
	if err := r.rec.SyncLog(); err != nil {
		return err
	}
	r.rec.Remove(record.ResultFile)
	r.end.SetRecord(r.rec)
	if err := rd.hooks.RecordList(); err != nil {
		return err
	}
	r.showProgressAgain(ctx, rd.place)
	return nil
}

// showProgressAgain continues the progress comment of a run requested by an event.
func (r *runner) showProgressAgain(ctx context.Context, p *place) {
	requestedOn, currentRepository := p.resumedRun.RequestedOn(), r.env.Get("GITHUB_REPOSITORY")
	if requestedOn.Number == 0 || !strings.EqualFold(currentRepository, requestedOn.Repository) {
		return
	}
	var comments []forge.Comment
	if on, err := p.project.Forge.Repository(currentRepository).Issue(ctx, requestedOn.Number); err == nil {
		comments = on.Comments
	}
	r.showProgress(ctx, p, requestedOn.Number, comments)
}

// restore restores the agent's conversation and the work tree. If the work is not in the checkout, it
// repeats the setup commands and then writes the work to the tree.
func (r *runner) restore(ctx context.Context, rd *ready) error {
	h := rd.resumedRun
	if err := rd.agent.Resume(h.ForAgent()); err != nil || !h.AgentBegan() {
		return err
	}
	checks := r.checks(ctx, work{ready: rd})
	untracked := checks.NeedUntracked()
	if h.FoundWork.Place == "" {
		// WithoutCancel: a run whose time is over still publishes its work.
		if err := rd.workspace.FinishCalls(context.WithoutCancel(ctx)); err != nil || !untracked {
			return err
		}
		return rd.workspace.RecopyUntracked(ctx)
	}
	if err := checks.SetUp(ctx); err != nil {
		return err
	}
	return rd.workspace.MoveIn(ctx, workspace.WorkMove{
		From: h.FoundWork.Place, Change: h.Work.Change, ApplyPatches: rd.agent.ApplyPatches, Untracked: untracked,
	})
}
