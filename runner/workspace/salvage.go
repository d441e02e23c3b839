package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Ending says how a run leaves its workspace.
type Ending struct {
	Changed   bool              // the run ended as it should, with a change
	Published bool              // a commit has the change
	Stays     bool              // the change is meant to stay in the checkout
	Change    *gitops.ChangeSet // that was taken last, as the checkout holds it; may be nil
	// Take takes the change set and keeps it, for a run that did not come to that.
	Take func(context.Context) (*gitops.ChangeSet, error)
}

// collect gives the change set, which the run directory then has.
func (w *Workspace) collect(ctx context.Context, e Ending) (*gitops.ChangeSet, error) {
	if e.Change != nil && w.kept {
		return e.Change, nil
	}
	change, err := e.Take(ctx)
	if change == nil {
		change = e.Change
	}
	return change, err
}

// Salvage keeps the work of a run and puts the checkout back as the user had it,
// unless the change is published or meant to stay in the checkout. It tells what it
// did.
func (w *Workspace) Salvage(ctx context.Context, e Ending) string {
	if w.checkout == nil {
		return ""
	}
	if w.gitSpoiled(ctx, e.Published) {
		return w.keepSpoiled(ctx, e)
	}
	if err := w.dropLocks(); err != nil {
		w.rec.Warn("locks_left", "%v", err)
	}
	if !w.home { // else what differs is what the run put back
		if _, err := w.warnOfOthers(ctx); err != nil {
			w.rec.Warn("checkout_not_compared", "What others changed in the checkout while the run worked could not be found: %v", err)
		}
	}
	switch {
	case w.half:
		return w.keepHalf()
	case w.moving:
		return w.moveOut(ctx)
	case e.Published:
		if w.stays {
			w.giveBack(ctx)
		}
		return w.keepLeftover(ctx, e.Change)
	case !w.Worked():
		return w.giveBack(ctx)
	}
	return w.keepWork(ctx, e)
}

func (w *Workspace) keepWork(ctx context.Context, e Ending) string {
	change, err := w.collect(ctx, e)
	switch {
	case err != nil && w.overlay != nil && w.overlay.Any(OfAgent):
		w.left = true
		w.rec.Warn("work_not_kept", "What the agent changed could not be kept (%v); it lies in %s as it was made.", err, w.overlay.Folder)
		return "The checkout is as it was; what the agent changed lies in " + w.overlay.Folder + "."
	case err != nil:
		w.rec.Warn("work_not_kept", "What the agent changed could not be kept (%v); it still stands in %s.", err, w.root)
		return "The checkout was left as the agent left it."
	}
	note := w.leave(ctx, e, change)
	if w.half {
		return w.keepHalf()
	}
	return strings.TrimSpace(note + " " + w.keepLeftover(ctx, change))
}

// keepHalf leaves what can take a part of the change out of the checkout later.
func (w *Workspace) keepHalf() string {
	w.left = true
	return fmt.Sprintf("A part of the change stands in the checkout; the whole is in %s. agent-ci resume %s takes that part out again and goes on.",
		w.rec.Join(record.PatchFile), w.rec.Path())
}

// leave puts a change that is kept where it belongs, and the checkout in order.
func (w *Workspace) leave(ctx context.Context, e Ending, change *gitops.ChangeSet) string {
	switch {
	case change.Empty():
		return w.giveBack(ctx)
	case e.Stays && w.overlay != nil:
		if w.PutIntoCheckout(ctx, change); !w.landed && w.keptOut == nil {
			w.keptOut = fmt.Errorf("put the change into the checkout: %w", context.Cause(ctx))
		}
		if w.half {
			return ""
		}
		if w.keptOut != nil {
			return fmt.Sprintf("The work is in %s.", w.rec.Join(record.PatchFile)) + w.giveBack(ctx)
		}
		return w.settle(ctx, e.Changed)
	case e.Stays:
		return w.settle(ctx, e.Changed)
	}
	if err := w.Restore(ctx, change); err != nil {
		if w.overlay != nil {
			w.rec.Warn("checkout_not_restored", "The checkout could not be put back to where it stood: %v.", err)
			return fmt.Sprintf("The work is in %s.", w.rec.Join(record.PatchFile))
		}
		w.rec.Warn("checkout_not_restored", "The checkout is not as it was (%v); what the agent changed still stands in it.", err)
		return fmt.Sprintf("The work so far is in %s and still stands in the checkout.", w.rec.Join(record.PatchFile))
	}
	return fmt.Sprintf("The work is in %s; the checkout is as it was%s.", w.rec.Join(record.PatchFile), w.leftBehind(change))
}

