package runner

import (
	"context"
	"time"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// hurryTime bounds the end of a run told to hurry. GitHub Actions kills a cancelled job 2.5 s after
// the second signal.
const hurryTime = 1500 * time.Millisecond

// attended runs work and reports its result to the step. After hurry, which may be nil, it waits a
// moment more. Then, unless work is already writing its result, it returns a result of its own so
// the process can exit.
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
	if !r.end.Leaves() {
		return <-done
	}
	return r.end.Departure.Result(ctx)
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
