package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// RunEnd describes how a run leaves its workspace.
type RunEnd struct {
	Changed     bool // the run ended successfully, with a change
	Published   bool // the change is committed
	ForCheckout bool // the change's destination is the checkout
	Resumable   bool
	Change      *gitops.ChangeSet // the last change that was taken; may be nil
	Run         EndingRun
}

// EndingRun is the run that ends.
type EndingRun interface {
	// TakeUnsaved returns the change set after saving it, for a run that has not saved it.
	TakeUnsaved(context.Context) (*gitops.ChangeSet, error)
	// ResumesTree reports whether the run can resume if only its work tree has the work, whatever its outcome.
	ResumesTree() bool
}

// KeepWork saves the run's work at its end. If the checkout is the destination of finished work, it
// writes the work there. It returns sentences for the user about what it did, or "".
func (w *Workspace) KeepWork(ctx context.Context, e RunEnd) string {
	if w.checkout == nil {
		return ""
	}
	if _, err := w.warnOfOthers(ctx); err != nil && !w.wasRemoved() {
		w.rec.Warn("checkout_changed", "agent-ci could not find out whether somebody changed the checkout during the run: %v", err)
	}
	switch {
	case w.delivery.isPartial:
		return w.saveRevertData(e)
	case w.workPending:
		return "The work so far is kept; agent-ci resume " + w.rec.Path() + " tries again."
	case e.Published:
		return w.keepLeftover(ctx, e, e.Change)
	case !w.CommandsRan():
		return ""
	}
	return w.takeAndSettle(ctx, e)
}

// takeAndSettle saves the run's work, writes it to its destination, and returns sentences about both.
func (w *Workspace) takeAndSettle(ctx context.Context, e RunEnd) string {
	change, err := e.Change, error(nil)
	if change == nil || !w.saved {
		change, err = e.Run.TakeUnsaved(ctx)
		change = cmp.Or(change, e.Change)
	}
	if err != nil {
		resume := w.leaveInTree(e, ", and agent-ci resume %s continues there")
		subject := "The checkout is as it was; what"
		if w.wasRemoved() {
			subject, err = "What", errors.New("the checkout was deleted or moved")
		}
		w.rec.Warn("work_not_kept", "What the agent changed could not be kept (%v). It is in the work tree of the run%s.", err, resume)
		return subject + " the agent changed lies in " + w.tree.ChangesFolder() + "."
	}
	note := w.settleChange(ctx, e, change)
	if w.delivery.isPartial {
		return w.saveRevertData(e)
	}
	return strings.TrimSpace(note + " " + w.keepLeftover(ctx, e, change))
}

// saveRevertData keeps the files needed to revert a partly landed change later. It returns a
// sentence for the user.
func (w *Workspace) saveRevertData(e RunEnd) string {
	resume := w.leaveInTree(e, " agent-ci resume %s removes that part and continues.")
	return fmt.Sprintf("A part of the change is in the checkout; the whole is in %s.%s", w.rec.Join(record.PatchFile), resume)
}

// leaveInTree makes the run's end keep the work tree, which has the only copy of some work. It returns the sentence
// about resuming, or "" for a run that cannot resume. format has a %s for the path of the run directory.
func (w *Workspace) leaveInTree(e RunEnd, format string) string {
	w.workOnlyInTree = true
	if !e.Run.ResumesTree() {
		return ""
	}
	return fmt.Sprintf(format, w.rec.Path())
}

// settleChange writes a saved change to the checkout, if that is its destination. It returns a
// sentence about where the work is.
func (w *Workspace) settleChange(ctx context.Context, e RunEnd, change *gitops.ChangeSet) string {
	if change.Empty() {
		return ""
	}
	if !e.ForCheckout || e.Resumable {
		if w.wasRemoved() {
			return fmt.Sprintf("The work is in %s.", w.rec.Join(record.PatchFile))
		}
		return fmt.Sprintf("The work is in %s; the checkout is as it was.", w.rec.Join(record.PatchFile))
	}
	w.WriteToCheckout(ctx, change)
	if !w.delivery.landed && w.delivery.failure == nil { // the time was over
		w.delivery.failure = fmt.Errorf("put the change into the checkout: %w", context.Cause(ctx))
	}
	switch {
	case w.delivery.isPartial:
		return ""
	case w.delivery.failure != nil:
		return fmt.Sprintf("The work is in %s.", w.rec.Join(record.PatchFile))
	}
	return w.describeLanding(e.Changed)
}

