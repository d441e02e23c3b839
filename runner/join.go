package runner

import (
	"context"
	"errors"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// joinBranch puts the checkout on the end of the person's branch. What
// configures the run was read from the base by now, and the guides are here.
func (r *run) joinBranch(ctx context.Context) error {
	if !r.joins() {
		return nil
	}
	tip, err := lookUpBranch(ctx, r.eventRepository(), r.pull.Head)
	switch {
	case err != nil:
		return err
	case tip == nil:
		return outcome.Stopf(outcome.Skipped, "foreign_branch", "The branch %s of pull request #%d is gone: %s.", r.pull.Head, r.pull.Number, r.pull.URL)
	}
	if err := r.readGuides(); err != nil {
		return err
	}
	err = r.standOn(ctx, tip.SHA)
	var unknown *gitops.UnknownBaseError
	if errors.As(err, &unknown) && !r.cloned { // a workflow's checkout mostly has one commit
		if err := r.clone(ctx); err != nil {
			return err
		}
		err = r.standOn(ctx, tip.SHA)
	}
	if err != nil {
		return checkoutFailure(err)
	}
	r.branch, r.job.PullRequest.Branch = r.pull.Head, r.pull.Head
	// A person's branch gets what is done and passes, and nothing else.
	r.job.OnVerifyFailed, r.job.Limits.OnBudget = "none", "keep"
	return r.findWorkDir()
}

func (r *run) standOn(ctx context.Context, sha string) error {
	base, err := r.checkout.SetBase(ctx, gitops.BaseSpec{Branch: r.pull.Base, SHA: sha})
	if err == nil {
		r.base = base
	}
	return err
}
