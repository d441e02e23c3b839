package runner

import (
	"cmp"
	"context"

	"github.com/agent-ci/agent-ci/runner/check/verify"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/feedback"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/setup/start"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// ending collects what finish reports, cleans up and closes. A stage registers its results here, even
// if it fails afterwards.
type ending struct {
	*start.Found
	work          work
	inspection    transcript.Inspection // the signs found in the change
	published     *publish.Publication  // nil until publishing begins
	posted        *feedback.Posted      // findings posted on the run's subject; nil for none
	bundle        bool                  // the run directory is a bundle, made by this run or an earlier one
	baselineCache *verify.BaselineCache // nil for none
	tookTooLong   error                 // of taking the change, if graceTime was too short for it; else nil
}

// close releases sandboxes, checkout and baseline cache. Errors are ignored: the result is written already.
func (e *ending) close() {
	e.Hooks.SetAgentSandbox(nil)
	if e.Sandboxes != nil && e.Assignment.Recording != nil { // a replay is never resumed
		_ = e.Sandboxes.RemoveTreeAtEnd()
	}
	if e.Workspace != nil {
		_ = e.Workspace.Close()
	}
	if e.Sandboxes != nil {
		e.Sandboxes.ReleaseTreePath()
	}
	if e.baselineCache != nil {
		_ = e.baselineCache.Close()
	}
}

// outcome returns the outcome of the run: that of err, else that of the published, posted or stopped work.
func (e *ending) outcome(ctx context.Context, rec *record.Record, err error) *outcome.Stop {
	if err != nil {
		stop := *outcome.ForError(ctx, err) // finish changes its message
		return &stop
	}
	p := e.publication()
	switch isStopped := e.work.stopped != nil; {
	case !isStopped && e.posted != nil:
		return e.posted.Outcome()
	case !isStopped && p.Change.Empty():
		return p.OutcomeWithoutChange(&e.Assignment.Task, e.Assignment.Job(), e.work.droppedPaths, e.work.outputFile)
	}
	return p.Outcome(rec, e.work.stopped, e.Assignment.Task.Branch, e.Workspace.NameOrPath())
}

// publication returns the publication so far. Without one it returns the unpublished change with its base.
func (e *ending) publication() publish.Publication {
	if e.published != nil {
		return *e.published
	}
	p := publish.Publication{Base: e.AbandonedBase, Change: e.work.change, Verification: e.work.verification}
	if e.Workspace != nil {
		p.Base = e.Workspace.Base()
	}
	return p
}

// runFinished returns the run's last event. The record adds the totals of earlier events.
func (e *ending) runFinished(stop *outcome.Stop) transcript.RunFinished {
	p := e.publication()
	end := transcript.RunFinished{
		Outcome: string(stop.Outcome), Reason: stop.Reason, Message: outcome.ShortenNames(stop.Message), ExitCode: stop.ExitCode(), Summary: e.summary(),
		BaseSHA: p.Base.SHA, HeadSHA: p.Commit, Branch: p.Branch, Output: e.work.outputFile,
	}
	if e.Sandboxes != nil {
		end.Denied = e.Sandboxes.DeniedCount()
	}
	return end
}

// summary returns the agent's summary, or else a recipe's or bundle's.
func (e *ending) summary() string {
	if e.Agent == nil {
		return e.work.summary
	}
	return cmp.Or(e.Agent.Work().Summary, e.work.summary)
}

// workspaceOrEmpty returns the workspace. Without a checkout it returns an empty one, whose methods do nothing.
func (e *ending) workspaceOrEmpty(rec *record.Record) *workspace.Workspace {
	if e.Workspace == nil {
		return workspace.Folder(rec, "")
	}
	return e.Workspace
}

// mayResume reports whether agent-ci resume could continue the run. Replays, repairs and runs on a
// person's branch cannot resume.
func (e *ending) mayResume(rec *record.Record, o outcome.Outcome) bool {
	a := e.Assignment
	return e.Workspace != nil && a.Recording == nil && a.Task.Mode() != intake.Join && a.Task.Repair == nil && history.CanResumeAfter(rec, o)
}

// resumeHint returns a sentence on how to resume a stopped run, or "".
func (e *ending) resumeHint(rec *record.Record, getenv func(string) string, o outcome.Outcome, reason string) string {
	if !e.mayResume(rec, o) || e.Workspace.WorkPendingHere() { // the message already has the hint
		return ""
	}
	return history.ResumeHint(rec, getenv, o, reason, e.Assignment.Script)
}
