package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// ResumeOptions say which run goes on. All settings but limits are those of its
// transcript: a run that is resumed may never do what it was not started for.
type ResumeOptions struct {
	RunDir string
	Dir    string   // the checkout; empty means where the run worked
	Set    []string // limits, which may be other ones: KEY=VALUE
	Quiet  bool

	Environ  []string
	Reserved []string
	Version  string
	Events   io.Writer // as in Options
	Progress io.Writer
	Step     *actions.Step // as in Options
	Hurry    context.Context
}

// redactedMark begins what stands in a transcript in the place of a secret.
const redactedMark = "[secret "

// Resume goes on with a run that was killed or stopped, from its last event.
// Before it has begun to, what fails leaves the run directory as it is, so that
// it can be tried again.
func Resume(ctx context.Context, o ResumeOptions) record.Result {
	r := newRun(Options{
		Dir: o.Dir, Quiet: o.Quiet, Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Events: o.Events, Progress: o.Progress, Step: o.Step, Hurry: o.Hurry,
	}, "", time.Now())
	return r.attended(ctx, o.Hurry, func() record.Result {
		result := r.again(ctx, o)
		r.tellStep(&result)
		return result
	})
}

func (r *run) again(ctx context.Context, o ResumeOptions) record.Result {
	err := r.guarded(ctx, func(ctx context.Context) error { return r.reopen(ctx, o) })
	if r.history != nil && r.history.Finished != nil && !r.rec.Has(record.ResultFile) {
		return r.concludeAgain()
	}
	if err == nil {
		err = r.guarded(ctx, r.proceed)
	}
	if !r.resumed {
		return r.unrecorded(err)
	}
	return r.finish(ctx, err)
}

// reopen reads the run directory, and makes sure that nobody else works in it.
func (r *run) reopen(ctx context.Context, o ResumeOptions) error {
	r.maskSecrets()
	dir, err := record.OpenDirectory(o.RunDir)
	if err != nil {
		return err
	}
	r.rec.Directory = dir
	if err := r.rec.Lock(); err != nil {
		return err
	}
	if r.torn, err = r.rec.Reopen(r.watch.Show); err != nil {
		return cannotResume("%s", outcome.Trimmed(err)).Because(err)
	}
	if r.history, err = r.readHistory(); err != nil {
		return err
	}
	r.history.limits, r.raised = r.history.job.Limits, o.Set
	if r.history.job.Limits, err = settings.SetLimits(r.history.limits, o.Set); err != nil {
		return err
	}
	r.history.pending = r.rec.Has(awayFile)
	if err := r.history.resumable(); err != nil {
		return err
	}
	if err := r.rec.Unaltered(ctx, r.history.Finished, record.PackFile, record.WorkPackFile, record.PatchesFolder); err != nil {
		return cannotResume("%s", outcome.Trimmed(err))
	}
	r.adoptHistory()
	return dir.Reserve()
}

// concludeAgain writes the result of a run that was killed between its last
// event and its result.
func (r *run) concludeAgain() record.Result {
	end := r.history.Finished
	result := record.Result{Worked: r.history.worked(), Directory: r.rec.Path(), File: record.ResultFile, Summary: end.Summary}
	if err := json.Unmarshal(end.Result, &result); err != nil {
		return r.unrecorded(fmt.Errorf("read the last event: %w", err))
	}
	if change := r.history.Work.Change; change != nil && len(change.Files) > 0 {
		result.Stat = change.Files
	}
	result.TranscriptSHA256 = r.rec.Log().Head()
	if err := r.rec.WriteJSON(record.ResultFile, result); err != nil {
		result.Errors, result.File = append(result.Errors, err.Error()), ""
	}
	return result
}

// adoptHistory takes over what the transcript says of the run.
func (r *run) adoptHistory() {
	h := r.history
	r.adoptTask()
	r.began = time.Now().Add(-h.elapsed)
	r.rec.GoOn(h.Warnings)
	r.plan, r.attempts, r.committed = h.Plan, h.Work.Attempts, h.Commit()
}

