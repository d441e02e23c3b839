package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// workPlaceFile exists while the work tree lacks work done so far. It contains the place of that
// work.
const workPlaceFile = record.StateFolder + "/away"

// WorkPlace is where the work of a resumed run is: "" for the work tree.
type WorkPlace string

// Places of work outside the work tree.
const (
	InChange  WorkPlace = "change"  // the objects of the last change set
	InPatches WorkPlace = "patches" // the patches of the agent's calls; changes by commands are lost
)

// ResumedRun describes the run to resume.
type ResumedRun struct {
	transcript.Workspace      // where the run worked
	AgentBegan           bool // the agent had begun
	Stopped              bool // the run was stopped; else it was killed
	InOverlay            bool // its commands worked in an overlay of the checkout
	HasTree              bool // the run directory has its work tree
	OnPullHead           bool // its base is the head of a pull request, not the tip of a local branch
	BeganWithPull        bool // the checkout had the change of a pull request before the agent began
}

// WorkPending reports whether a run ended while its work was incomplete in its work tree, or complete only there.
func WorkPending(d *record.Directory) bool { return d.Has(workPlaceFile) || WorkOnlyInTree(d) }

// CannotResume returns the outcome of a run that cannot resume.
func CannotResume(format string, args ...any) *outcome.Stop {
	return outcome.Stopf(outcome.InvalidInput, "not_resumable", "The run cannot be resumed: %s.", fmt.Sprintf(format, args...))
}

// Resume opens the checkout of a resumed run: the one of o, else the run's own, else the current one. The WorkPlace
// is "" if the work is in the run's work tree. Otherwise call BeginMove and MoveIn to restore the work in a new one.
func Resume(ctx context.Context, rec *record.Record, o Options, earlier ResumedRun) (*Workspace, WorkPlace, error) {
	w, err := Open(ctx, rec, earlier.withCheckoutFolder(rec, o))
	if err != nil {
		return nil, "", earlier.nameMissing(o, CheckoutFailure(err))
	}
	place, err := w.openResumed(ctx, earlier)
	if err != nil {
		return nil, place, errors.Join(earlier.nameMissing(o, err), w.Close())
	}
	return w, place, nil
}

// openResumed prepares the opened checkout of a resumed run, and returns where the run's work is.
func (w *Workspace) openResumed(ctx context.Context, earlier ResumedRun) (WorkPlace, error) {
	err := w.checkout.DropOwnLocks()
	if err == nil {
		err = w.StartOn(ctx, "")
	}
	if err == nil {
		err = w.checkout.ClaimWithRetry(ctx)
	}
	if err != nil {
		return "", CheckoutFailure(err)
	}
	if err := w.restoreHidden(); err != nil {
		return "", err
	}
	w.dropTrees()
	return w.prepareResume(ctx, earlier)
}

// withCheckoutFolder returns o with the folder of the checkout to open: o.Dir if set, else the run's own clone or folder, else
// the current folder.
func (e ResumedRun) withCheckoutFolder(rec *record.Record, o Options) Options {
	switch {
	case o.Dir != "": // the caller has chosen
	case e.Cloned:
		o.Dir, o.Cloned = rec.Join(record.CheckoutFolder), true
	case e.isMissing(o):
		o.Dir = "."
	default:
		o.Dir = e.Root
	}
	return o
}

// isMissing reports whether the run's own folder is to be opened and does not exist.
func (e ResumedRun) isMissing(o Options) bool { return o.Dir == "" && !e.Cloned && isMissing(e.Root) }

// nameMissing adds to an error about the current folder that the run's own folder is missing.
func (e ResumedRun) nameMissing(o Options, err error) error {
	stop, is := errors.AsType[*outcome.Stop](err)
	if !is || !e.isMissing(o) {
		return err
	}
	named := *stop
	named.Message = fmt.Sprintf("The run's checkout %s is missing. If it was moved, name its new place with --repo. In the current folder: %s", e.Root, stop.Message)
	return &named
}

// dropTrees removes the trees that an interrupted verification left.
func (w *Workspace) dropTrees() {
	names, _ := fs.Glob(w.rec.Root().FS(), record.StateFolder+"/verify-*")
	for _, name := range names {
		w.rec.Remove(name)
	}
}

