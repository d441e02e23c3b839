package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// awayFile exists while the work tree lacks work done so far, and names its place.
const awayFile = record.StateFolder + "/away"

// Places of work outside the work tree.
const (
	InChange  = "change"  // the objects of the last change set
	InPatches = "patches" // the patches that the agent sent, as far as they did it
)

// Earlier describes the resumed run for the workspace.
type Earlier struct {
	transcript.Workspace      // in which the run worked
	Worked               bool // the agent had begun
	Ended                bool // the run was stopped; else it was killed
	InOverlay            bool // its commands worked in an overlay of the checkout
	HasTree              bool // the run directory has its work tree
	OnHead               bool // it works on the head of a pull request, not on the end of a branch here
	OnPull               bool // the change of a pull request was in the checkout before the agent began
}

// Found describes how a resumed run's work was found.
type Found struct {
	Away string // what has the work so far; empty where it is in the work tree that the run left
}

// Pending says whether a run ended while its work was not in its work tree, or not
// all of it.
func Pending(d *record.Directory) bool { return d.Has(awayFile) }

// CannotResume returns the outcome of a run that cannot resume.
func CannotResume(format string, args ...any) *outcome.Stop {
	return outcome.Stopf(outcome.InvalidInput, "not_resumable", "The run cannot be resumed: %s.", fmt.Sprintf(format, args...))
}

// Resume opens the checkout of a resumed run: o's, else the run's own, else the current one. If no
// work tree has the work, BeginMove and MoveIn restore it in a new one.
func Resume(ctx context.Context, rec *record.Record, o Options, earlier Earlier) (*Workspace, Found, error) {
	w, err := Open(ctx, rec, earlier.locate(rec, o))
	if err != nil {
		return nil, Found{}, CheckoutFailure(err)
	}
	found, err := w.goOn(ctx, earlier)
	if err != nil {
		return nil, found, errors.Join(err, w.Close())
	}
	return w, found, nil
}

func (w *Workspace) goOn(ctx context.Context, earlier Earlier) (Found, error) {
	l, err := w.readLanding()
	if err == nil {
		err = w.checkout.DropHeld(l.Branch)
	}
	if err == nil {
		err = w.StartOn(ctx, "")
	}
	if err == nil {
		err = w.checkout.ClaimSoon(ctx)
	}
	if err != nil {
		return Found{}, CheckoutFailure(err)
	}
	if err := w.hideAgain(); err != nil {
		return Found{}, err
	}
	w.dropTrees()
	return w.makeReady(ctx, earlier)
}

func (e Earlier) locate(rec *record.Record, o Options) Options {
	switch _, err := os.Stat(e.Root); {
	case o.Dir != "":
	case e.Cloned:
		o.Dir, o.Cloned = rec.Join(record.CheckoutFolder), true
	case errors.Is(err, fs.ErrNotExist):
		o.Dir = "."
	default:
		o.Dir = e.Root
	}
	return o
}

// dropTrees removes the trees of an interrupted verification.
func (w *Workspace) dropTrees() {
	names, _ := fs.Glob(w.rec.Root().FS(), record.StateFolder+"/verify-*")
	for _, name := range names {
		w.rec.Remove(name)
	}
}

// makeReady prepares the checkout for the run to resume above or beside it.
func (w *Workspace) makeReady(ctx context.Context, earlier Earlier) (found Found, err error) {
	if !earlier.Worked {
		w.rec.Remove(untrackedFolder)
		return found, w.sameBase(ctx, earlier, "")
	}
	if found.Away, err = w.findWork(ctx, earlier); err != nil {
		return found, fmt.Errorf("go on with the checkout: %w", err)
	}
	if found.Away != "" {
		if err := w.takeBackAlone(ctx, earlier); err != nil {
			return found, err
		}
		w.snapshot = nil // the checkout is its user's, and is looked at anew
		w.rec.Remove(untrackedFolder)
		return found, w.sameBase(ctx, earlier, found.Away)
	}
	w.worked = true
	if err := w.SetBase(ctx, gitops.BaseSpec{Branch: earlier.Base, SHA: earlier.BaseSHA}); err != nil {
		return found, CheckoutFailure(err)
	}
	if err := w.takeBackLanding(ctx); err != nil || !earlier.InOverlay {
		return found, err
	}
	return found, w.unchangedBelow(ctx)
}

// takeBackAlone is takeBackLanding without the run's work tree.
func (w *Workspace) takeBackAlone(ctx context.Context, earlier Earlier) error {
	if w.snapshot == nil || !w.rec.Has(landingFile) {
		return nil
	}
	if err := w.SetBase(ctx, gitops.BaseSpec{Branch: earlier.Base, SHA: earlier.BaseSHA}); err != nil {
		return CheckoutFailure(err)
	}
	if err := w.takeBackLanding(ctx); err != nil {
		return err
	}
	return CheckoutFailure(w.SetBase(ctx, gitops.BaseSpec{}))
}

