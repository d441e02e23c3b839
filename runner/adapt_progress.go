package runner

import (
	"context"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/record"
)

// beginProgress puts the comment there once nothing stands in the way of the
// run's work, taking the one of an earlier run over.
func (r *run) beginProgress(ctx context.Context) error {
	if r.progressOn() == 0 || r.publishMode() != publishGitHub {
		return nil
	}
	r.watch.Comment(ctx, progress.Thread{
		Repository: r.eventRepository(), Number: r.progressOn(), Earlier: r.earlierProgress(ctx), Link: r.env.RunLink(),
	})
	return nil
}

// endProgress says how the run ended.
func (r *run) endProgress(ctx context.Context, stop *outcome.Stop) {
	end := progress.End{Stop: stop, Plan: r.plan, PullRequest: r.published.pullRequest()}
	if stop.Outcome == outcome.NoChanges && r.published.commit == "" && r.task.snapshot != "" {
		end.Trace = r.trace()
	}
	if err := r.watch.Conclude(ctx, end); err != nil {
		r.rec.Warn("progress_comment", "The progress could not be shown in a comment: %v", err)
	}
}

// tellStep gives the result to the job. What cannot be given is told in the result.
func (r *run) tellStep(result *record.Result) {
	told := progress.Told{Result: *result, Record: r.rec, Checks: r.table.Rows, Server: r.repo.serverURL}
	if r.job != nil {
		told.Folder = r.job.Repository.Path
	}
	if err := r.watch.TellStep(told); err != nil {
		result.Errors = append(result.Errors, r.rec.Redact(err.Error()))
	}
}

func (r *run) maskSecrets() { r.watch.Mask(r.env.Secrets()) }

// progressOn is the issue or pull request that an event asked for, by itself or
// in a workflow that names its issue; 0 for none.
func (r *run) progressOn() int {
	switch {
	case r.request != nil:
		return r.request.Number
	case !r.askedAt.IsZero() && r.task.issue != nil:
		return r.task.issue.Number
	}
	return 0
}

// earlierProgress is the comment of an earlier run, 0 for none: the last of an
// App or of the token's own account. A person's that looks like one stays as it
// is. Not to know is no failure: the run then makes another comment.
func (r *run) earlierProgress(ctx context.Context) int64 {
	if r.pull != nil {
		r.lookForProgress(ctx, r.pull.Number)
	}
	if c := r.ownProgress(ctx); c != nil {
		return c.ID
	}
	return 0
}

func (r *run) lookForProgress(ctx context.Context, number int) {
	if on, err := r.eventRepository().Issue(ctx, number); err == nil {
		r.progressLike = slices.DeleteFunc(on.Comments, func(c forge.Comment) bool { return !isProgress(c) })
	}
}