// WriteToCheckout writes a change to the checkout, its destination, at most once. If it fails,
// NotWritten returns the reason.
func (w *Workspace) WriteToCheckout(ctx context.Context, change *gitops.ChangeSet) {
	if w.tree == nil || w.delivery.landed || w.delivery.failure != nil {
		return
	}
	l := landing{}
	if w.base.SHA != w.checkout.StartCommit().SHA {
		l.Commit = w.base.SHA
	}
	err := w.land(ctx, l, change, func() error { return w.checkout.ApplyChange(ctx, change) })
	if err == nil || ctx.Err() != nil && !w.delivery.landed { // the time is over: the end of the run tries again
		return
	}
	w.delivery.failure = notWrittenStop(err)
	w.rec.Warn("work_not_in_checkout", "The change could not be put into the checkout: %s.", outcome.MessageOf(err))
}

// notWrittenStop returns the outcome for a change that could not be written to the checkout.
func notWrittenStop(err error) error {
	inTheWay, obstructed := (*blockedError)(nil), (*gitops.ObstructedError)(nil)
	why := ""
	switch {
	case errors.As(err, &inTheWay):
		why = inTheWay.why
	case errors.As(err, &obstructed):
		why = fmt.Sprintf("untracked files are in the way (%s)", listPaths(obstructed.Paths))
	default:
		return fmt.Errorf("put the change into the checkout: %w", err)
	}
	return outcome.Stopf(outcome.Conflict, "not_in_checkout",
		"The change could not be put into the checkout, where %s; put that aside, and apply the change.", why).Because(err)
}

// NotWritten returns why a change could not be written to the checkout, or nil.
func (w *Workspace) NotWritten() error { return w.delivery.failure }

// describeLanding returns a sentence about the state of the checkout after the change landed, or
// "".
func (w *Workspace) describeLanding(changed bool) (note string) {
	if !changed {
		note = "The work so far is in the checkout, uncommitted."
	}
	if start := w.checkout.StartCommit(); w.base.SHA != start.SHA {
		note = strings.TrimSpace(note + fmt.Sprintf(" The checkout stands on %s, where it was on %s.", BaseName(w.base), BaseName(start)))
	}
	return note
}

// leftovers returns the paths that the run made but a change cannot contain.
func leftovers(change *gitops.ChangeSet) (left []string) {
	for _, p := range change.Problems {
		if !slices.ContainsFunc(change.Files, func(f changeset.File) bool { return f.Path == p.Path }) {
			left = append(left, p.Path)
		}
	}
	return left
}

// keepLeftover moves files that a change cannot contain to a separate folder, before the work tree
// is removed. It returns a sentence about them, or "".
func (w *Workspace) keepLeftover(ctx context.Context, e RunEnd, change *gitops.ChangeSet) string {
	if w.tree == nil || change == nil || w.workOnlyInTree {
		return ""
	}
	left := leftovers(change)
	submodules, err := w.changedSubmodules(ctx) // git shows no changes inside submodules
	if err != nil {
		w.rec.Warn("leftover", "agent-ci could not find out whether submodules changed: %v.", err)
	}
	left = append(left, submodules...)
	var moved []string
	for _, path := range left {
		isMoved, err := w.moveLeftover(path)
		if isMoved {
			moved = append(moved, path)
		}
		if err != nil {
			resume := w.leaveInTree(e, ", and agent-ci resume %s finds them")
			w.rec.Warn("leftover", "Files that cannot be part of a change could not be moved out of the work tree (%v). They are still in %s%s.", err, w.tree.ChangesFolder(), resume)
			return ""
		}
	}
	if len(moved) == 0 {
		return ""
	}
	return fmt.Sprintf("Files that cannot be part of a change (%s) are in %s.", markdown.SomeFiles(moved), w.rec.Join(record.LeftoverFolder))
}

