package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// landingFile exists from the moment the change may be partly in the checkout. Without it, the
// checkout is untouched.
const landingFile = record.StateFolder + "/landing"

// LandingInterrupted reports whether an interrupted run was writing its change to the checkout.
func LandingInterrupted(d *record.Directory) bool { return d.Has(landingFile) }

// landing describes a change that is being written to the checkout. The file stays until the run's
// end is recorded, because a resumed run first reverts the landing.
type landing struct {
	Branch string       `json:"branch,omitempty"` // the branch to check out
	Commit string       `json:"commit,omitempty"` // the commit that HEAD is set to; empty: HEAD does not move
	Tree   string       `json:"tree"`             // of the change
	Done   bool         `json:"done,omitempty"`   // the whole change is written
	Files  []landedFile `json:"files"`
}

// landedFile is one path of a change.
type landedFile struct {
	Path []byte `json:"path"` // bytes, because JSON text must be UTF-8
	ID   string `json:"id"`   // of the new content; empty for a deleted file
	Mode string `json:"mode"`
}

// land runs do, which writes a change to the checkout, on a branch or in place. It holds the lock of the index
// meanwhile. If do fails, land removes what do has written. If changes of others are in the way, land returns a
// *blockedError. l names the branch and commit, or neither; land adds the files.
func (w *Workspace) land(ctx context.Context, l landing, change *gitops.ChangeSet, do func() error) (err error) {
	if w.tree == nil { // a bundle has no work tree to land from
		return do()
	}
	if err := cmp.Or(w.RequireAlone(), w.requireWritable(l.Commit != "")); err != nil {
		return err
	}
	release, err := w.lockIndex(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if change, err = w.checkout.ChangeOfCheckout(ctx, change); err != nil {
		return err
	}
	if err := w.refuseOverwriting(ctx, change); err != nil {
		return err
	}
	if unfinished := w.operationInTheWay(l.Commit != ""); unfinished.Name != "" {
		return &blockedError{unfinished.Name + " is in progress"}
	}
	if path, err := w.checkout.UnwritableAmong(change.Paths()); err != nil {
		return &blockedError{fmt.Sprintf("%s cannot be written (%v)", path, err)}
	}
	l.Tree = string(change.Tree)
	for _, file := range change.Files {
		l.Files = append(l.Files, landedFile{[]byte(file.Path), file.NewID, file.NewMode})
	}
	if err := w.rec.BeginLanding(func() error { return w.rec.WriteJSON(landingFile, l) }); err != nil {
		return err
	}
	w.delivery.landed = true
	if err := w.landWithFilteredFiles(ctx, do); err != nil {
		return w.revertIncomplete(context.WithoutCancel(ctx), l, err)
	}
	l.Done = true
	return w.rec.WriteJSON(landingFile, l)
}

// landWithFilteredFiles runs do. If the repository has filters, do takes filtered files from the
// agent's work tree.
func (w *Workspace) landWithFilteredFiles(ctx context.Context, do func() error) error {
	if !w.checkout.HasFilters() || !w.tree.HasChanges(OfAgent) {
		return do()
	}
	return w.withTree(ctx, OfAgent, func(_ *gitops.Checkout, tree *os.Root) error {
		w.checkout.CopyFilteredFrom(tree)
		defer w.checkout.CopyFilteredFrom(nil)
		return do()
	})
}

// revertIncomplete reverts a partly written change of the checkout. why is the error that stopped the writing.
// revertIncomplete returns it, as a *blockedError if others are the cause. If the part could not be removed, it
// adds that error.
func (w *Workspace) revertIncomplete(ctx context.Context, l landing, why error) error {
	obstructed, changed := (*gitops.ObstructedError)(nil), (*gitops.ChangedError)(nil)
	if errors.As(why, &obstructed) || errors.As(why, &changed) && !changed.PartlyWritten {
		l.Files = nil // none was written
	}
	incomplete := anyFile
	if changed != nil {
		incomplete = lastFile // others who change files may also empty some
		why = &blockedError{fmt.Sprintf("others changed files of it (%s)", markdown.SomeFiles(changed.Paths))}
	}
	if errors.As(why, new(*gitops.HeadMovedError)) {
		why = &blockedError{why: "others switched to another branch, or renamed one"}
	}
	if err := w.revertFailed(ctx, l, incomplete); err != nil {
		w.delivery.isPartial = true
		w.rec.Warn("half_in_checkout", "The part of the change in the checkout could not be removed: %v.", err)
		return fmt.Errorf("%w; %w", why, err)
	}
	return why
}

// lockIndex keeps other git processes from writing the checkout's index.
func (w *Workspace) lockIndex(ctx context.Context) (release func() error, err error) {
	release, err = w.checkout.LockIndex(ctx)
	if errors.As(err, new(*gitops.InUseError)) {
		err = &blockedError{"another git is at work, or died and left its index.lock"}
	}
	return release, err
}

// lockMark returns the text for lock files in the checkout. It tells people and a resumed run which
// run owns them.
func lockMark(rec *record.Record) string {
	return fmt.Sprintf("Run %s of agent-ci writes to this checkout. If it died, agent-ci resume with its run directory goes on; else remove this file.\n", rec.ID)
}

// revertInterrupted reverts a killed run's landing. It returns an error if others have changed the
// checkout since.
func (w *Workspace) revertInterrupted(ctx context.Context) (err error) {
	var l landing
	if exists, err := w.rec.ReadJSON(landingFile, &l); err != nil || !exists {
		return err
	}
	release, err := w.lockIndex(ctx)
	if err != nil {
		return CannotResume("its change was being put into the checkout when it was killed, and the index there can't be locked: %v", err)
	}
	defer func() { err = errors.Join(err, release()) }()
	if _, err := w.readPack(ctx, w.rec.Directory, record.PackFile, l.Tree); err != nil {
		return err
	}
	partial, ownPaths, err := w.findLanded(ctx, l, lastFile)
	if err != nil {
		return err
	}
	others, err := w.actionsOfOthers(ctx, l, partial, ownPaths)
	if err != nil {
		return err
	}
	if others != "" {
		return CannotResume("its change was being put into the checkout when it was killed, and others %s there since; undo that, or apply %s by hand", others, w.rec.Join(record.PatchFile))
	}
	return w.revertLanding(ctx, l, partial, ownPaths)
}

// actionsOfOthers describes what others did in the checkout beside a landing, or returns "". partial and ownPaths
// are the results of findLanded.
func (w *Workspace) actionsOfOthers(ctx context.Context, l landing, partial *gitops.ChangeSet, ownPaths []string) (string, error) {
	changed, err := w.changedByOthers(ctx)
	if err != nil {
		return "", err
	}
	changed = append(changed, partial.Paths()...) // these include ignored files that the landing wrote
	slices.Sort(changed)
	slices.Sort(ownPaths)
	isOwn := func(path string) bool { _, found := slices.BinarySearch(ownPaths, path); return found }
	if changed = slices.DeleteFunc(slices.Compact(changed), isOwn); len(changed) > 0 {
		return "changed " + markdown.SomeFiles(changed), nil
	}
	moved, err := w.checkout.MovedExcept(ctx, l.Branch, l.Commit)
	if err != nil || !moved {
		return "", err
	}
	return "committed, staged or switched to another branch", nil
}

// revertFailed reverts a landing that failed in this process.
func (w *Workspace) revertFailed(ctx context.Context, l landing, incomplete incompleteFiles) error {
	if len(l.Files) == 0 {
		return w.revertLanding(ctx, l, nil, nil)
	}
	partial, ownPaths, err := w.findLanded(ctx, l, incomplete)
	if err != nil {
		return fmt.Errorf("take out what was put into the checkout before: %w", err)
	}
	return w.revertLanding(ctx, l, partial, ownPaths)
}

// revertLanding restores the files at ownPaths and the branch as they were before the landing.
func (w *Workspace) revertLanding(ctx context.Context, l landing, partial *gitops.ChangeSet, ownPaths []string) error {
	var err error
	if len(l.Files) > 0 {
		err = w.checkout.Revert(ctx, partial, ownPaths)
	}
	if err == nil && l.Commit != "" {
		err = w.checkout.Unswitch(ctx, l.Branch, l.Commit)
	}
	if err != nil {
		return fmt.Errorf("take out what was put into the checkout before: %w", err)
	}
	w.delivery.landed = false
	w.rec.Remove(landingFile)
	return nil
}

// incompleteFiles tells which files of an interrupted landing may be incomplete.
type incompleteFiles int

const (
	lastFile incompleteFiles = iota // after a kill, because files are written in the order of their paths
	anyFile                         // after an error of git, which continues after a file that it could not write
)

// findLanded finds what a landing wrote. partial contains all changed paths of the checkout.
// ownPaths lists those that the landing wrote, deleted or began to write. Any other path was
// written by somebody else.
func (w *Workspace) findLanded(ctx context.Context, l landing, incomplete incompleteFiles) (partial *gitops.ChangeSet, ownPaths []string, err error) {
	landed := make(map[string]landedFile, len(l.Files))
	for _, file := range l.Files {
		landed[string(file.Path)] = file
	}
	partial, err = w.checkout.ChangesWith(ctx, w.snapshots.checkout, slices.Collect(maps.Keys(landed)))
	if err != nil {
		return nil, nil, err
	}
	mayBeIncomplete := !l.Done // until a written file is found, which was written later
	for _, file := range slices.Backward(partial.Files) {
		target, belongs := landed[file.Path]
		if !belongs {
			continue
		}
		isDeleted, hasMode := file.NewID == "", file.NewMode == target.Mode
		isComplete := hasMode && file.NewID == target.ID
		isOwn := isDeleted || isComplete
		if !isOwn && mayBeIncomplete && hasMode && target.ID != "" {
			if isOwn, err = w.checkout.IsBeginning(file.NewID, target.ID); err != nil {
				return nil, nil, err
			}
		}
		if isOwn {
			ownPaths = append(ownPaths, file.Path)
		}
		if isWritten := isComplete && !isDeleted; isWritten && incomplete == lastFile {
			mayBeIncomplete = false
		}
	}
	return partial, ownPaths, nil
}

// blockedError has the reason for not writing a change to the checkout.
type blockedError struct{ why string }

func (e *blockedError) Error() string { return e.why }

// warnOfOthers returns what somebody else changed in the checkout during the run. It warns once.
func (w *Workspace) warnOfOthers(ctx context.Context) ([]string, error) {
	if w.tree == nil || w.delivery.landed {
		return nil, nil
	}
	paths, err := w.changedByOthers(ctx)
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	if !w.delivery.warnedOfOthers {
		w.delivery.warnedOfOthers = true
		w.rec.Warn("checkout_changed", "Somebody changed the checkout during the run (%s); commands may have seen the old or the new files.", markdown.SomeFiles(paths))
	}
	return paths, nil
}

// refuseOverwriting returns a *blockedError if the change would overwrite changes of others, or if
// others moved HEAD or the index.
func (w *Workspace) refuseOverwriting(ctx context.Context, change *gitops.ChangeSet) error {
	paths, err := w.warnOfOthers(ctx)
	if err != nil {
		return err
	}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		return !slices.ContainsFunc(change.Files, func(f changeset.File) bool { return pathname.Overlap(f.Path, path) })
	})
	if len(paths) > 0 {
		return &blockedError{fmt.Sprintf("others changed files of it (%s)", markdown.SomeFiles(paths))}
	}
	moved, err := w.checkout.MovedByOthers(ctx)
	if err == nil && moved {
		err = &blockedError{"others committed, staged or switched to another branch"}
	}
	return err
}

// changedByOthers returns the paths that somebody else changed in the checkout since the snapshot.
func (w *Workspace) changedByOthers(ctx context.Context) ([]string, error) {
	if w.snapshots.checkout == nil {
		return nil, nil
	}
	paths, err := w.checkout.ChangedSince(ctx, w.snapshots.checkout)
	if err != nil {
		return nil, fmt.Errorf("look for what others changed in the checkout: %w", err)
	}
	return paths, nil
}

// requireUnchangedLower returns an error if the checkout below the run's overlay changed. Such
// changes may or may not show through the overlay.
func (w *Workspace) requireUnchangedLower(ctx context.Context) error {
	changed, err := w.changedByOthers(ctx)
	if err != nil || len(changed) == 0 {
		return err
	}
	return CannotResume("the checkout, which its work lies above, was changed since (%s); put it back as it was, or start a new run", markdown.SomeFiles(changed))
}

// inUse reports whether err says that other runs work in the checkout.
func inUse(err error) bool {
	var stop *outcome.Stop
	return errors.As(err, &stop) && stop.Reason == "checkout_in_use"
}
