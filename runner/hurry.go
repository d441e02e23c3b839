package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/runner/record"

	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// hurryTime is how long a run may take to end that is told to hurry. A cancelled
// job in Actions is killed 2.5 s after its second signal.
const hurryTime = 1500 * time.Millisecond

// departure is how a run leaves that does not come to its end in time. Until the
// run directory is there, nothing can be left.
type departure struct {
	mu        sync.Mutex
	rec       *record.Record
	concluded bool // the result is written, or is about to be
	gone      bool
}

func (d *departure) from(rec *record.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rec = rec
}

// concludes says that the run writes its result, unless it has left.
func (d *departure) concludes() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.concluded = !d.gone
	return d.concluded
}

// leaves says that nobody waits for the run any more, unless it writes its result.
func (d *departure) leaves() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = !d.concluded
	return d.gone
}

// attended does work until it has its result. Once hurry has ended it is waited for
// a moment more: whatever it is busy with then, the run leaves a result, and its
// process ends. hurry may be nil.
func (r *run) attended(ctx, hurry context.Context, work func() Result) Result {
	if hurry == nil {
		defer r.close()
		return work()
	}
	done := make(chan Result, 1)
	go func() {
		defer r.close()
		done <- work()
	}()
	select {
	case result := <-done:
		return result
	case <-hurry.Done():
	}
	select {
	case result := <-done:
		return result
	case <-time.After(hurryTime):
	}
	if !r.departure.leaves() {
		return <-done
	}
	return r.departure.result(ctx)
}

// result is that of a run which is left as one that was killed: it can go on.
func (d *departure) result(ctx context.Context) Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	stop := outcome.Stopf(outcome.Cancelled, "sigterm", "The run was cancelled.")
	errors.As(context.Cause(ctx), &stop)
	result := Result{
		Version: ResultVersion, Outcome: stop.Outcome, Reason: stop.Reason, ExitCode: stop.ExitCode(),
		PullRequest: PullRequest{Operation: "none"}, Plan: []transcript.PlanStep{}, Verify: []VerifyRow{}, Warnings: []transcript.Warning{},
		Sandbox: confine.Unconfined(),
		Message: "The run was cancelled, and again before it had put its work aside: the checkout is as the agent left it.",
	}
	if d.rec == nil {
		return result
	}
	result.RunID = d.rec.ID
	result.Message += " It can go on: agent-ci resume " + d.rec.Path() + "."
	result.Directory, result.File = d.rec.Path(), record.ResultFile
	d.rec.DropReserve()
	head, err := d.rec.Log().Abandon()
	if err != nil {
		result.Errors = append(result.Errors, err.Error())
	}
	result.TranscriptSHA256 = head
	if err := d.rec.WriteJSON(record.ResultFile, result); err != nil {
		result.Errors, result.File = append(result.Errors, err.Error()), ""
	}
	return result
}
