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

	"github.com/agent-ci/agent-ci/runner/record"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// openDirectory makes the run directory and begins the transcript.
func (r *run) openDirectory() error {
	path, err := r.directoryPath()
	if err != nil {
		return err
	}
	if err := outsideCheckout(path, r.options.Dir); err != nil {
		return err
	}
	defer r.departure.from(r.rec)
	return r.rec.Make(path, r.watch.Show)
}

// directoryPath is where the run's files go, absolute.
func (r *run) directoryPath() (string, error) {
	path := r.options.Out
	if path == "" {
		var err error
		if path, err = record.DefaultPath(r.env.Get, r.rec.ID); err != nil {
			return "", err
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find run directory: %w", err)
	}
	return path, nil
}

// salvageTime is how long a run that was stopped may take to keep its work.
const salvageTime = 20 * time.Second

// finish keeps what there is, puts the checkout in order and writes the result.
// It does so after a cancelled ctx as well.
func (r *run) finish(ctx context.Context, err error) record.Result {
	stop := cmp.Or(r.objectFailure(err), r.outcomeOf(ctx, err))
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), salvageTime)
	defer cancel()
	if r.options.Hurry != nil {
		defer context.AfterFunc(r.options.Hurry, cancel)()
	}
	r.endProcesses()
	note := r.salvage(late, stop)
	stop.Message = r.rec.Redact(strings.TrimSpace(stop.Message + " " + note))
	r.endProgress(late, stop)
	result := r.result(stop, err)
	r.rec.Rest() // its file goes with the working files
	files, err := r.rec.Digests(late)
	if err != nil {
		result.Errors = append(result.Errors, fmt.Sprintf("the digests of the run's files: %s", r.rec.Redact(err.Error())))
	}
	r.conclude(&result, files)
	return result
}

// outcomeOf reads the outcome off an error or, without one, off what happened.
func (r *run) outcomeOf(ctx context.Context, err error) *outcome.Stop {
	switch {
	case err != nil:
		stop := *outcome.Of(ctx, err) // finish changes its message
		return &stop
	case r.overBudget != nil:
		return r.publishedOverBudget()
	case r.changes.Empty():
		return r.withoutChange()
	case !r.table.Passed:
		return r.verifyFailed()
	case r.published.unchanged && r.published.operation != "created":
		return outcome.Stopf(outcome.NoChanges, "already_published",
			"The change is the one that branch %s already holds (commit %s); nothing was pushed.", r.branch, gitops.Short(r.published.commit))
	}
	return outcome.Stopf(outcome.Changed, r.published.reason(), "%s", r.published.sentence(r.checkoutName()))
}

// publishedOverBudget is the end of a run that a budget ended and whose work was
// published as a draft.
func (r *run) publishedOverBudget() *outcome.Stop {
	stop := *r.overBudget
	if r.published.commit != "" {
		stop.Message += " " + r.published.sentence(r.checkoutName())
	}
	return &stop
}

func (r *run) verifyFailed() *outcome.Stop {
	var red []string
	for _, row := range r.table.Rows {
		if !row.Passed {
			red = append(red, fmt.Sprintf("%s is %s (was %s, log %s)", row.Name, row.After, row.Before, r.rec.Join(row.Log)))
		}
	}
	stop := outcome.Stopf(outcome.VerifyFailed, "red", "The change does not pass: %s.", strings.Join(red, "; "))
	if r.published.commit != "" {
		stop.Message += " " + r.published.sentence(r.checkoutName())
	}
	return stop
}

// publishedSoFar tells where the commit is of a run that ended while it was
// published.
func (r *run) publishedSoFar(stop *outcome.Stop) string {
	p := r.published
	if stop.Outcome != outcome.Cancelled && (stop.Outcome != outcome.ForgeFailed || p.remote != "") {
		return "" // told already
	}
	if p.notPushed == "" {
		p.notPushed = "the run ended before that"
	}
	return p.sentence(r.checkoutName())
}

