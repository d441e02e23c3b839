package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// endStepTime limits each step at the end of a stopped run: saving its work, its hooks, and reporting.
const endStepTime = 20 * time.Second

// runAndReport runs work and reports its result to GitHub Actions. A forced stop makes it return early.
func (r *runner) runAndReport(ctx context.Context, work func() record.Result) record.Result {
	defer r.Watch.ShowStatus(ctx, r.forceStop)()
	return r.end.Await(ctx, r.forceStop, func() record.Result {
		defer r.Record.Close()
		defer r.end.close()
		r.Watch.Mask(r.Env.Secrets())
		result := work()
		r.reportToStep(&result)
		return result
	})
}

// reportToStep writes the result to the step of GitHub Actions. Failures to write are added to result.Errors.
func (r *runner) reportToStep(result *record.Result) {
	a := r.end.Assignment
	site := a.Project.Site()
	if site == (transcript.Site{}) { // do not trust a site that only a transcript names
		site = transcript.Site{Server: r.Env.Get("GITHUB_SERVER_URL"), Repository: r.Env.Get("GITHUB_REPOSITORY")}
	}
	step := progress.StepResult{
		Result: *result, Record: r.Record, Site: site, Artifacts: r.Env.Artifacts(),
		Refused: r.end.bundle && result.TranscriptSHA256 == "",
	}
	if a.Settings != nil {
		step.Folder = a.Job().Repository.Path
	}
	if err := r.Watch.ReportToStep(step); err != nil {
		result.Errors = append(result.Errors, strings.Split(r.Record.Redact(err.Error()), "\n")...)
	}
}

// finish saves the work, cleans up the checkout and writes the result, even after ctx was cancelled.
func (r *runner) finish(ctx context.Context, cause error) record.Result {
	e := r.end
	stop := r.endHooks(ctx, r.saveWork(ctx, cause))
	late, cancel := r.endContext(ctx)
	defer cancel()
	r.ReportEnd(late, stop, e.publication())
	end := e.runFinished(stop)
	r.Record.StopHeartbeat() // writeEnd deletes its file with the working files
	if !e.MayConclude() {    // a forced stop has abandoned the run
		return record.NewResult(r.Record.ID, stop)
	}
	files, unread := r.Record.Digests(late)
	end.Files = files
	result := r.writeEnd(end)
	if unread != nil && late.Err() != nil {
		unread = errors.New("the run was stopped before they were computed")
	}
	if unread != nil {
		result.Errors = append(result.Errors, fmt.Sprintf("the digests of the run's files: %s", r.Record.Redact(unread.Error())))
	}
	result.Problems = config.ProblemLines(cause)
	return result
}

// saveWork writes a local change to the checkout, or saves the work of a stopped run. It returns the outcome,
// which says where the work is.
func (r *runner) saveWork(ctx context.Context, cause error) *outcome.Stop {
	e := r.end
	stop := cmp.Or(e.workspaceOrEmpty(r.Record).CheckoutFault(cause), e.outcome(ctx, r.Record, cause))
	changed := stop.Outcome == outcome.Changed
	if changed && e.Assignment.Project.Mode == publish.Nowhere {
		e.Workspace.WriteToCheckout(ctx, e.work.change) // no endStepTime: a large change takes long
	}
	late, cancel := r.endContext(ctx)
	defer cancel()
	note := r.keepWork(late, stop)
	if changed && e.Workspace != nil && e.Workspace.NotWritten() != nil {
		failure := *outcome.ForError(ctx, e.Workspace.NotWritten())
		stop = cmp.Or(e.Workspace.CheckoutFault(e.Workspace.NotWritten()), &failure)
	}
	stop.Message = outcome.ShortenNames(r.Record.Redact(strings.TrimSpace(stop.Message + " " + note)))
	return stop
}

// endContext returns a context for the run's end: it outlives ctx, by at most endStepTime from now. A
// forced stop cancels it.
func (r *runner) endContext(ctx context.Context) (context.Context, context.CancelFunc) {
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endStepTime)
	if r.forceStop == nil {
		return endCtx, cancel
	}
	stopWatching := context.AfterFunc(r.forceStop, cancel)
	return endCtx, func() { stopWatching(); cancel() }
}

