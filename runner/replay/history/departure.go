package history

import (
	"context"
	"errors"
	"sync"

	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// Departure is how a run leaves that does not come to its end in time. Until the
// run directory is there, nothing can be left.
type Departure struct {
	mu        sync.Mutex
	rec       *record.Record
	concluded bool // the result is written, or is about to be
	gone      bool
}

// From says which record the run has.
func (d *Departure) From(rec *record.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rec = rec
}

// Concludes says that the run writes its result, unless it has left.
func (d *Departure) Concludes() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.concluded = !d.gone
	return d.concluded
}

// Leaves says that nobody waits for the run any more, unless it writes its result.
func (d *Departure) Leaves() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = !d.concluded
	return d.gone
}

// Result is that of a run which is left as one that was killed: it can go on.
func (d *Departure) Result(ctx context.Context) record.Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	stop := outcome.Stopf(outcome.Cancelled, "sigterm", "The run was cancelled.")
	errors.As(context.Cause(ctx), &stop)
	result := record.NewResult("", stop)
	result.Message = "The run was cancelled, and again before it had put its work aside: " + d.whereWork()
	if d.rec == nil {
		return result
	}
	result.RunID = d.rec.ID
	result.Message += " It can go on: agent-ci resume " + d.rec.Path() + "."
	d.rec.DropReserve()
	head, err := d.rec.Log().Abandon()
	if err != nil {
		result.Errors = append(result.Errors, err.Error())
	}
	result.TranscriptSHA256 = head
	d.rec.WriteResult(record.ResultFile, &result)
	return result
}

// whereWork says where the work is of a run that did not put it aside.
func (d *Departure) whereWork() string {
	switch {
	case d.rec != nil && workspace.Landing(d.rec.Directory):
		return "the change was being put into the checkout, and may stand there whole or in part; the work is in the run directory, and agent-ci resume first takes out of the checkout what came there."
	case d.rec != nil && confine.LeftTree(d.rec.Directory):
		return "the checkout is as it was, the work is in the run directory."
	}
	return "the checkout is as it was."
}
