package workspace

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// PutBack makes protected paths of a change what they are in the base, in the
// checkout, and gives the change without them.
func (w *Workspace) PutBack(ctx context.Context, change *gitops.ChangeSet, paths []string) (*gitops.ChangeSet, error) {
	err := w.checkout.Revert(ctx, change, paths)
	if obstructed := (*gitops.ObstructedError)(nil); errors.As(err, &obstructed) {
		return nil, outcome.Stopf(outcome.PolicyViolation, "change",
			"The change touches protected files (%s), which can't be put back (policy.on_protected): what was made at %s is in the way; have it removed.",
			named(paths), named(obstructed.Paths)).Because(err)
	}
	if err != nil {
		return nil, err
	}
	w.rec.Warn("protected_dropped", "Changes of protected files were left out (policy.on_protected): %s.", named(paths))
	return w.Changes(ctx)
}

func named(paths []string) string { return strings.Join(markdown.FileNames(paths), ", ") }
