package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/check/inspect"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// inspect searches a change for signs that a reviewer should see first. It records them, and refuses
// the change if the job says so. Claims that an earlier look at the same change found evidence for
// are not searched again.
func (r *runner) inspect(ctx context.Context, w work, j *job.Job, change *gitops.ChangeSet) (err error) {
	c := r.inspection(w, change)
	find := c.Find
	if w.founded == change {
		find = c.Signs
	}
	found, err := find(ctx)
	if err != nil {
		return err
	}
	nothing := r.end.inspection.Empty() && found.Empty()
	r.end.inspection = found
	if !nothing {
		if err := r.rec.Append(transcript.TypeInspection, found); err != nil {
			return err
		}
	}
	return inspect.Refusal(j.Policy, found)
}

func (r *runner) inspection(w work, change *gitops.ChangeSet) inspect.Case {
	return inspect.Case{
		Record: r.rec, Checkout: w.workspace.Checkout(), Job: w.job(), Branch: w.task.Branch, Baseline: w.baseline.Rows, Table: w.verification.Rows,
		Summary: r.end.summary(), Change: change,
	}
}

// withInspection returns f, which also inspects the change that it judges.
func (r *runner) withInspection(rd *ready, f publish.Follow) publish.Follow {
	judge := f.Judge
	f.Judge = func(ctx context.Context, j *job.Job, change *gitops.ChangeSet) error {
		if err := judge(ctx, j, change); err != nil {
			return err
		}
		return r.inspect(ctx, work{ready: rd, verification: r.end.work.verification}, j, change)
	}
	return f
}
