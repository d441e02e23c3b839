package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// Restore puts the checkout back to where it was before the run: change is what
// stands in it.
func (w *Workspace) Restore(ctx context.Context, change *gitops.ChangeSet) error {
	// A run that is killed meanwhile must not take what is left for all of the work.
	if err := w.rec.Write(awayFile, []byte(InChange)); err != nil {
		return err
	}
	return w.checkout.Restore(ctx, change)
}

// Switch puts the checkout on a branch, at a commit that has the tree of the
// change.
func (w *Workspace) Switch(ctx context.Context, branch, commit string, change *gitops.ChangeSet) error {
	if err := w.endGitMark(ctx); err != nil {
		return err
	}
	if err := w.checkout.DropLocks(); err != nil {
		return fmt.Errorf("remove the locks that the run's commands left: %w", err)
	}
	err := w.checkout.Switch(ctx, branch, commit, change)
	var foreign *gitops.ForeignCommitError
	switch {
	case errors.As(err, &foreign):
		return outcome.Stopf(outcome.Conflict, "foreign_commit", "%s.", outcome.Sentence(err.Error())).Because(err)
	case err != nil:
		return fmt.Errorf("switch the checkout to %s: %w", branch, err)
	}
	return nil
}