// keepWork saves a stopped run's work and returns a sentence on where it is, or "".
func (r *runner) keepWork(ctx context.Context, stop *outcome.Stop) string {
	e := r.end
	if e.Workspace == nil {
		return ""
	}
	p := e.publication()
	note := e.Workspace.KeepWork(ctx, workspace.RunEnd{
		Changed:     stop.Outcome == outcome.Changed,
		Published:   p.Commit != "",
		ForCheckout: e.Assignment.Project.Mode == publish.Nowhere,
		Resumable:   e.mayResume(r.Record, stop.Outcome),
		Change:      e.work.change,
		Run:         r,
	})
	endedBeforePush := stop.Outcome == outcome.Cancelled || stop.Outcome == outcome.ForgeFailed && p.Remote == ""
	if p.Commit == "" || !endedBeforePush {
		return note // the message of stop already names a commit that was pushed
	}
	p.NotPushed = cmp.Or(p.NotPushed, "the run ended before that")
	return strings.TrimSpace(p.DescribeChange(e.Workspace.NameOrPath()) + " " + note)
}

// TakeUnsaved takes the change at the end of a run that has not saved it. It does not try again if graceTime was too
// short: it would have less time.
func (r *runner) TakeUnsaved(ctx context.Context) (*gitops.ChangeSet, error) {
	if r.end.tookTooLong != nil {
		return nil, r.end.tookTooLong
	}
	w, err := r.takeChange(ctx, r.end.Place, r.end.work)
	return w.change, err
}

// ResumesTree reports whether the run can resume if only its work tree has the work, whatever its outcome.
func (r *runner) ResumesTree() bool { return r.end.mayResume(r.Record, outcome.Cancelled) }

// endHooks runs the hooks for the run's end. It returns the outcome after their answers.
func (r *runner) endHooks(ctx context.Context, stop *outcome.Stop) *outcome.Stop {
	if r.end.Hooks == nil || !r.Record.Started() {
		return stop
	}
	p := r.end.publication()
	end := hooks.End{Branch: p.Branch, Commit: p.Commit}
	if p.Pull != nil {
		end.URL = p.Pull.URL
	}
	if ctx.Err() != nil { // cancelled; otherwise each hook has its own time limit
		late, cancel := r.endContext(ctx)
		defer cancel()
		ctx = late
	}
	return r.end.Hooks.ReviewEnd(ctx, stop, end)
}

// writeEnd writes the last event and result.json, and removes working files that no resume needs. Failures
// to write are added to the result's errors.
func (r *runner) writeEnd(event transcript.RunFinished) record.Result {
	event.Seconds = time.Since(r.Began).Seconds()
	event.ResumeHint = r.end.resumeHint(r.Record, r.Env.Get, outcome.Outcome(event.Outcome), event.Reason)
	r.Record.DropReserve()
	view, unrecorded := r.Record.Conclude(event, errors.Join(r.end.workspaceOrEmpty(r.Record).RecordWorkInTree(), r.RecordStart(r.end.Assignment)))
	result := record.ResultFromView(view)
	result.BodyFile = r.end.publication().BodyFile
	addError := func(err error) {
		if err != nil {
			result.Errors = append(result.Errors, r.Record.Redact(err.Error()))
		}
	}
	addError(unrecorded)
	r.Record.WriteResult(record.ResultFile, &result)
	ws := r.end.workspaceOrEmpty(r.Record)
	removesTree := result.File != "" && !ws.KeepsTree(unrecorded == nil)
	if removesTree && r.end.Sandboxes != nil && r.end.Assignment.Recording == nil { // Replay removes its own tree
		addError(r.end.Sandboxes.RemoveTreeAtEnd())
	}
	var removing sync.WaitGroup
	defer removing.Wait()
	removing.Go(func() { // while the report is written
		if removesTree {
			r.Record.Remove(confine.ScratchFolder)
		}
		if result.File != "" && unrecorded == nil { // without its last event, the run can be resumed as a killed one
			ws.DropState()
		}
	})
	if len(result.Errors) > 0 && result.ExitCode == 0 {
		result.Outcome, result.Reason = outcome.InternalError, "not_recorded"
		result.ExitCode = result.Outcome.ExitCode()
	}
	// The page can be regenerated from the transcript, so a failure does not change the outcome.
	err := r.Record.WriteReport(context.Background())
	if err != nil { // on a full disk, the files that are being removed make room
		removing.Wait()
		err = r.Record.WriteReport(context.Background())
	}
	if err != nil {
		addError(err)
		return result
	}
	result.ReportFile = record.ReportFile
	return result
}

// resultWithoutRecord returns the result of a run without a run directory, or of a resume that failed before it went on.
func (r *runner) resultWithoutRecord(err error) record.Result {
	return record.NewResult(r.Record.ID, cmp.Or(r.end.workspaceOrEmpty(r.Record).CheckoutFault(err), outcome.ForError(context.Background(), err)))
}
