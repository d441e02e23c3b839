package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
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
	r.plan, r.nudged = h.Plan, h.nudged
	r.attempts, r.committed, r.asked = h.Work.Attempts, h.Commit(), h.asked
	if patches, err := os.ReadDir(r.rec.Join(record.PatchesFolder)); err == nil {
		r.patches = len(patches)
	}
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
	if r.away != "" {
		if err := r.rec.Write(awayFile, []byte(r.away)); err != nil {
			return err
		}
	}
	event := transcript.RunResumed{
		Version: r.options.Version, Torn: r.torn, Undone: r.undone, Elsewhere: r.away != "", Limits: r.raised, Seconds: r.history.elapsed.Seconds(),
	}
	if end := r.history.Finished; end != nil {
		event.After = end.Outcome + "/" + end.Reason
	}
	if err := r.rec.Append(transcript.TypeRunResumed, event); err != nil {
		return err
	}
	r.resumed, r.movesIn = true, r.away != "" && r.history.worked()
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
	if err := r.briefAgent(ctx); err != nil {
		return err
	}
	r.conversation.Restore(&r.history.conversation, model.Usage(r.history.Usage), r.conversation.Items())
	return nil
}

// catchUp answers the calls of the last answer that the run was stopped in, once
// there are tools again, and tells the model what is not as it was.
func (r *run) catchUp(ctx context.Context) error {
	if r.history == nil {
		return nil
	}
	past := r.history
	r.history = nil
	if err := r.conversation.Resume(ctx, &past.conversation, r.interrupted); err != nil {
		return err
	}
	var words []string
	if past.Finished != nil {
		words = append(words, "The run was stopped, and goes on now. What was said of budgets before holds no more: you are told when one is nearly used up.")
	}
	if r.away == "" && past.conversation.Told(leftRunning) {
		words = append(words, "The runner was started again, and what your commands had started and left running has ended.")
	}
	switch r.away {
	case inChange:
		words = append(words, "Your work so far was put into a fresh checkout. Files that git ignores are not there unless the setup commands make them, and nothing that your commands started runs.")
	case inPatches:
		words = append(words, "The run goes on on another machine. Your patches were applied there again; what commands changed is not there, and nothing that they started runs.")
	}
	if len(words) == 0 {
		return nil
	}
	return r.conversation.Tell(strings.Join(append(words, "Look at the checkout before you go on."), " "))
}

// leftRunning says whether an item tells of a command that went on running.
func leftRunning(item json.RawMessage) bool {
	return bytes.Contains(item, []byte("Process running with session ID "))
}

// interrupted tells the model of a call that was broken off.
func (r *run) interrupted(call tools.Call, began int64) tools.Result {
	const head = "The runner was killed while this call ran, and was started again. "
	patched := r.journalled >= began
	switch {
	case patched && r.undone:
		return tools.Refuse(head + "The patch was half applied and has been taken back whole: nothing of it stands. Send it again if it is still right.")
	case patched && r.wholePatch && call.Name == patchTool:
		return tools.Result{Output: head + "The patch is applied whole. Do not send it again."}
	case call.Name == patchTool && r.away != "":
		return tools.Refuse(head + "Look whether the patch stands in the checkout, and send it again if it does not and is still right.")
	case call.Name == patchTool:
		return tools.Refuse(head + "Nothing of the patch was applied. Send it again if it is still right.")
	}
	return tools.Refuse(head + "It was not run again. A command may have had some of its effects and not others: look at what is there, and repeat it if that is safe.")
}
