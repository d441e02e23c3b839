package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// salvageTime is how long a run that was stopped may take to keep its work, and then to ask its
// hooks, and then to tell of its end.
const salvageTime = 20 * time.Second

// finish keeps what there is, puts the checkout in order and writes the result.
// It does so after a cancelled ctx as well.
func (in *invocation) finish(ctx context.Context, so *reached, left *departure, cause error) record.Result {
	stop := cmp.Or(workspace.ObjectFailure(cause), so.workspaceOr(in.rec).FilterFailure(cause), so.end(ctx, in.rec, cause))
	if stop.Outcome == outcome.Changed && so.project.publish == publishNone {
		so.workspace.PutIntoCheckout(ctx, so.change) // which takes as long as the change is large
	}
	late, cancel := in.late(ctx)
	note := in.salvage(late, so, stop)
	cancel()
	stop = so.keptOut(ctx, stop)
	stop.Message = outcome.Shortened(in.rec.Redact(strings.TrimSpace(stop.Message + " " + note)))
	stop = in.endHooks(ctx, so, stop)
	late, cancel = in.late(ctx)
	defer cancel()
	in.concludeProgress(late, so, stop)
	in.concludeRepair(late, so, stop)
	event := so.finished(stop)
	in.rec.Rest() // its file goes with the working files
	var failed []string
	files, err := in.rec.Digests(late)
	if event.Files = files; err != nil {
		failed = append(failed, fmt.Sprintf("the digests of the run's files: %s", in.rec.Redact(err.Error())))
	}
	if !left.concludes() {
		return in.project(so, event)
	}
	result := in.conclude(so, event)
	result.Errors = append(failed, result.Errors...)
	result.Problems = problemsOf(cause)
	return result
}

// late is for what is done at the end of a run, though ctx may have ended.
func (in *invocation) late(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), salvageTime)
	if in.hurry == nil {
		return late, cancel
	}
	forget := context.AfterFunc(in.hurry, cancel)
	return late, func() { forget(); cancel() }
}

// end reads the outcome off an error or, without one, off what happened.
func (so *reached) end(ctx context.Context, rec *record.Record, err error) *outcome.Stop {
	if err != nil {
		stop := *outcome.Of(ctx, err) // finish changes its message
		return &stop
	}
	p := so.published()
	switch {
	case so.stopped != nil:
		stop := *so.stopped
		if red := redChecks(rec, p.Table); p.Commit != "" && red != "" {
			stop.Message += " " + red
		}
		stop.Message += so.whereCommitted(p)
		return &stop
	case so.said != nil:
		return so.said.End()
	case p.Change.Empty():
		return so.withoutChange(p)
	case !p.Table.Passed:
		stop := outcome.Stopf(outcome.VerifyFailed, "red", "%s", redChecks(rec, p.Table))
		stop.Message += so.whereCommitted(p)
		return stop
	case p.HeldAlready():
		return outcome.Stopf(outcome.NoChanges, "already_published",
			"The change is the one that branch %s already holds (commit %s); nothing was pushed.", so.task.Branch, gitops.Short(p.Commit))
	}
	return outcome.Stopf(outcome.Changed, p.Reason(), "%s", p.Sentence(so.workspace.Place()))
}

// whereCommitted tells where a commit is, for the end of a message; empty where
// there is none.
func (so *reached) whereCommitted(p publish.Publication) string {
	if p.Commit == "" {
		return ""
	}
	return " " + p.Sentence(so.workspace.Place())
}

// redChecks names the checks that the change does not pass, each with its log, in a sentence;
// empty where there is none.
func redChecks(rec *record.Record, table transcript.Verify) string {
	var red []string
	for _, row := range table.Rows {
		if row.Passed {
			continue
		}
		tests := row.Tests()
		if tests != "" {
			tests += ", "
		}
		red = append(red, fmt.Sprintf("%s is %s (%swas %s, %s)", row.Name, row.After, tests, row.Before, rec.Whereabouts(row.Log)))
	}
	if len(red) == 0 {
		return ""
	}
	return fmt.Sprintf("The change does not pass: %s.", strings.Join(red, "; "))
}

// withoutChange is the end of a run that has nothing to publish.
func (so *reached) withoutChange(p publish.Publication) *outcome.Stop {
	stop := outcome.Stopf(outcome.NoChanges, "nothing_to_do", "The agent ended without a change; its last message says why.")
	switch {
	case p.InBase:
		stop = outcome.Stopf(outcome.NoChanges, "already_in_base", "The change is one that %s has already, since %s.", p.Base.Branch, gitops.Short(p.Base.SHA))
	case len(so.dropped) > 0:
		stop = outcome.Stopf(outcome.NoChanges, "only_protected",
			"The agent changed protected files alone (%s), which policy.change.protected leaves out; if they are to change, take them out of policy.protect.", markdown.SomeFiles(so.dropped))
	case so.task.Subject != nil:
		return outcome.Stopf(outcome.NoChanges, "answered", "The agent changed nothing; what it found is in %s, and was said to nobody (--publish none).", so.outFile)
	case so.job().Task.Expects == "answer":
		return outcome.Stopf(outcome.NoChanges, "answered", "The agent answered and changed nothing; its answer is the summary.")
	}
	stop.Message += p.OpenSentence()
	return stop
}