// PutIntoCheckout lays a change that is meant to stay in the checkout there, once, from
// the overlay that has it; KeptOut says why it does not.
func (w *Workspace) PutIntoCheckout(ctx context.Context, change *gitops.ChangeSet) {
	if w.overlay == nil || w.landed || w.keptOut != nil {
		return
	}
	err := w.land(ctx, landing{}, change, func() error { return w.checkout.LayOver(ctx, change) })
	if err == nil || ctx.Err() != nil && !w.landed { // who has time yet tries again
		return
	}
	w.keptOut = keptOut(err)
	w.rec.Warn("work_not_in_checkout", "The change could not be put into the checkout: %v.", err)
}

// dropLocks removes the locks that commands of the run may have left in the checkout.
func (w *Workspace) dropLocks() error {
	if w.overlay != nil {
		return nil
	}
	if err := w.checkout.DropLocks(); err != nil {
		return fmt.Errorf("remove the locks that the run's commands left: %w", err)
	}
	return nil
}

// keptOut is the outcome of a run whose change belongs into the checkout and can't be put
// there.
func keptOut(err error) error {
	inTheWay, obstructed := (*inTheWayError)(nil), (*gitops.ObstructedError)(nil)
	why := ""
	switch {
	case errors.As(err, &inTheWay):
		why = inTheWay.why
	case errors.As(err, &obstructed):
		why = fmt.Sprintf("untracked files are in the way (%s)", named(obstructed.Paths))
	default:
		return fmt.Errorf("put the change into the checkout: %w", err)
	}
	return outcome.Stopf(outcome.Conflict, "not_in_checkout",
		"The change could not be put into the checkout, where %s; put that aside, and apply the change.", why).Because(err)
}

// KeptOut is why a change that is meant to stay in the checkout is not there; nil where
// it is.
func (w *Workspace) KeptOut() error { return w.keptOut }

// giveBack undoes a switch to the base commit when nothing was committed there.
func (w *Workspace) giveBack(ctx context.Context) string {
	if err := w.checkout.Restore(ctx, nil); err != nil {
		w.rec.Warn("checkout_not_restored", "The checkout could not be put back to where it stood: %v.", err)
	}
	return ""
}

// settle makes the agent's work an uncommitted change, whatever the agent did with
// git.
func (w *Workspace) settle(ctx context.Context, changed bool) string {
	if err := w.checkout.Settle(ctx, w.snapshot); err != nil {
		w.rec.Warn("checkout_not_settled", "HEAD and the index could not be put back on the base: %v", err)
	}
	note := ""
	if !changed {
		note = "The work so far stands in the checkout, uncommitted."
	}
	if w.base.SHA != w.begunAt.SHA {
		note = strings.TrimSpace(note + fmt.Sprintf(" The checkout stands on %s, where it was on %s.", BaseName(w.base), BaseName(w.begunAt)))
	}
	return note
}

// moveOut gives the checkout back into which the work was being put.
func (w *Workspace) moveOut(ctx context.Context) string {
	putBack := w.takeOut
	if !w.Worked() {
		putBack = func(ctx context.Context) error { return w.checkout.Restore(ctx, nil) }
	}
	if err := putBack(ctx); err != nil {
		w.rec.Warn("checkout_not_restored", "The checkout could not be put back (%v); a part of the work so far may stand in it.", err)
	}
	return "The work so far is kept; agent-ci resume " + w.rec.Path() + " tries again."
}

func (w *Workspace) leftBehind(change *gitops.ChangeSet) string {
	if w.overlay != nil {
		return ""
	}
	return LeftBehind(change)
}

// leftovers are what the run made that is no part of the change.
func leftovers(change *gitops.ChangeSet) (left []string) {
	for _, p := range change.Problems {
		if !slices.ContainsFunc(change.Files, func(f gitops.File) bool { return f.Path == p.Path }) {
			left = append(left, p.Path)
		}
	}
	return left
}

// keepLeftover moves what the run made in its overlay, and what is no part of the change,
// to a folder of its own, since the overlay goes. It says where that is.
func (w *Workspace) keepLeftover(ctx context.Context, change *gitops.ChangeSet) string {
	if w.overlay == nil || change == nil || w.left {
		return ""
	}
	left := leftovers(change)
	submodules, err := w.checkout.Submodules(ctx) // what changed in them git doesn't see
	if err != nil {
		w.rec.Warn("leftover_not_looked_for", "Whether anything changed in submodules could not be found out: %v.", err)
	}
	left = append(left, submodules...)
	var moved []string
	for _, path := range left {
		is, err := w.moveLeftover(path)
		if is {
			moved = append(moved, path)
		}
		if err != nil {
			w.left = true
			w.rec.Warn("leftover_not_moved", "What cannot be part of a change could not be moved out of the overlay (%v); it lies in %s.", err, w.overlay.Folder)
			return ""
		}
	}
	if len(moved) == 0 {
		return ""
	}
	return fmt.Sprintf("What cannot be part of a change (%s) is in %s.", markdown.SomeFiles(moved), w.rec.Join(record.LeftoverFolder))
}

