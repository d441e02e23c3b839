package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
)

// GitSpoiled says whether the checkout may not be touched by git any more, as where
// that cannot be told in time. What is found at the end of a run that ends for
// another reason is a warning.
func (w *Workspace) GitSpoiled(ctx context.Context, published bool) bool {
	if w.gitBad || published {
		return w.gitBad
	}
	err := w.GitUnchanged(ctx)
	if isViolation(err) {
		var stop *outcome.Stop
		errors.As(err, &stop)
		w.rec.Warn(gitChanged, "%s", stop.Message)
	}
	return err != nil
}

// KeepSpoiled keeps the work of a run whose commands changed git's folder, and
// leaves the checkout as it is.
func (w *Workspace) KeepSpoiled(ctx context.Context, collect func(context.Context) (*gitops.ChangeSet, error)) string {
	if !w.Worked() {
		return ""
	}
	if w.unread && !w.kept {
		return "Git's objects can't be relied on, so the work was not made a patch; it stands in the checkout, which was left as it is."
	}
	change, err := collect(ctx)
	switch {
	case err != nil && !isViolation(err):
		w.rec.Warn("work_not_kept", "What the agent changed could not be kept (%v); it still stands in %s.", err, w.root)
		return "The checkout was left as it is."
	case change.Empty():
		return "The checkout was left as it is."
	}
	return fmt.Sprintf("The work is in %s; the checkout was left as it is.", w.rec.Join(record.PatchFile))
}