// findWork reports where the agent's work is kept, if the work tree lacks it.
func (w *Workspace) findWork(ctx context.Context, earlier Earlier) (away string, err error) {
	if left, _ := w.rec.Read(awayFile); len(left) > 0 {
		return string(left), nil
	}
	if earlier.Ended {
		w.rec.Remove(markFile) // where the run was killed in its end
		w.rec.Remove(landingFile)
		return InChange, nil
	}
	raw, err := w.rec.Read(markFile)
	if err == nil {
		w.snapshot, w.begun, err = w.checkout.Resume(ctx, raw)
	}
	switch other := errors.Is(err, gitops.ErrOtherCheckout); {
	case other && earlier.HasTree && earlier.InOverlay:
		return "", CannotResume("its work lies above the checkout %s, and only what patches did of it could be done again elsewhere; resume it in that checkout", earlier.Root)
	case err == nil && !earlier.HasTree && w.madeTreeElsewhere() != "":
		return "", CannotResume("its work tree was at %s and is missing there; put it back, also the run directory if that was moved, or start a new run", w.madeTreeElsewhere())
	case other, errors.Is(err, fs.ErrNotExist), err == nil && !earlier.HasTree:
		return InPatches, nil
	}
	return "", err
}

func otherBase(wanted, is string) error {
	return CannotResume("its base commit is %s, the checkout stands on %s; check that commit out", gitops.Short(wanted), gitops.Short(is))
}

func (w *Workspace) sameBase(ctx context.Context, earlier Earlier, away string) error {
	if w.base.SHA != earlier.BaseSHA && earlier.Base != "" {
		spec := gitops.BaseSpec{Branch: earlier.Base}
		if earlier.OnHead {
			spec.SHA = earlier.BaseSHA
		}
		if err := w.SetBase(ctx, spec); err != nil {
			return CheckoutFailure(err)
		}
	}
	if w.base.SHA != earlier.BaseSHA {
		return otherBase(earlier.BaseSHA, w.base.SHA)
	}
	w.base.Branch = earlier.Base
	dirty, err := w.dirty(ctx)
	if err != nil {
		return err
	}
	if dirty != "" {
		return CannotResume("the checkout is not as the run left it, and has uncommitted changes (%s); give a clean one with --repo", dirty)
	}
	if away == InPatches && earlier.OnPull {
		return CannotResume("it goes on with a pull request, and this is not the checkout that it worked in; start a new one")
	}
	return w.HasFolder(earlier.Path)
}

// BeginMove records that the work is about to move to a new work tree.
func (w *Workspace) BeginMove(away string) error {
	if away == "" {
		return nil
	}
	if err := w.rec.Write(awayFile, []byte(away)); err != nil {
		return err
	}
	w.moving = true
	return nil
}

// Moving says whether the work so far is not, or not all, in the work tree yet.
func (w *Workspace) Moving() bool { return w.moving }

// Move says how the work so far comes into the work tree.
type Move struct {
	Away         string
	Change       *transcript.Change          // the last one of the run; may be nil
	ApplyPatches func(context.Context) error // does the work again, as far as patches did it
	Untracked    bool                        // checks need what is not tracked
}

// MoveIn restores the interrupted run's work tree as far as possible. Setup commands have run in
// it.
func (w *Workspace) MoveIn(ctx context.Context, m Move) error {
	if err := w.TakeSnapshot(ctx); err != nil {
		return err
	}
	if m.Untracked {
		if err := w.KeepUntracked(ctx); err != nil {
			return err
		}
	}
	putIn := m.ApplyPatches
	if m.Away == InChange {
		putIn = func(ctx context.Context) error { return w.layOver(ctx, m.Change) }
	}
	if err := putIn(ctx); err != nil {
		return err
	}
	w.rec.Remove(awayFile)
	w.moving = false
	return nil
}

// KeepUntrackedAgain is KeepUntracked after the end of a run removed the copies.
func (w *Workspace) KeepUntrackedAgain(ctx context.Context) error {
	if w.rec.Has(untrackedFolder) {
		return nil
	}
	return w.KeepUntracked(ctx)
}

// layOver writes a recorded change set to the work tree.
func (w *Workspace) layOver(ctx context.Context, change *transcript.Change) error {
	if change == nil || len(change.Files) == 0 {
		return nil
	}
	changes, err := w.ReadWork(ctx, w.rec.Directory, change)
	if err != nil {
		return err
	}
	return w.LayOver(ctx, changes)
}

// ReadWork reads the objects of a change, as it was made, from a run directory.
func (w *Workspace) ReadWork(ctx context.Context, d *record.Directory, change *transcript.Change) (*gitops.ChangeSet, error) {
	return w.readPack(ctx, d, workPack(d), change.TreeSHA)
}

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

// DropState removes an ended run's working files. Until the work has landed, the note of its place
// stays. If the work tree alone has the work, it removes nothing.
func (w *Workspace) DropState() {
	if w.left {
		return
	}
	away, err := w.rec.Read(awayFile)
	w.rec.Remove(record.StateFolder)
	if err == nil && w.moving {
		_ = w.rec.Write(awayFile, away) // else it goes on from the change
	}
}

// FinishCalls tidies up after calls in which the process died: it completes a merge, and removes the temporary
// files of a patch.
func (w *Workspace) FinishCalls(ctx context.Context) error {
	return w.in(ctx, OfAgent, func(c *gitops.Checkout, top *os.Root) error {
		if err := w.finishMerge(ctx, c); err != nil {
			return err
		}
		change, err := c.Changes(ctx, w.begun)
		if err != nil {
			return fmt.Errorf("look for what a patch left: %w", err)
		}
		for _, f := range change.Files {
			if name := path.Base(f.Path); f.Status == changeset.Added && strings.HasPrefix(name, ".apply-patch-") && strings.HasSuffix(name, ".tmp") {
				err = errors.Join(err, top.Remove(f.Path))
			}
		}
		return err
	})
}