// prepareResume finds the work and sets the base. It also reverts an interrupted landing, which has written a part of
// the change to the checkout. place is "" if the work is in the work tree, or if the agent has not begun.
func (w *Workspace) prepareResume(ctx context.Context, earlier ResumedRun) (place WorkPlace, err error) {
	if !earlier.AgentBegan {
		w.rec.Remove(untrackedFolder)
		return "", w.requireSameBase(ctx, earlier, "")
	}
	if place, err = w.locateWork(ctx, earlier); err != nil {
		return place, fmt.Errorf("go on with the checkout: %w", err)
	}
	if isElsewhere := place != ""; isElsewhere {
		if err := w.revertInterruptedAlone(ctx, earlier); err != nil {
			return place, err
		}
		w.snapshots.checkout = nil // the user may have changed the checkout, so it is examined again
		w.rec.Remove(untrackedFolder)
		return place, w.requireSameBase(ctx, earlier, place)
	}
	w.commandsRan = true
	if err := w.SetBase(ctx, gitops.BaseSpec{Branch: earlier.Base, SHA: earlier.BaseSHA}); err != nil {
		return "", CheckoutFailure(err)
	}
	if err := w.revertInterrupted(ctx); err != nil || !earlier.InOverlay {
		return "", err
	}
	return "", w.requireUnchangedLower(ctx)
}

// revertInterruptedAlone is like revertInterrupted, for a run without its work tree. The base of
// the checkout stays as it was.
func (w *Workspace) revertInterruptedAlone(ctx context.Context, earlier ResumedRun) error {
	if w.snapshots.checkout == nil || !w.rec.Has(landingFile) {
		return nil
	}
	if err := w.SetBase(ctx, gitops.BaseSpec{Branch: earlier.Base, SHA: earlier.BaseSHA}); err != nil {
		return CheckoutFailure(err)
	}
	if err := w.revertInterrupted(ctx); err != nil {
		return err
	}
	return CheckoutFailure(w.SetBase(ctx, gitops.BaseSpec{}))
}

// locateWork returns where the agent's work is, or "" if the work tree has it.
func (w *Workspace) locateWork(ctx context.Context, earlier ResumedRun) (WorkPlace, error) {
	if recorded, _ := w.rec.Read(workPlaceFile); len(recorded) > 0 {
		return WorkPlace(recorded), nil
	}
	if earlier.Stopped {
		w.rec.Remove(markFile) // a run killed at its end may have left it
		w.rec.Remove(landingFile)
		return InChange, nil
	}
	raw, err := w.rec.Read(markFile)
	if err == nil {
		w.snapshots.checkout, w.snapshots.work, err = w.checkout.Resume(ctx, raw)
	}
	isOtherCheckout := errors.Is(err, gitops.ErrOtherCheckout)
	if err != nil && !isOtherCheckout && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	switch {
	case isOtherCheckout && earlier.HasTree && earlier.InOverlay: // an overlay needs the checkout below it
		return "", CannotResume("its work lies above the checkout %s, and only what patches did of it could be done again elsewhere; resume it in that checkout", earlier.Root)
	case err == nil && earlier.HasTree:
		return "", nil
	case err == nil && w.treeOutsideRun() != "":
		return "", CannotResume("its work tree was at %s and is missing there; put it back, also the run directory if that was moved, or start a new run", w.treeOutsideRun())
	}
	return InPatches, nil
}

// requireSameBase sets the base to that of an interrupted run. It returns an error if the checkout does not have the
// run's base commit, if it has uncommitted changes, or if the work at place cannot be repeated here.
func (w *Workspace) requireSameBase(ctx context.Context, earlier ResumedRun, place WorkPlace) error {
	if w.base.SHA != earlier.BaseSHA && earlier.Base != "" {
		spec := gitops.BaseSpec{Branch: earlier.Base}
		if earlier.OnPullHead {
			spec.SHA = earlier.BaseSHA
		}
		if err := w.SetBase(ctx, spec); err != nil {
			return CheckoutFailure(err)
		}
	}
	if w.base.SHA != earlier.BaseSHA {
		return CannotResume("its base commit is %s, the checkout stands on %s; check that commit out", clip.SHA(earlier.BaseSHA), clip.SHA(w.base.SHA))
	}
	w.base.Branch = earlier.Base
	dirty, err := w.dirtyFiles(ctx)
	if err != nil {
		return err
	}
	if dirty != "" {
		return CannotResume("the checkout is not as the run left it, and has uncommitted changes (%s); give a clean one with --repo", dirty)
	}
	if place == InPatches && earlier.BeganWithPull {
		return CannotResume("it goes on with a pull request, and this is not the checkout that it worked in; start a new one")
	}
	return w.RequireFolder(earlier.Path)
}