// moveLeftover says whether there was something to move: it may have been there before
// the run.
func (w *Workspace) moveLeftover(path string) (is bool, err error) {
	upper, err := filepath.Rel(w.rec.Path(), w.overlay.Folder)
	if err != nil {
		return false, err
	}
	from := filepath.Join(upper, filepath.FromSlash(path))
	if _, err := w.rec.Root().Lstat(from); err != nil {
		return false, ignoreMissing(err)
	}
	to := w.freeLeftover(filepath.Join(record.LeftoverFolder, filepath.FromSlash(path)))
	if err := w.rec.Root().MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return false, err
	}
	return true, w.rec.Root().Rename(from, to)
}

// freeLeftover is a place where nothing is that the run had left before it went on.
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

// LeftBehind names what the run made that is no part of the change and so stays in
// the checkout, for the end of a sentence.
func LeftBehind(change *gitops.ChangeSet) string {
	left := leftovers(change)
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf(" but for %s, which cannot be part of a change", markdown.SomeFiles(left))
}

// gitSpoiled says whether git may not touch the checkout any more: commands changed
// what git keeps of it, or whether they did can't be found out in time. A run that
// ends for another reason gets a warning of what is found here.
func (w *Workspace) gitSpoiled(ctx context.Context, published bool) bool {
	if w.gitBad || published {
		return w.gitBad
	}
	err := w.GitUnchanged(ctx)
	if isViolation(err) {
		var stop *outcome.Stop
		errors.As(err, &stop)
		w.rec.Warn(gitChanged, "%s", stop.Message)
	}
	return err != nil
}

// keepSpoiled keeps the work of a run whose commands changed what git keeps, and
// leaves the checkout as it is.
func (w *Workspace) keepSpoiled(ctx context.Context, e Ending) string {
	if !w.Worked() {
		return ""
	}
	if w.unread && !w.kept {
		return "Git's objects can't be relied on, so the work was not made a patch; it stands in the checkout, which was left as it is."
	}
	change, err := w.collect(ctx, e)
	switch {
	case err != nil && !isViolation(err):
		w.rec.Warn("work_not_kept", "What the agent changed could not be kept (%v); it still stands in %s.", err, w.root)
		return "The checkout was left as it is."
	case change.Empty():
		return "The checkout was left as it is."
	}
	return fmt.Sprintf("The work is in %s; the checkout was left as it is.", w.rec.Join(record.PatchFile))
}

// Restore puts the checkout back to where it was before the run: change is what
// stands in it.
func (w *Workspace) Restore(ctx context.Context, change *gitops.ChangeSet) error {
	if w.overlay != nil {
		if _, err := w.warnOfOthers(ctx); err != nil {
			return err
		}
		err := w.checkout.Restore(ctx, nil)
		w.home = err == nil
		return err
	}
	// A run that is killed meanwhile must not take what is left for all of the work.
	if err := w.rec.Write(awayFile, []byte(InChange)); err != nil {
		return err
	}
	return w.checkout.Restore(ctx, change)
}

// Switch puts the checkout on a branch, at a commit that has the tree of the
// change. Where other runs work in the checkout, or something of others is in the way of
// what came from an overlay, only the branch moves; aside says why, in a sentence.
func (w *Workspace) Switch(ctx context.Context, branch, commit string, change *gitops.ChangeSet) (aside string, err error) {
	if err := w.endGitMark(ctx); err != nil {
		return "", err
	}
	if err := w.dropLocks(); err != nil {
		return "", err
	}
	err = w.land(ctx, landing{Branch: branch, Commit: commit}, change, func() error { return w.checkout.Switch(ctx, branch, commit, change) })
	if aside = w.aside(branch, err); aside != "" && branch == w.begunAt.Branch && !inUse(err) {
		return "", keptOut(err)
	}
	if aside != "" {
		w.stays = true
		err = w.checkout.MoveBranch(ctx, branch, commit, change)
	}
	return aside, cannotSwitch(branch, err)
}

// aside says why the checkout is not switched to a branch, which may move alone then;
// empty where it was, or has to be.
func (w *Workspace) aside(branch string, err error) string {
	obstructed, inTheWay := (*gitops.ObstructedError)(nil), (*inTheWayError)(nil)
	stays := outcome.Sentence(w.Name()) + " stays as it was, since "
	switch {
	case inUse(err):
		return fmt.Sprintf("Another run works in %s, which stays as it was; switch to %s when that has ended.", w.Name(), branch)
	case errors.As(err, &inTheWay):
		return fmt.Sprintf("%s%s; switch to %s when that is safe.", stays, inTheWay.why, branch)
	case w.overlay != nil && branch != w.begunAt.Branch && errors.As(err, &obstructed):
		return fmt.Sprintf("%suntracked files there are in the way (%s); move them away and switch to %s.", stays, named(obstructed.Paths), branch)
	}
	return ""
}

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