// salvage keeps the work of a run that was stopped, and tells what became of it.
func (in *invocation) salvage(ctx context.Context, so *reached, stop *outcome.Stop) string {
	if so.workspace == nil {
		return ""
	}
	p := so.published()
	note := so.workspace.Salvage(ctx, workspace.Ending{
		Changed: stop.Outcome == outcome.Changed, Published: p.Commit != "", Stays: so.project.publish == publishNone, GoesOn: in.canGoOn(so, stop.Outcome), Change: so.change,
		Take: func(ctx context.Context) (*gitops.ChangeSet, error) {
			err := so.takeChange(ctx)
			return so.change, err
		},
	})
	if p.Commit == "" || stop.Outcome != outcome.Cancelled && (stop.Outcome != outcome.ForgeFailed || p.Remote != "") {
		return note // the message tells where the commit is already
	}
	p.NotPushed = cmp.Or(p.NotPushed, "the run ended before that")
	return strings.TrimSpace(p.Sentence(so.workspace.Place()) + " " + note)
}

// keptOut is the end of a run whose change was to stay in the checkout and could not be
// put there.
func (so *reached) keptOut(ctx context.Context, stop *outcome.Stop) *outcome.Stop {
	if so.workspace == nil || so.workspace.KeptOut() == nil || stop.Outcome != outcome.Changed {
		return stop
	}
	instead := *outcome.Of(ctx, so.workspace.KeptOut())
	return &instead
}

// concludeProgress says how the run ended where a comment shows it.
func (in *invocation) concludeProgress(ctx context.Context, so *reached, stop *outcome.Stop) {
	p := so.published()
	end := progress.End{Stop: stop, Plan: so.work().Plan, PullRequest: pullRequestOf(p), Site: so.project.site(), Draft: p.Draft, View: in.view}
	if stop.Outcome == outcome.NoChanges && p.Commit == "" && so.task.Snapshot != "" {
		end.Trace = intake.FruitlessMark(so.task.Snapshot, p.Base.SHA)
	}
	if err := in.watch.Conclude(ctx, end); err != nil {
		in.rec.Warn("comment_not_written", "The progress could not be shown in a comment: %v", err)
	}
}

// view is what is known of the run, for the comment; nil where it cannot be read.
func (in *invocation) view() *transcript.View {
	if in.rec.Directory == nil {
		return nil
	}
	view, err := in.rec.View()
	if err != nil { // the comment tells how the run ended all the same
		return nil
	}
	return view
}

func pullRequestOf(p publish.Publication) record.PullRequest {
	if p.Pull == nil {
		return record.PullRequest{Operation: "none"}
	}
	return record.PullRequest{Number: p.Pull.Number, URL: p.Pull.URL, Operation: p.Operation}
}

// finished returns the last event of a run that ended so.
func (so *reached) finished(stop *outcome.Stop) transcript.RunFinished {
	p := so.published()
	spent, cost := so.spent()
	end := transcript.RunFinished{
		Outcome: string(stop.Outcome), Reason: stop.Reason, Message: outcome.Shortened(stop.Message), ExitCode: stop.ExitCode(), Summary: so.work().Summary,
		Usage: transcript.Usage(spent.Usage), CostUSD: cost, Turns: spent.Turns, Calls: spent.Calls, Hosted: spent.Hosted,
		BaseSHA: p.Base.SHA, HeadSHA: p.Commit, Branch: p.Branch, Output: so.outFile,
	}
	if so.boxes != nil {
		end.Denied = so.boxes.Denied()
	}
	return end
}

// problemsOf returns the mistakes of a job that ended a run, one a line.
func problemsOf(err error) (lines []string) {
	problems, _ := errors.AsType[job.Problems](err)
	for _, problem := range problems {
		lines = append(lines, problem.String())
	}
	return lines
}

// project returns the result that the events of the run tell, which ends as the event says.
func (in *invocation) project(so *reached, end transcript.RunFinished) record.Result {
	view, err := in.rec.Survey(nil)
	if err != nil { // the run ends all the same, and result.json tells of its end
		view = &transcript.View{Warnings: in.rec.Warnings()}
	}
	view.Finished = &end
	result := record.Project(view)
	result.RunID, result.Worked = in.rec.ID, so.workspace != nil && so.workspace.Worked()
	result.Directory, result.File, result.BodyFile = in.rec.Path(), record.ResultFile, so.published().BodyFile
	return result
}