func (r *run) result(stop *outcome.Stop, err error) record.Result {
	result := record.NewResult(r.rec.ID, stop)
	result.BaseSHA, result.HeadSHA, result.Branch = r.base.SHA, r.published.commit, r.published.branch
	result.PullRequest = r.published.pullRequest()
	result.Plan = append(result.Plan, r.plan.Steps...)
	result.Verify = verifyRows(r.table.Rows)
	result.Warnings = append(result.Warnings, r.rec.Warnings()...)
	result.Sandbox, result.Denied = r.confined, r.denied()
	result.Worked, result.Directory, result.File = r.snapshot != nil, r.rec.Path(), record.ResultFile
	result.BodyFile, result.Summary, result.Output = r.bodyFile, r.summary, r.outputFile
	if r.conversation != nil {
		result.Usage = transcript.Usage(r.conversation.Work().Spent.Usage)
		result.CostUSD = r.cost()
	}
	if !r.changes.Empty() {
		result.Changes = &record.ChangeSummary{Files: len(r.changes.Files), Insertions: r.changes.Insertions, Deletions: r.changes.Deletions}
		result.Stat = r.shownFiles()
	}
	var problems job.Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			result.Problems = append(result.Problems, p.String())
		}
	}
	return result
}

func verifyRows(rows []transcript.VerifyRow) []record.VerifyRow {
	list := make([]record.VerifyRow, 0, len(rows))
	for _, row := range rows {
		list = append(list, record.VerifyRow{Name: row.Name, Before: row.Before, After: row.After, Seconds: row.Seconds, Log: row.Log})
	}
	return list
}

// conclude writes the last event and result.json. What cannot be written is
// told in the result.
func (r *run) conclude(result *record.Result, files []transcript.FileDigest) {
	if !r.departure.concludes() {
		return
	}
	event := transcript.RunFinished{
		Outcome: string(result.Outcome), Reason: result.Reason, Message: result.Message, ExitCode: result.ExitCode,
		Summary: r.summary, Usage: result.Usage, CostUSD: result.CostUSD, Seconds: time.Since(r.began).Seconds(), Files: files,
	}
	result.Message = strings.TrimSpace(result.Message + " " + r.resumeHint(result.Outcome, result.Reason))
	if r.conversation != nil {
		spent := r.conversation.Work().Spent
		event.Turns, event.Calls, event.Hosted = spent.Turns, spent.Calls, spent.Hosted
	}
	r.rec.DropReserve()
	failed := func(err error) {
		if err != nil {
			result.Errors = append(result.Errors, r.rec.Redact(err.Error()))
		}
	}
	unrecorded := r.start()
	if unrecorded == nil {
		unrecorded = r.recordEnd(event, result)
	}
	if unrecorded == nil {
		unrecorded = r.rec.SyncLog()
	}
	failed(unrecorded)
	result.TranscriptSHA256 = r.rec.Log().Head()
	err := r.rec.WriteJSON(record.ResultFile, result)
	if err == nil {
		err = record.SyncIn(r.rec.Root(), ".")
	}
	if err != nil {
		failed(err)
		result.File = ""
	}
	if result.File != "" {
		r.removeScratch("")
	}
	if result.File != "" && unrecorded == nil { // else the run can go on as one that was killed
		r.dropState(result.Outcome)
	}
	if len(result.Errors) > 0 && result.ExitCode == 0 {
		result.Outcome, result.Reason = outcome.InternalError, "not_recorded"
		result.ExitCode = result.Outcome.ExitCode()
	}
	// The page can be made again from the transcript: that it is missing
	// changes nothing of how the run ended.
	if err := r.rec.Report(); err != nil {
		failed(err)
		return
	}
	result.ReportFile = record.ReportFile
}

// recordEnd writes the last event, and makes the result what that tells of it.
func (r *run) recordEnd(event transcript.RunFinished, result *record.Result) error {
	raw, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	event.Result = raw
	e, err := r.rec.AppendAs(transcript.TypeRunFinished, event)
	if err == nil {
		err = json.Unmarshal(e.Data, &event)
	}
	if err == nil {
		err = json.Unmarshal(event.Result, result)
	}
	if err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	return nil
}

// unrecorded is the result of a run that could not even make its directory.
func (r *run) unrecorded(err error) record.Result {
	return record.NewResult(r.rec.ID, cmp.Or(r.objectFailure(err), outcome.Of(context.Background(), err)))
}

func (r *run) close() {
	r.endProcesses()
	if r.checkout != nil {
		_ = r.checkout.Close()
	}
	r.rec.Close()
}

// shownFiles are the files of the change without secrets, which a name may hold.
func (r *run) shownFiles() []transcript.ChangeFile {
	files := changeFiles(r.changes)
	for i := range files {
		files[i].Path = r.rec.Redact(files[i].Path)
	}
	return files
}
