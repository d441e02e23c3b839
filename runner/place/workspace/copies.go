package workspace

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record"
)

// ChangesIn returns the differences from the base in a copy of the work tree. No command may change
// the copy meanwhile.
func (w *Workspace) ChangesIn(ctx context.Context, copied gitops.Layer) (*gitops.ChangeSet, error) {
	change, err := w.checkout.In(copied).Changes(ctx, w.begun)
	if err != nil {
		return nil, fmt.Errorf("find what changed in a copy of the workspace: %w", err)
	}
	return change, nil
}

// Own is the extra work for the run agent's tree, which copies do not need.
type Own struct {
	Keep func(diff string) error // keeps a change, in git's format, before it is made; when it fails it is not made
}

// TakeOver merges the differences between two trees, a copy's original and current one, into the
// layer of the leading agent, completely or not at all, and returns the change there. A conflict is
// a *gitops.MergeError. No command may change the layer meanwhile. own is nil for a copy.
func (w *Workspace) TakeOver(ctx context.Context, into gitops.Layer, own *Own, before, now gitops.Tree) (*gitops.ChangeSet, error) {
	in := w.checkout.In(into)
	mine, err := in.Changes(ctx, w.begun)
	if err != nil {
		return nil, fmt.Errorf("find what changed: %w", err)
	}
	merged, err := in.Merge(ctx, before, mine.Tree, now)
	if err != nil || merged.Empty() || own == nil {
		if err == nil {
			err = in.LayOver(ctx, merged)
		}
		return merged, err
	}
	if err := w.KeepMerge(ctx, merged, own.Keep); err != nil {
		return nil, fmt.Errorf("keep what is merged: %w", err)
	}
	if err := w.layWhole(ctx, in, merged); err != nil {
		return nil, err
	}
	return merged, nil
}

// mergeFile is in the run directory while a merge is written into the tree of the agent. It
// contains the id of the merged tree. mergePack has the objects of that tree.
const (
	mergeFile = record.StateFolder + "/merge"
	mergePack = record.StateFolder + "/merge.pack"
)

// layWhole puts a merge into the tree of the agent. If the process dies meanwhile, or the time of the run is
// over, the merge is finished all the same: a second agent would do work again that is half there.
func (w *Workspace) layWhole(ctx context.Context, in *gitops.Checkout, merged *gitops.ChangeSet) error {
	whole, err := w.checkout.Between(ctx, w.base, merged.Tree)
	if err == nil {
		err = w.WritePack(ctx, whole, mergePack)
	}
	if err == nil {
		err = w.rec.Write(mergeFile, []byte(merged.Tree))
	}
	if err != nil {
		return fmt.Errorf("note what is merged: %w", err)
	}
	err = in.LayOver(ctx, merged)
	if err != nil && ctx.Err() != nil {
		err = w.overlayTree(context.WithoutCancel(ctx), in, merged.Tree)
	}
	w.rec.Remove(mergeFile)
	w.rec.Remove(mergePack)
	return err
}

// finishMerge completes a merge in which the process died.
func (w *Workspace) finishMerge(ctx context.Context, in *gitops.Checkout) error {
	if !w.rec.Has(mergeFile) {
		return nil
	}
	tree, err := w.rec.Read(mergeFile)
	if err == nil {
		_, err = w.readPack(ctx, w.rec.Directory, mergePack, string(tree))
	}
	if err == nil {
		err = w.overlayTree(ctx, in, gitops.Tree(tree))
	}
	if err != nil {
		return fmt.Errorf("finish a merge that was cut off: %w", err)
	}
	w.rec.Remove(mergeFile)
	w.rec.Remove(mergePack)
	return nil
}

// overlayTree gives the tree of the agent the files of another one, whose objects are here.
func (w *Workspace) overlayTree(ctx context.Context, in *gitops.Checkout, tree gitops.Tree) error {
	now, err := in.Changes(ctx, w.begun)
	if err != nil {
		return err
	}
	rest, err := in.Between(ctx, gitops.Base{Tree: now.Tree}, tree)
	if err != nil {
		return err
	}
	_, err = in.Overwrite(ctx, rest)
	return err
}

// KeepMerge keeps a change made by no call, unless it is too large to read again.
func (w *Workspace) KeepMerge(ctx context.Context, merged *gitops.ChangeSet, keep func(diff string) error) error {
	diff := &clip.Head{Most: record.MaxRead}
	if err := w.checkout.WritePatch(ctx, merged, diff); err != nil {
		return err
	}
	if diff.Cut() {
		w.rec.Warn("merge_not_kept", "A change of another agent, or of the recipe, is too large to be kept (%d files); a run that resumes in another checkout lacks it.", len(merged.Files))
		return nil
	}
	return keep(string(diff.Bytes()))
}

// Repeat repeats a change kept by TakeOver, completely or not at all.
func (w *Workspace) Repeat(ctx context.Context, into gitops.Layer, diff string) error {
	in := w.checkout.In(into)
	mine, err := in.Changes(ctx, w.begun)
	if err != nil {
		return fmt.Errorf("find what changed: %w", err)
	}
	again, err := in.Patched(ctx, mine.Tree, []byte(diff))
	if err != nil {
		return err
	}
	return in.LayOver(ctx, again)
}
