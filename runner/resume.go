package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/setup/start"
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
	r := newRunner("", start.Request{Dir: o.Dir, Operator: o.Operator, Script: o.Replay, Tools: o.Tools, ScriptEngine: o.ScriptEngine}, settings.Inputs{JobFile: o.JobFile}, o.Surroundings)
	return r.runAndReport(ctx, func() record.Result {
		var h *history.Run // nil if the run directory cannot be read
		err := recoverPanic(ctx, func(ctx context.Context) (err error) {
			h, err = history.Reopen(ctx, r.Record, o.RunDir, o.Set, o.Replay, r.Watch.Show)
			return err
		})
		if h != nil && h.Finished != nil && !r.Record.Has(record.ResultFile) {
			result := record.ResultFromView(h.View) // the run was killed between its last event and result.json
			r.Record.WriteResult(record.ResultFile, &result)
			return result
		}
		if err == nil {
			a := r.AdoptTranscript(h)
			if err = r.Record.Reserve(); err == nil {
				err = recoverPanic(ctx, func(ctx context.Context) error { return r.resume(ctx, a) })
			}
		}
		if r.end.Resumed {
			return r.finish(ctx, err)
		}
		if h != nil && h.Foreign { // leftover state would prevent another attempt
			r.Record.Remove(record.StateFolder)
		}
		return r.resultWithoutRecord(err)
	})
}

// resume runs the stages from the recorded state. Without time left, finished work is still published.
func (r *runner) resume(ctx context.Context, a start.Assignment) error {
	p, err := r.ResumePlace(ctx, a)
	if err != nil {
		return outcome.ForError(ctx, err)
	}
	rd, err := r.openRun(ctx, p)
	if err != nil {
		return outcome.ForError(ctx, err)
	}
	return r.runWithTimeLimit(ctx, a.Job().Limits, func(limited context.Context) error {
		rd, err := r.setUp(limited, rd)
		if err != nil {
			return err
		}
		return r.workAndPublish(limited, ctx, rd, a.ResumedRun.Work.VerifyAttempts)
	})
}

// resumeWork restores the agent's conversation and the work tree of a resumed run. If the work was saved
// outside the checkout, it repeats the setup commands and then writes the work to the tree.
func (r *runner) resumeWork(ctx context.Context, rd *ready) error {
	h := rd.ResumedRun
	if err := rd.Agent.Resume(h.ForAgent()); err != nil || !h.AgentBegan() {
		return err
	}
	needsUntracked := len(rd.Job().Verify) > 0 // checks need the files that were untracked before the first turn
	if h.WorkPlace == "" {
		// WithoutCancel: a run whose time is over still publishes its work.
		if err := rd.Workspace.FinishCalls(context.WithoutCancel(ctx)); err != nil || !needsUntracked {
			return err
		}
		return rd.Workspace.RecopyUntracked(ctx)
	}
	if err := r.newChecks(ctx, work{ready: rd}).SetUp(ctx); err != nil {
		return err
	}
	return rd.Workspace.MoveIn(ctx, workspace.WorkMove{From: h.WorkPlace, Change: h.Work.Change, Untracked: needsUntracked}, rd.Agent.ApplyPatches)
}
