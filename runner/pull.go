package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// goOn puts the change of the pull request into the checkout, as if the agent
// had made it: configuration and checks stay those of the base. It comes after
// the baseline, and counts as part of the change.
func (r *run) goOn(ctx context.Context) error {
	if r.pull == nil || r.joins() {
		return nil
	}
	tip, err := lookUpBranch(ctx, r.eventRepository(), r.pull.Head)
	if err != nil {
		return err
	}
	if tip == nil {
		return nil
	}
	if info := infoOf(tip); !info.Ours() {
		return foreignCommit(r.branch, tipOf(info, true))
	}
	change, err := r.changeOfPull(ctx, tip)
	if err != nil {
		return err
	}
	if err := r.checkout.LayOver(ctx, change); err != nil {
		return fmt.Errorf("go on with pull request #%d: %w", r.pull.Number, err)
	}
	return nil
}

// changeOfPull is the change of a run's commit, merged onto the base as it is
// now.
func (r *run) changeOfPull(ctx context.Context, tip *forge.Commit) (*gitops.ChangeSet, error) {
	made := tip.Parents[0]
	apart := !r.checkout.HasCommit(made)
	for _, sha := range []string{made, tip.SHA} {
		if err := r.fetchCommit(ctx, sha, apart); err != nil {
			return nil, err
		}
	}
	before, err := r.checkout.BaseAt(r.base.Branch, made)
	if err != nil {
		return nil, checkoutFailure(err)
	}
	change, err := r.checkout.Between(ctx, before, gitops.Tree(tip.Tree))
	if err != nil || before.SHA == r.base.SHA {
		return change, err
	}
	onto, err := r.checkout.Rebase(ctx, change, r.base)
	var conflict *gitops.MergeError
	if errors.As(err, &conflict) {
		return nil, outcome.Stopf(outcome.Conflict, "base_moved",
			"%s moved since pull request #%d was made, and the two do not go together: %s; merge %s there, or close it and ask again on the issue.",
			r.baseName(), r.pull.Number, namesOf(conflict), r.baseName()).Because(conflict)
	}
	return onto, err
}
