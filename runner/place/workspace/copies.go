package workspace

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record"
)

// ChangesIn returns the changes in a copy of the work tree, relative to the base. No command may
// change the copy meanwhile.
func (w *Workspace) ChangesIn(ctx context.Context, copied gitops.Layer) (*gitops.ChangeSet, error) {
	change, err := w.checkout.InLayer(copied).Changes(ctx, w.snapshots.work)
	if err != nil {
		return nil, fmt.Errorf("find what changed in a copy of the workspace: %w", err)
	}
	return change, nil
}

// MergeCopy merges the changes of a copy into another agent's layer, completely or not at all. The
// changes are the difference between the trees before and now. It returns the resulting change of
// into. A conflict is a *gitops.MergeError. No command may change the layer meanwhile. If into is the
// tree of the run's own agent, keep saves the merge as a git patch before it is made; it is nil for a copy.
func (w *Workspace) MergeCopy(ctx context.Context, into gitops.Layer, keep func(diff string) error, before, now gitops.Tree) (*gitops.ChangeSet, error) {
	in := w.checkout.InLayer(into)
	mine, err := in.Changes(ctx, w.snapshots.work)
	if err != nil {
		return nil, fmt.Errorf("find what changed: %w", err)
	}
	merged, err := in.Merge(ctx, before, mine.Tree, now)
	if err != nil {
		return merged, err
	}
	if merged.Empty() || keep == nil {
		return merged, in.ApplyChange(ctx, merged)
	}
	if err := w.RecordMerge(ctx, merged, keep); err != nil {
		return nil, fmt.Errorf("keep what is merged: %w", err)
	}
	if err := w.applyMerge(ctx, in, merged); err != nil {
		return nil, err
	}
	return merged, nil
}

// mergeFile exists while a merge is written into the agent's tree. It contains the id of the merged
// tree. mergePack contains the objects of that tree.
const (
	mergeFile = record.StateFolder + "/merge"
	mergePack = record.StateFolder + "/merge.pack"
)

// applyMerge writes a merge into the agent's tree. It finishes the merge even if ctx ends. A
// resumed run finishes the merge if the process dies. Otherwise a second agent would repeat work
// that is half done.
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
	if err != nil && ctx.Err() != nil { // part of the merge may be written
		err = w.writeTreeFiles(context.WithoutCancel(ctx), in, merged.Tree)
	}
	w.rec.Remove(mergeFile)
	w.rec.Remove(mergePack)
	return err
}

// finishMerge completes a merge during which the process died.
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

// writeTreeFiles makes the files of the agent's tree those of another tree. The objects of that
// tree must exist here.
func (w *Workspace) writeTreeFiles(ctx context.Context, in *gitops.Checkout, tree gitops.Tree) error {
	now, err := in.Changes(ctx, w.snapshots.work)
	if err != nil {
		return err
	}
	_, err = in.Overwrite(ctx, now.Tree, tree)
	return err
}

// RecordMerge passes a change that no tool call made to keep, as a git patch. If the patch is too
// large to be read again, it warns instead.
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

// RepeatMerge applies a change that MergeCopy recorded, completely or not at all.
func (w *Workspace) RepeatMerge(ctx context.Context, into gitops.Layer, diff string) error {
	in := w.checkout.InLayer(into)
	mine, err := in.Changes(ctx, w.snapshots.work)
	if err != nil {
		return fmt.Errorf("find what changed: %w", err)
	}
	again, err := in.ApplyPatch(ctx, mine.Tree, []byte(diff))
	if err != nil {
		return err
	}
	return in.ApplyChange(ctx, again)
}
