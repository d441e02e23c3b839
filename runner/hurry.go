package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
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

// attended does work until it has its result, and tells the step of it. Once
// hurry, which may be nil, has ended, the work is waited for a moment more:
// whatever it is busy with then, the run leaves a result, and its process ends.
func (r *runner) attended(ctx context.Context, work func() record.Result) record.Result {
	defer r.watch.Live(ctx, r.hurry)()
	whole := func() record.Result {
		defer r.rec.Close()
		defer r.end.close()
		r.watch.Mask(r.env.Secrets())
		result := work()
		r.tellStep(&result)
		return result
	}
	if r.hurry == nil {
		return whole()
	}
	done := make(chan record.Result, 1)
	go func() { done <- whole() }()
	select {
	case result := <-done:
		return result
	case <-r.hurry.Done():
	}
	select {
	case result := <-done:
		return result
	case <-time.After(hurryTime):
	}
	if !r.end.leaves() {
		return <-done
	}
	return r.end.departure.result(ctx)
}

// tellStep gives the result to the job. What cannot be given is told in the result.
func (r *runner) tellStep(result *record.Result) {
	a := r.end.assignment
	site := a.project.Site()
	if site == (transcript.Site{}) { // what a transcript names is not believed here
		site = transcript.Site{Server: r.env.Get("GITHUB_SERVER_URL"), Repository: r.env.Get("GITHUB_REPOSITORY")}
	}
	told := progress.Told{
		Result: *result, Record: r.rec, Site: site, Artifacts: r.env.Artifacts(),
		Refused: r.end.bundle && result.TranscriptSHA256 == "",
	}
	if a.settings != nil {
		told.Folder = a.job().Repository.Path
	}
	if err := r.watch.TellStep(told); err != nil {
		result.Errors = append(result.Errors, r.rec.Redact(err.Error()))
	}
}

// result is that of a run which is left as one that was killed: it can go on.
func (d *departure) result(ctx context.Context) record.Result {
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

// whereWork says where the work is of a run that did not put it aside.
func (d *departure) whereWork() string {
	switch {
	case d.rec != nil && workspace.Landing(d.rec.Directory):
		return "the change was being put into the checkout, and may stand there whole or in part; the work is in the run directory, and agent-ci resume first takes out of the checkout what came there."
	case d.rec != nil && confine.LeftTree(d.rec.Directory):
		return "the checkout is as it was, the work is in the run directory."
	}
	return "the checkout is as it was."
}
