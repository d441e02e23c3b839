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

// Departure lets the process exit if a run does not end in time. Without a record there is nothing to leave behind.
type Departure struct {
	mu        sync.Mutex
	rec       *record.Record
	concluded bool // the result is written, or is about to be
	abandoned bool
}

// hurryTimeout bounds the end of a run told to hurry. GitHub Actions kills a cancelled job 2.5 s after
// the second signal.
const hurryTimeout = 1500 * time.Millisecond

// Attend waits for the result of work. After hurry, which may be nil, it waits a moment more. Then,
// unless work is already writing its result, it returns a result of its own so the process can exit.
func (d *Departure) Attend(ctx, hurry context.Context, work func() record.Result) record.Result {
	if hurry == nil {
		return work()
	}
	done := make(chan record.Result, 1)
	go func() { done <- work() }()
	select {
	case result := <-done:
		return result
	case <-hurry.Done():
	}
	select {
	case result := <-done:
		return result
	case <-time.After(hurryTimeout):
	}
	if !d.abandon() {
		return <-done
	}
	return d.abandonedResult(ctx)
}

// SetRecord sets the run's record.
func (d *Departure) SetRecord(rec *record.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rec = rec
}

// MayConclude reports whether the run may write its result: it has not been left.
func (d *Departure) MayConclude() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.concluded = !d.abandoned
	return d.concluded
}

// abandon reports that nobody waits any more, unless the run writes its result.
func (d *Departure) abandon() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abandoned = !d.concluded
	return d.abandoned
}

// abandonedResult returns the result of a run left like a killed one. It can resume.
func (d *Departure) abandonedResult(ctx context.Context) record.Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	stop := outcome.Stopf(outcome.Cancelled, "sigterm", "The run was cancelled.")
	errors.As(context.Cause(ctx), &stop)
	result := record.NewResult("", stop)
	result.Message = "The run was cancelled, and again before it had put its work aside: " + d.describeWorkPlace()
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

// describeWorkPlace says where unfinished work is.
func (d *Departure) describeWorkPlace() string {
	switch {
	case d.rec != nil && workspace.LandingInterrupted(d.rec.Directory):
		return "the change was being put into the checkout, and may stand there whole or in part; the work is in the run directory, and agent-ci resume first takes out of the checkout what came there."
	case d.rec != nil && confine.HasWorkTree(d.rec.Directory):
		return "the checkout is as it was, the work is in the run directory."
	}
	return "the checkout is as it was."
}
