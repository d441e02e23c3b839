package gitops

import (
	"context"
	"fmt"
)

// LayOver puts a change into the work tree, which is as the base has it; HEAD
// and the index stay. What is not tracked and stands in its way is an error,
// before anything is written.
func (c *Checkout) LayOver(ctx context.Context, cs *ChangeSet) error {
	changes, err := c.differences(ctx, cs.Base.Tree.hash(), cs.Tree.hash())
	if err != nil {
		return fmt.Errorf("put the change into the checkout: %w", err)
	}
	ix, err := c.baseIndex(ctx)
	if err == nil {
		err = c.obstructions(ix, changes)
	}
	if err == nil {
		_, err = c.checkOut(ctx, cs.Tree.hash(), changes)
	}
	if err != nil {
		return fmt.Errorf("put the change into the checkout: %w", err)
	}
	return nil
}
