package gitops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// CheckedOut reports whether a branch was checked out when the checkout was opened.
func (c *Checkout) CheckedOut(branch string) bool {
	return branch != "" && branch == c.StartCommit().Branch
}

// currentBase returns the commit that the work tree's files are compared with: the base in a layer,
// the start commit in the checkout.
func (c *Checkout) currentBase() Base {
	if c.work.InLayer() {
		return c.Base()
	}
	return c.StartCommit()
}

// WriteBase writes the base's files into a layer that shows the checkout, and returns a snapshot of
// the result. It removes untracked files that are in the way. snap is the snapshot of the layer
// before.
func (c *Checkout) WriteBase(ctx context.Context, l Layer, snap *Snapshot) (*Snapshot, error) {
	based, err := c.writeBase(ctx, l, snap)
	if err != nil {
		return nil, fmt.Errorf("put the base into the work tree: %w", err)
	}
	return based, nil
}

// writeBase is WriteBase without the context of its errors.
func (c *Checkout) writeBase(ctx context.Context, l Layer, snap *Snapshot) (*Snapshot, error) {
	changes, err := c.objects.Differences(ctx, c.StartCommit().Tree.Hash(), c.Base().Tree.Hash())
	if err != nil {
		return nil, err
	}
	written, err := c.work.In(l).Overwrite(ctx, c.Base().Tree.Hash(), changes)
	if err != nil {
		return nil, err
	}
	ix, err := c.updatedIndex(snap.index, objects.Updates(changes, written), snap.index.Modified)
	if err != nil {
		return nil, err
	}
	l.Upper = nil // the base may have other ignore rules, so the layer's changes are not enough
	based, err := c.InLayer(l).snapshot(ctx, ix)
	if err == nil {
		based.movedSubmodules = c.submodulesElsewhere(changes)
	}
	return based, err
}

// submodulesElsewhere lists the populated submodules whose commit changes. WriteBase does not check
// out the new commits.
func (c *Checkout) submodulesElsewhere(changes []objects.Difference) (paths []string) {
	for _, d := range changes {
		if d.Old.Mode != index.Gitlink || d.New.Mode != index.Gitlink {
			continue
		}
		if _, err := os.Lstat(filepath.Join(c.Root(), filepath.FromSlash(d.Path), ".git")); err == nil {
			paths = append(paths, d.Path)
		}
	}
	return paths
}
