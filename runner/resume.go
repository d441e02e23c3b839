package runner

import (
	"context"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/worker"
	"github.com/agent-ci/agent-ci/runner/workspace"
	"github.com/agent-ci/agent-ci/tools"
)

// ResumeOptions say which run goes on. All settings but limits are those of its
// transcript: a run that is resumed may never do what it was not started for.
type ResumeOptions struct {
	RunDir   string
	Dir      string   // the checkout; empty means where the run worked
	Set      []string // limits, which may be other ones: KEY=VALUE
	Operator string   // path of the operator's file; empty for none
	Replay   string   // the scripted session, of a run that had one; empty for none
	JobFile  string   // the job that a run was made by which this machine did not record; optional
	// Tools are those with which the run began: see Options.
	Tools []tools.Tool

	Surroundings
}

// Resume goes on with a run that was killed or stopped, from its last event.
// Before it has begun to, what fails leaves the run directory as it is, so that
// it can be tried again.
func Resume(ctx context.Context, o ResumeOptions) record.Result {
	in := newInvocation("", settings.Given{JobFile: o.JobFile}, o.Surroundings)
	in.dir, in.operator, in.tools, in.script = o.Dir, o.Operator, o.Tools, o.Replay
	return in.attended(ctx, func(so *reached, left *departure) record.Result {
		in.maskSecrets()
		var h *history
		err := guarded(ctx, func(ctx context.Context) (err error) {
			h, err = in.reopen(ctx, o)
			return err
		})
		if h != nil && h.Finished != nil && !in.rec.Has(record.ResultFile) {
			return in.concludeAgain(h)
		}
		if err == nil {
			in.adopt(h, so)
			if err = in.rec.Reserve(); err == nil {
				err = guarded(ctx, func(ctx context.Context) error { return in.resume(ctx, h, so, left) })
			}
		}
		if !so.resumed {
			in.leaveStranger()
			return in.unrecorded(so, err)
		}
		return in.finish(ctx, so, left, err)
	})
}

// reopen reads the run directory, and makes sure that nobody else works in it. What
// was read of the run is there beside an error.
func (in *invocation) reopen(ctx context.Context, o ResumeOptions) (h *history, err error) {
	if in.rec.Directory, err = record.OpenDirectory(o.RunDir); err != nil {
		return nil, err
	}
	if err := in.rec.LockSoon(ctx); err != nil {
		return nil, err
	}
	torn, err := in.rec.Reopen(in.watch.Show)
	if err != nil {
		return nil, workspace.CannotResume("%s", outcome.Trimmed(err)).Because(err)
	}
	if h, err = readHistory(in.rec); err != nil {
		return nil, err
	}
	h.torn, h.raised, h.limits = torn, o.Set, h.job.Limits
	if h.job.Limits, err = settings.SetLimits(h.limits, o.Set); err != nil {
		return h, err
	}
	if err := h.resumable(workspace.Pending(in.rec.Directory)); err != nil {
		return h, err
	}
	if err := h.sameAnswers(in.script); err != nil {
		return h, err
	}
	if err := in.strangersState(); err != nil {
		return h, err
	}
	if err := in.rec.Unaltered(ctx, h.Finished, record.PackFile, record.WorkPackFile, record.PatchesFolder); err != nil {
		if ctx.Err() != nil {
			return h, err
		}
		return h, workspace.CannotResume("%s", outcome.Trimmed(err))
	}
	return h, nil
}

// concludeAgain writes the result of a run that was killed between its last
// event and its result.
func (in *invocation) concludeAgain(h *history) record.Result {
	result := record.Project(h.View)
	result.Worked, result.Directory, result.File = h.worked(), in.rec.Path(), record.ResultFile
	result.TranscriptSHA256 = in.rec.Log().Head()
	if err := in.rec.WriteJSON(record.ResultFile, result); err != nil {
		result.Errors, result.File = append(result.Errors, err.Error()), ""
	}
	return result
}

// adopt takes over what the transcript says of a run that goes on.
func (in *invocation) adopt(h *history, so *reached) {
	so.assignment = h.assignment()
	in.rec.ID, in.publish, in.began = h.Started.RunID, h.Started.Publish, time.Now().Add(-h.elapsed)
	in.keepOut(so.job())
	in.rec.GoOn(h.Warnings)
	in.watch.Follow(h.View, limitsOf(so.job()))
	so.used = h.Secrets
	so.recall(in.rec, h.View)
	so.told, so.committed = worker.Work{Plan: h.Plan}, h.Commit()
}

// recordResumed writes that the run goes on. From here on it ends in a result,
// and not in the one of its last end.
func (in *invocation) recordResumed(h *history, so *reached, left *departure) error {
	if err := so.workspace.BeginMove(so.found.Away); err != nil {
		return err
	}
	event := transcript.RunResumed{
		Version: in.version, Torn: h.torn, Elsewhere: so.found.Away != "", Limits: h.raised, Seconds: h.elapsed.Seconds(),
	}
	if now := so.confined().WorkTree; now != h.Policy.WorkTree {
		event.WorkTree = now
	}
	if end := h.Finished; end != nil {
		event.After = end.Outcome + "/" + end.Reason
	}
	if err := in.rec.Append(transcript.TypeRunResumed, event); err != nil {
		return err
	}
	so.resumed = true
	in.rec.Live()
	if err := in.rec.SyncLog(); err != nil {
		return err
	}
	in.rec.Remove(record.ResultFile)
	left.from(in.rec)
	return nil
}

// showProgressAgain goes on with the comment that showed how far the run was, where
// an event had asked for it.
func (in *invocation) showProgressAgain(ctx context.Context, h *history, so *reached) {
	asked, here := h.askedOn(), in.env.Get("GITHUB_REPOSITORY")
	if asked.Number == 0 || !strings.EqualFold(here, asked.Repository) {
		return
	}
	so.task.ProgressOn = asked.Number
	if on, err := so.project.forge.Repository(here).Issue(ctx, asked.Number); err == nil {
		for _, c := range on.Comments {
			if intake.IsProgress(c) {
				so.task.ProgressLike = append(so.task.ProgressLike, c)
			}
		}
	}
	in.showProgress(ctx, so)
}

// moveIn makes the work tree what it was when the run was stopped, as far as that
// can be done: the setup commands are run again, and the work is put in.
func (so *reached) moveIn(ctx context.Context, h *history) error {
	untracked := so.checks().NeedUntracked()
	if so.found.Away == "" {
		// A run whose time is over goes on to publish what it has.
		if err := so.workspace.DropTemporary(context.WithoutCancel(ctx)); err != nil || !untracked {
			return err
		}
		return so.workspace.KeepUntrackedAgain(ctx)
	}
	if err := so.checks().SetUp(ctx); err != nil {
		return err
	}
	return so.workspace.MoveIn(ctx, workspace.Move{
		Away: so.found.Away, Change: h.Work.Change, ApplyPatches: so.agent.ApplyPatches, Untracked: untracked,
	})
}
