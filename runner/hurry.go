package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// runAndReport runs work, unless the run is left, and tells its result to the step.
func (r *runner) runAndReport(ctx context.Context, work func() record.Result) record.Result {
	defer r.watch.ShowStatus(ctx, r.forceStop)()
	return r.end.Attend(ctx, r.forceStop, func() record.Result {
		defer r.rec.Close()
		defer r.end.close()
		r.watch.Mask(r.env.Secrets())
		result := work()
		r.reportToStep(&result)
		return result
	})
}

// reportToStep gives the result to the job. What cannot be given is told in the result.
func (r *runner) reportToStep(result *record.Result) {
	a := r.end.assignment
	site := a.project.Site()
	if site == (transcript.Site{}) { // what a transcript names is not believed here
		site = transcript.Site{Server: r.env.Get("GITHUB_SERVER_URL"), Repository: r.env.Get("GITHUB_REPOSITORY")}
	}
	told := progress.StepResult{
		Result: *result, Record: r.rec, Site: site, Artifacts: r.env.Artifacts(),
		Refused: r.end.bundle && result.TranscriptSHA256 == "",
	}
	if a.settings != nil {
		told.Folder = a.job().Repository.Path
	}
	if err := r.watch.ReportToStep(told); err != nil {
		result.Errors = append(result.Errors, r.rec.Redact(err.Error()))
	}
}
