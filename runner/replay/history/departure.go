package history

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// EarlyExit lets the process exit if a run does not end in time. Without a record it leaves nothing behind.
type EarlyExit struct {
	mu        sync.Mutex
	rec       *record.Record
	concluded bool // the result is written, or is about to be
	abandoned bool
}

// forcedTimeout is how long a forced run may take to end. GitHub Actions kills a cancelled job 2.5 s after
// the second signal.
const forcedTimeout = 1500 * time.Millisecond

// Await runs work and returns its result. Once forced ends, it waits forcedTimeout longer. Then, unless work is
// already writing its result, it returns a result of its own, so that the process can exit. forced may be nil.
func (d *EarlyExit) Await(ctx, forced context.Context, work func() record.Result) record.Result {
	if forced == nil {
		return work()
	}
	done := make(chan record.Result, 1)
	go func() { done <- work() }()
	select {
	case result := <-done:
		return result
	case <-forced.Done():
	}
	select {
	case result := <-done:
		return result
	case <-time.After(forcedTimeout):
	}
	if !d.tryAbandon() {
		return <-done
	}
	return d.abandonedResult(ctx)
}

// SetRecord sets the run's record.
func (d *EarlyExit) SetRecord(rec *record.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rec = rec
}

// MayConclude reports whether the run may write its result. From then on it cannot be abandoned.
func (d *EarlyExit) MayConclude() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.concluded = !d.abandoned
	return d.concluded
}

// tryAbandon marks the run as abandoned, unless it is writing its result, and reports whether it did. An abandoned
// run may not write a result.
func (d *EarlyExit) tryAbandon() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abandoned = !d.concluded
	return d.abandoned
}

// abandonedResult writes and returns the result of an abandoned run. Such a run can resume, like a killed one.
func (d *EarlyExit) abandonedResult(ctx context.Context) record.Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	stop := outcome.Stopf(outcome.Cancelled, "sigterm", "The run was cancelled.")
	errors.As(context.Cause(ctx), &stop) // the cause, such as a signal, replaces the default
	result := record.NewResult("", stop)
	result.Message = "The run was cancelled, and again before it had put its work aside: " + d.describeWork()
	if d.rec == nil {
		return result
	}
	result.RunID = d.rec.ID
	result.Message += " To continue: agent-ci resume " + d.rec.Path() + "."
	d.rec.DropReserve()
	head, err := d.rec.Log().Abandon()
	if err != nil {
		result.Errors = append(result.Errors, err.Error())
	}
	result.TranscriptSHA256 = head
	d.rec.WriteResult(record.ResultFile, &result)
	return result
}

// describeWork says where unfinished work is. No landing begins afterwards, so it stays true.
func (d *EarlyExit) describeWork() string {
	switch {
	case d.rec != nil && (!d.rec.Leave() || workspace.LandingInterrupted(d.rec.Directory)):
		return "the change was being put into the checkout, and may stand there whole or in part; the work is in the run directory, and agent-ci resume first takes out of the checkout what came there."
	case d.rec != nil && confine.HasWorkTree(d.rec.Directory):
		return "the checkout is as it was, the work is in the run directory."
	}
	return "the checkout is as it was."
}
