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
	change, err := w.checkout.InLayer(copied).Changes(ctx, w.workSnapshot)
	if err != nil {
		return nil, fmt.Errorf("find what changed in a copy of the workspace: %w", err)
	}
	return change, nil
}

// MergeJournal records merges into the tree of the run's own agent. Copies have none.
type MergeJournal struct {
	Append func(diff string) error // saves a change, in git's format, before it is made
}

// MergeCopy merges the differences between two trees, a copy's original and current one, into the
// layer of the leading agent, completely or not at all, and returns the change there. A conflict is
// a *gitops.MergeError. No command may change the layer meanwhile. own is nil for a copy.
func (w *Workspace) MergeCopy(ctx context.Context, into gitops.Layer, own *MergeJournal, before, now gitops.Tree) (*gitops.ChangeSet, error) {
	in := w.checkout.InLayer(into)
	mine, err := in.Changes(ctx, w.workSnapshot)
	if err != nil {
		return nil, fmt.Errorf("find what changed: %w", err)
	}
	merged, err := in.Merge(ctx, before, mine.Tree, now)
	if err != nil || merged.Empty() || own == nil {
		if err == nil {
			err = in.ApplyChange(ctx, merged)
		}
		return merged, err
	}
	if err := w.RecordMerge(ctx, merged, own.Append); err != nil {
		return nil, fmt.Errorf("keep what is merged: %w", err)
	}
	if err := w.applyMerge(ctx, in, merged); err != nil {
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

// applyMerge puts a merge into the tree of the agent. If the process dies meanwhile, or the time of the run is
// over, the merge is finished all the same: a second agent would do work again that is half there.
func (w *Workspace) applyMerge(ctx context.Context, in *gitops.Checkout, merged *gitops.ChangeSet) error {
	whole, err := w.checkout.ChangeBetween(ctx, w.base, merged.Tree)
	if err == nil {
		err = w.WritePack(ctx, whole, mergePack)
	}
	if err == nil {
		err = w.rec.Write(mergeFile, []byte(merged.Tree))
	}
	if err != nil {
		return fmt.Errorf("note what is merged: %w", err)
	}
	err = in.ApplyChange(ctx, merged)
	if err != nil && ctx.Err() != nil {
		err = w.writeTreeFiles(context.WithoutCancel(ctx), in, merged.Tree)
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
		err = w.writeTreeFiles(ctx, in, gitops.Tree(tree))
	}
	if err != nil {
		return fmt.Errorf("finish a merge that was cut off: %w", err)
	}
	w.rec.Remove(mergeFile)
	w.rec.Remove(mergePack)
	return nil
}

// writeTreeFiles writes the files of another tree, whose objects exist here, to the agent's tree.
func (w *Workspace) writeTreeFiles(ctx context.Context, in *gitops.Checkout, tree gitops.Tree) error {
	now, err := in.Changes(ctx, w.workSnapshot)
	if err != nil {
		return err
	}
	rest, err := in.ChangeBetween(ctx, gitops.Base{Tree: now.Tree}, tree)
	if err != nil {
		return err
	}
	_, err = in.Overwrite(ctx, rest)
	return err
}

// RecordMerge keeps a change made by no call, unless it is too large to read again.
func (w *Workspace) RecordMerge(ctx context.Context, merged *gitops.ChangeSet, keep func(diff string) error) error {
	diff := &clip.Head{Limit: record.MaxRead}
	if err := w.checkout.WritePatch(ctx, merged, diff); err != nil {
		return err
	}
	if diff.Truncated() {
		w.rec.Warn("merge_not_kept", "A change of another agent, or of the recipe, is too large to be kept (%d files); a run that resumes in another checkout lacks it.", len(merged.Files))
		return nil
	}
	return keep(string(diff.Bytes()))
}

// RepeatMerge repeats a change kept by MergeCopy, completely or not at all.
func (w *Workspace) RepeatMerge(ctx context.Context, into gitops.Layer, diff string) error {
	in := w.checkout.InLayer(into)
	mine, err := in.Changes(ctx, w.workSnapshot)
	if err != nil {
		return fmt.Errorf("find what changed: %w", err)
	}
	again, err := in.ApplyPatch(ctx, mine.Tree, []byte(diff))
	if err != nil {
		return err
	}
	return in.ApplyChange(ctx, again)
}