// conclude writes the last event and result.json. What cannot be written is
// told in the result.
func (in *invocation) conclude(so *reached, event transcript.RunFinished) record.Result {
	event.Seconds = time.Since(in.began).Seconds()
	event.Next = in.resumeHint(so, outcome.Outcome(event.Outcome), event.Reason)
	in.rec.DropReserve()
	unrecorded := in.recordEnd(so, &event)
	result := in.project(so, event)
	failed := func(err error) {
		if err != nil {
			result.Errors = append(result.Errors, in.rec.Redact(err.Error()))
		}
	}
	failed(unrecorded)
	result.TranscriptSHA256 = in.rec.Log().Head()
	if err := cmp.Or(in.rec.WriteJSON(record.ResultFile, result), in.rec.Sync(".")); err != nil {
		failed(err)
		result.File = ""
	}
	ws := so.workspaceOr(in.rec)
	if result.File != "" && !ws.KeepsTree(unrecorded == nil) {
		if so.boxes != nil {
			failed(so.boxes.LeaveTree())
		}
		in.rec.Remove(confine.ScratchFolder)
	}
	if result.File != "" && unrecorded == nil { // else the run can go on as one that was killed
		ws.DropState()
	}
	if len(result.Errors) > 0 && result.ExitCode == 0 {
		result.Outcome, result.Reason = outcome.InternalError, "not_recorded"
		result.ExitCode = result.Outcome.ExitCode()
	}
	// The page can be made again from the transcript: that it is missing
	// changes nothing of how the run ended.
	if err := in.rec.Report(); err != nil {
		failed(err)
		return result
	}
	result.ReportFile = record.ReportFile
	return result
}

// recordEnd writes the last event, and makes it what the transcript says: without secrets.
func (in *invocation) recordEnd(so *reached, event *transcript.RunFinished) error {
	if err := so.workspaceOr(in.rec).MarkLeft(); err != nil {
		return err
	}
	if err := in.recordStart(so); err != nil {
		return err
	}
	e, err := in.rec.AppendAs(transcript.TypeRunFinished, event)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(e.Data, event); err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	return in.rec.SyncLog()
}

// begin writes the first events of the run.
func (in *invocation) begin(so *reached) error {
	in.watch.Follow(nil, limitsOf(so.job()))
	if err := in.recordStart(so); err != nil {
		return err
	}
	if err := so.skills.Keep(in.rec); err != nil { // before what makes a run one that can go on
		return err
	}
	if err := in.rec.Append(transcript.TypeTask, so.task.Event()); err != nil {
		return err
	}
	ws, policy := so.workspace, so.job().Policy
	if err := in.rec.Append(transcript.TypeWorkspace, transcript.Workspace{
		Repository: so.project.name(), Base: ws.Base().Branch, BaseSHA: ws.Base().SHA, Branch: so.task.Branch,
		Path: so.job().Repository.Path, Cloned: ws.Cloned(), Root: ws.Root(),
	}); err != nil {
		return err
	}
	confined := so.confined()
	if err := in.rec.Append(transcript.TypePolicy, transcript.Policy{
		Sandbox: policy.Sandbox, Network: so.boxes.Network(), Level: confined.Level, Layers: confined.Layers,
		WorkTree: confined.WorkTree, NoOverlay: so.boxes.WhyNoOverlay(), Seen: ws.SeenElsewhere(),
	}); err != nil {
		return err
	}
	return in.recordHooks(so)
}

// limitsOf are the limits that the status of a run shows.
func limitsOf(j *job.Job) progress.Limits {
	return progress.Limits{CostUSD: j.Limits.CostUSD, Tokens: j.Limits.Tokens}
}

// recordStart writes run.started, once, and the warnings that came before it.
func (in *invocation) recordStart(so *reached) error {
	if in.rec.Begun() {
		return nil
	}
	event := transcript.RunStarted{
		RunID: in.rec.ID, Version: in.version, Key: so.task.Key, Publish: cmp.Or(so.project.publish, in.publish, publishLocal), Link: in.env.RunLink(), Artifacts: in.env.Artifacts(), Price: so.model.Profile.Price, OutputSchema: so.output.Source,
	}
	if in.script != "" {
		event.Scripted = filepath.Base(in.script)
	}
	if so.settings != nil {
		raw, err := json.Marshal(so.job())
		if err != nil {
			return fmt.Errorf("encode job: %w", err)
		}
		event.Job = raw
		if event.Set, err = so.job().Set(); err != nil {
			return err
		}
	}
	return in.rec.Begin(event)
}

// unrecorded is the result of a run that could not even make its directory.
func (in *invocation) unrecorded(so *reached, err error) record.Result {
	return record.NewResult(in.rec.ID, cmp.Or(workspace.ObjectFailure(err), outcome.Of(context.Background(), err)))
}
