package publish

import (
	"context"
	"errors"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// EarlierChange is what a run's pull request in a repository holds, merged onto the
// base as that is by now, for a run that goes on from there; nil where the branch
// is gone. A branch that ends in a person's commit ends the run.
func (f Forge) EarlierChange(ctx context.Context, in forge.Repository, pull *forge.PullRequest, base gitops.Base) (*gitops.ChangeSet, error) {
	tip, err := intake.LookUpBranch(ctx, in, pull.Head)
	if err != nil || tip == nil {
		return nil, err
	}
	if info := InfoOf(tip); !info.Ours() {
		return nil, foreignCommit(pull.Head, tipOf(info, true))
	}
	before, change, err := f.fetchChange(ctx, tip, base)
	if err != nil || before.SHA == base.SHA {
		return change, err
	}
	onto, err := f.Workspace.Checkout().Rebase(ctx, change, base)
	var conflict *gitops.MergeError
	if errors.As(err, &conflict) {
		name := workspace.BaseName(base)
		return nil, outcome.Stopf(outcome.Conflict, "base_moved",
			"%s moved since pull request #%d was made, and the two do not go together: %s; merge %s there, or close it and ask again on the issue.",
			name, pull.Number, conflictsIn(conflict), name).Because(conflict)
	}
	return onto, err
}

// fetchChange is the change of a run's commit, on the base that it was made on.
func (f Forge) fetchChange(ctx context.Context, tip *forge.Commit, base gitops.Base) (before gitops.Base, change *gitops.ChangeSet, err error) {
	checkout, made := f.Workspace.Checkout(), tip.Parents[0]
	apart := !checkout.HasCommit(made)
	for _, sha := range []string{made, tip.SHA} {
		if err := f.Workspace.Fetch(ctx, f.Remote(), sha, apart); err != nil {
			return before, nil, err
		}
	}
	if before, err = checkout.BaseAt(base.Branch, made); err != nil {
		return before, nil, workspace.CheckoutFailure(err)
	}
	change, err = checkout.Between(ctx, before, gitops.Tree(tip.Tree))
	return before, change, err
}
