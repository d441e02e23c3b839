package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/judge"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

func (r *run) judged() judge.Case {
	return judge.Case{Record: r.rec, Job: r.job, Change: r.changes, Blob: r.checkout.Blob}
}

func (r *run) judgeChanges(ctx context.Context) error { return r.judged().Judge(ctx) }
func (r *run) judgeLeftOut() error                    { return r.judged().LeftOut() }
func (r *run) judgeSize() error                       { return judge.Size(r.job.Limits, r.changes) }
func (r *run) leftBehind() string                     { return workspace.LeftBehind(r.inCheckout()) }

// withoutDropped gives the change without protected paths where the job wants
// them left out.
func (r *run) withoutDropped(ctx context.Context, change *gitops.ChangeSet) (*gitops.ChangeSet, error) {
	verdict, err := judge.Verdict(r.job.Policy, change)
	r.dropped = verdict.Drop
	if err != nil || len(verdict.Drop) == 0 {
		return change, err
	}
	return r.space.PutBack(ctx, change, verdict.Drop)
}