// changedSubmodules returns the submodules that may have changed. In an overlay, these are all of
// them: those without changes have nothing to move. In a private tree, they are those with files
// newer than the agent's start. It avoids the checkout's index, which is large and may have
// changed.
func (w *Workspace) changedSubmodules(ctx context.Context) (paths []string, err error) {
	paths = w.snapshots.work.Submodules()
	if !w.tree.Private() || len(paths) == 0 {
		return paths, nil
	}
	mark, err := w.rec.Root().Stat(markFile) // written right before the agent began
	if err != nil {
		return nil, err
	}
	err = w.withTree(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) error {
		paths = c.ChangedFolders(paths, mark.ModTime())
		return nil
	})
	return paths, err
}

// moveLeftover moves a leftover out of the work tree. It returns false if there is nothing to move:
// the file may be from before the run.
func (w *Workspace) moveLeftover(path string) (moved bool, err error) {
	changes, err := filepath.Rel(w.rec.Path(), w.tree.ChangesFolder())
	if err != nil {
		return false, err
	}
	from := filepath.Join(changes, filepath.FromSlash(path))
	if _, err := w.rec.Root().Lstat(from); err != nil {
		return false, ignoreMissing(err)
	}
	to := w.freeLeftover(filepath.Join(record.LeftoverFolder, filepath.FromSlash(path)))
	if err := w.rec.Root().MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return false, err
	}
	return true, w.rec.Root().Rename(from, to)
}

// freeLeftover returns path, with a number if an earlier part of the run left something there.
func (w *Workspace) freeLeftover(path string) string {
	free := path
	for i := 2; ; i++ {
		if _, err := w.rec.Root().Lstat(free); err != nil {
			return free
		}
		free = fmt.Sprintf("%s.%d", path, i)
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// DescribeLeftovers returns the end of a sentence with the files that stay in the checkout because
// a change cannot contain them. It returns "" without such files.
func DescribeLeftovers(change *gitops.ChangeSet) string {
	left := leftovers(change)
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf(" but for %s, which cannot be part of a change", markdown.SomeFiles(left))
}

// Switch checks out branch at commit, which has the change's tree. If another run uses the checkout, or if
// files in it are in the way, Switch moves only the branch. Then aside tells the user why; otherwise aside is
// "". If files are in the way of the branch that is checked out, Switch moves nothing and returns an error.
func (w *Workspace) Switch(ctx context.Context, branch, commit string, change *gitops.ChangeSet) (aside string, err error) {
	err = w.land(ctx, landing{Branch: branch, Commit: commit}, change, func() error { return w.checkout.Switch(ctx, branch, commit, change) })
	aside = w.whyOnlyBranch(branch, err)
	switch {
	case aside == "":
		return "", cannotSwitch(branch, err)
	case w.CheckedOut(branch) && !inUse(err):
		return "", notWrittenStop(err)
	}
	return aside, cannotSwitch(branch, w.checkout.MoveBranch(ctx, branch, commit, change))
}

// whyOnlyBranch returns a sentence on why the checkout was not switched to the branch, if moving the branch alone is
// possible. err is the error of switching. It returns "" for nil and any other error.
func (w *Workspace) whyOnlyBranch(branch string, err error) string {
	obstructed, blocked := (*gitops.ObstructedError)(nil), (*blockedError)(nil)
	stays := outcome.Sentence(w.Name()) + " stays as it was, since "
	switch {
	case inUse(err):
		return fmt.Sprintf("Another run works in %s, which stays as it was; switch to %s when that has ended.", w.Name(), branch)
	case errors.As(err, &blocked):
		return fmt.Sprintf("%s%s; switch to %s when that is safe.", stays, blocked.why, branch)
	case w.tree != nil && !w.CheckedOut(branch) && errors.As(err, &obstructed):
		return fmt.Sprintf("%suntracked files there are in the way (%s); move them away and switch to %s.", stays, listPaths(obstructed.Paths), branch)
	}
	return ""
}

// cannotSwitch returns the outcome for a failed switch to a branch. It returns nil if err is nil.
func cannotSwitch(branch string, err error) error {
	var foreign *gitops.ForeignCommitError
	switch {
	case errors.As(err, &foreign):
		return outcome.Stopf(outcome.Conflict, "foreign_commit", "%s.", outcome.Sentence(err.Error())).Because(err)
	case errors.As(err, new(*gitops.InUseError)), errors.As(err, new(*gitops.ObstructedError)):
		return CheckoutFailure(err)
	case err != nil:
		return fmt.Errorf("switch the checkout to %s: %w", branch, err)
	}
	return nil
}