// BeginMove records that the work is about to move to a new work tree. place is the work's current
// place; "" does nothing.
func (w *Workspace) BeginMove(place WorkPlace) error {
	if place == "" {
		return nil
	}
	if err := w.rec.Write(workPlaceFile, []byte(place)); err != nil {
		return err
	}
	w.workPending = true
	return nil
}

// WorkPendingHere reports whether the work tree still lacks some of the work.
func (w *Workspace) WorkPendingHere() bool { return w.workPending }

// WorkMove describes how to restore the work in the work tree.
type WorkMove struct {
	From      WorkPlace
	Change    *transcript.Change // the last change of the run; may be nil
	Untracked bool               // checks need the untracked files
}

// MoveIn restores the interrupted run's work in a new work tree, as far as possible. Setup commands
// have already run there. applyPatches repeats the patches of the agent's calls.
func (w *Workspace) MoveIn(ctx context.Context, m WorkMove, applyPatches func(context.Context) error) error {
	if err := w.TakeSnapshot(ctx); err != nil {
		return err
	}
	if m.Untracked {
		if err := w.CopyUntracked(ctx); err != nil {
			return err
		}
	}
	var err error
	if m.From == InChange {
		err = w.applyRecordedChange(ctx, m.Change)
	} else {
		err = applyPatches(ctx)
	}
	if err != nil {
		return err
	}
	w.rec.Remove(workPlaceFile)
	w.workPending = false
	return nil
}

// RecopyUntracked calls CopyUntracked if the end of the run removed the copies.
func (w *Workspace) RecopyUntracked(ctx context.Context) error {
	if w.rec.Has(untrackedFolder) {
		return nil
	}
	return w.CopyUntracked(ctx)
}

// applyRecordedChange writes a recorded change set to the work tree.
func (w *Workspace) applyRecordedChange(ctx context.Context, change *transcript.Change) error {
	if change == nil || len(change.Files) == 0 {
		return nil
	}
	changes, err := w.ReadWork(ctx, w.rec.Directory, change)
	if err != nil {
		return err
	}
	return w.ApplyChange(ctx, changes)
}

// ReadWork reads the original change, before any rebase, from a run directory.
func (w *Workspace) ReadWork(ctx context.Context, d *record.Directory, change *transcript.Change) (*gitops.ChangeSet, error) {
	return w.readPack(ctx, d, workPack(d), change.TreeSHA)
}

// readPack reads the objects of a change from a pack in a run directory.
func (w *Workspace) readPack(ctx context.Context, d *record.Directory, name, tree string) (*gitops.ChangeSet, error) {
	pack, err := d.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer pack.Close()
	changes, err := w.checkout.ReadPack(ctx, pack, gitops.Tree(tree))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return changes, nil
}

// DropState removes the working files of an ended run. If the work is still to move, the note of
// its place stays. If only the work tree has the work, DropState removes nothing.
func (w *Workspace) DropState() {
	if w.workOnlyInTree {
		return
	}
	place, err := w.rec.Read(workPlaceFile)
	w.rec.Remove(record.StateFolder)
	if err == nil && w.workPending {
		_ = w.rec.Write(workPlaceFile, place) // without the note, a resumed run starts from the change
	}
}

// FinishCalls cleans up after tool calls during which the process died. It completes a merge and
// removes a patch's temporary files.
func (w *Workspace) FinishCalls(ctx context.Context) error {
	return w.withTree(ctx, OfAgent, func(c *gitops.Checkout, top *os.Root) error {
		if err := w.finishMerge(ctx, c); err != nil {
			return err
		}
		change, err := c.Changes(ctx, w.snapshots.work)
		if err != nil {
			return fmt.Errorf("look for what a patch left: %w", err)
		}
		for _, f := range change.Files {
			if tree.IsTemporary(path.Base(f.Path)) && f.Status == changeset.Added {
				err = errors.Join(err, top.Remove(f.Path))
			}
		}
		return err
	})
}