// adoptTask takes over what the run was to do, and nothing of what it did.
func (r *run) adoptTask() {
	h := r.history
	r.rec.ID, r.branch = h.Started.RunID, h.Workspace.Branch
	r.options.Publish = h.Started.Publish
	r.set = &settings.Settings{Job: h.job}
	r.job = &r.set.Job
	r.redact()
	r.task = task{source: h.Task.Source, name: h.Task.Source, title: h.Task.Title, text: h.Task.Text, url: h.Task.URL, key: h.Started.Key, snapshot: h.Task.Snapshot, trigger: h.Task.Trigger, actor: h.Task.Actor, actorID: h.Task.ActorID}
	if issue, err := job.ParseIssue(h.Task.Issue); err == nil && issue.Repository != "" {
		r.task.issue, r.task.name = &issue, "issue "+issue.String()
	}
	if h.Task.Author != "" {
		r.task.author = &forge.User{Login: h.Task.Author, ID: h.Task.AuthorID}
	}
}

// proceed is the pipeline from where the run was. A run whose time is over goes
// on too, to what is done with its work.
func (r *run) proceed(ctx context.Context) error {
	if err := inTurn(ctx, r.meetModel, r.newForge, r.endLeftovers, r.resumeCheckout, r.readCommandRules, r.spareBase, r.confine, r.choosePublishing,
		r.readOutputSchema, r.recordResumed, r.resumeProgress, r.meetAgent); err != nil {
		return err
	}
	begin := []func(context.Context) error{r.restore, r.moveIn}
	if !r.history.worked() {
		begin = []func(context.Context) error{r.setUp, r.takeBaseline, r.briefAgent}
	}
	return r.inTime(ctx, append(begin, r.workUntilVerified, r.askOutput, r.publishWork)...)
}

// recordResumed writes that the run goes on. From here on it ends in a result,
// and not in the one of its last end.
func (r *run) recordResumed(context.Context) error {
	if r.found.Away != "" {
		if err := r.rec.Write(awayFile, []byte(r.found.Away)); err != nil {
			return err
		}
	}
	event := transcript.RunResumed{
		Version: r.options.Version, Torn: r.torn, Undone: r.found.Undone, Elsewhere: r.found.Away != "", Limits: r.raised, Seconds: r.history.elapsed.Seconds(),
	}
	if end := r.history.Finished; end != nil {
		event.After = end.Outcome + "/" + end.Reason
	}
	if err := r.rec.Append(transcript.TypeRunResumed, event); err != nil {
		return err
	}
	r.resumed, r.movesIn = true, r.found.Away != "" && r.history.worked()
	r.rec.Live()
	if err := r.rec.SyncLog(); err != nil {
		return err
	}
	r.rec.Remove(record.ResultFile)
	r.departure.from(r.rec)
	return nil
}

// resumeProgress goes on with the comment that showed how far the run was, where
// an event had asked for it.
func (r *run) resumeProgress(ctx context.Context) error {
	number := r.history.askedOn()
	if number == 0 || !strings.EqualFold(r.env.Get("GITHUB_REPOSITORY"), r.repo.Name()) {
		return nil
	}
	r.request = &actions.Request{Number: number}
	r.lookForProgress(ctx, number)
	return r.beginProgress(ctx)
}

// restore puts the conversation and the baseline where the last event left
// them.
func (r *run) restore(ctx context.Context) error {
	r.table = transcript.Verify{Passed: true}
	if r.history.Baseline != nil {
		r.baseline = r.history.Baseline.Rows
		r.table = *r.history.Baseline
	}
	if len(r.baseline) != len(r.job.Verify) {
		return cannotResume("its transcript has no baseline of the verify commands")
	}
	return r.briefAgent(ctx)
}
