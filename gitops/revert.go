package gitops

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// Revert takes the changes of some paths out of the work tree: they are as in
// the base again. The change set no longer fits the work tree afterwards; take
// it anew with Changes.
func (c *Checkout) Revert(ctx context.Context, cs *ChangeSet, paths []string) error {
	back, err := c.objects.Differences(ctx, cs.Tree.hash(), cs.Base.Tree.hash())
	if err == nil {
		back = slices.DeleteFunc(back, func(d objects.Difference) bool { return !slices.Contains(paths, d.Path) })
		_, err = c.work.CheckOut(ctx, cs.Base.Tree.hash(), back)
	}
	if err != nil {
		return fmt.Errorf("take changes of %d files out: %w", len(paths), err)
	}
	return nil
}
