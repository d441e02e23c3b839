package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// ChangesIn are what differs from the base in a copy of what the agent works in. No command may
// change the copy meanwhile.
func (w *Workspace) ChangesIn(ctx context.Context, copied gitops.Layer) (*gitops.ChangeSet, error) {
	change, err := w.checkout.In(copied).Changes(ctx, w.snapshot)
	if err != nil {
		return nil, fmt.Errorf("find what changed in a copy of the workspace: %w", err)
	}
	return change, nil
}

// TakeOver merges what differs between two trees, of a copy as it began and of it as it is now, into
// the layer of who works with it, all of it or nothing, and gives what that changed there. A file
// that conflicts is a *gitops.MergeError. No command may change the layer meanwhile. With a view,
// of the agent of the run, a merge that a crash broke off is undone when the run goes on.
func (w *Workspace) TakeOver(ctx context.Context, into gitops.Layer, view func() (*grants.View, error), before, now gitops.Tree) (*gitops.ChangeSet, error) {
	in := w.checkout.In(into)
	mine, err := in.Changes(ctx, w.snapshot)
	if err != nil {
		return nil, fmt.Errorf("find what changed: %w", err)
	}
	merged, err := in.Merge(ctx, before, mine.Tree, now)
	if err != nil || merged.Empty() || view == nil {
		if err == nil {
			err = in.LayOver(ctx, merged)
		}
		return merged, err
	}
	var paths []string
	for _, f := range merged.Files {
		paths = append(paths, f.Path)
	}
	if err := w.beginJournal(into.Tree, view, paths, true); err != nil {
		return nil, err
	}
	if err := in.LayOver(ctx, merged); err != nil {
		_, undone := w.undoIn(into.Tree, into.Tree)
		return nil, errors.Join(err, undone)
	}
	w.endJournal(into.Tree, paths, true)
	return merged, nil
}
