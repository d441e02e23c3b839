package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Overlay is how the checkout is reached as commands see it where they work in an
// overlay of it. Setup commands have one, which is frozen when they are done; the
// agent's lies above that.
type Overlay struct {
	// Open opens the tree of commands none of which runs. Nothing runs there until it
	// is closed.
	Open func(ctx context.Context, of Changes) (gitops.Layer, error)
	// Any says whether commands changed anything.
	Any func(of Changes) bool
	// Drop forgets what commands changed.
	Drop func(of Changes) error
	// Folder has what the agent changed, as the kernel keeps it.
	Folder string
}

// Changes says whose changes an overlay has.
type Changes string

// The changes that the checkout has beside those of checks.
const (
	OfSetup Changes = "setup"
	OfAgent Changes = "agent"
)

// landingFile stands in the run directory while the change is being put into the
// checkout, which the run left as it was until then.
const landingFile = record.StateFolder + "/landing"

// Landing says whether a run that was left was putting its change into the checkout.
func Landing(d *record.Directory) bool { return d.Has(landingFile) }

// leftFile stands in the run directory of a run that has ended and whose overlay alone
// has its work.
const leftFile = record.StateFolder + "/left"

// MarkLeft notes, before the end of the run is recorded, whether the overlay alone has the
// work: a run that has ended otherwise goes on without what its overlay has.
func (w *Workspace) MarkLeft() error {
	if w.left {
		return w.rec.Write(leftFile, nil)
	}
	w.rec.Remove(leftFile)
	return nil
}

// LeftInOverlay says whether a run that has ended left its work in its overlay alone.
func LeftInOverlay(d *record.Directory) bool { return d.Has(leftFile) }

// KeepsOverlay says whether the overlay outlasts the end of the run: it alone has the
// work, or the end is not recorded and the run goes on as one that was killed.
func (w *Workspace) KeepsOverlay(recorded bool) bool {
	return w.overlay != nil && (w.left || !recorded)
}

// UseOverlay says that commands work in an overlay.
func (w *Workspace) UseOverlay(o *Overlay) { w.overlay = o }

// Overlaid says whether commands work in an overlay.
func (w *Workspace) Overlaid() bool { return w.overlay != nil }

// Untouched says whether the checkout is on disk as commands see it: they work in an
// overlay, and changed nothing.
func (w *Workspace) Untouched() bool {
	return w.overlay != nil && !w.overlay.Any(OfSetup) && !w.overlay.Any(OfAgent)
}

// in does something with the checkout as commands left it.
func (w *Workspace) in(ctx context.Context, of Changes, do func(*gitops.Checkout, *os.Root) error) error {
	if w.overlay == nil {
		root, err := os.OpenRoot(w.root)
		if err != nil {
			return err
		}
		return errors.Join(do(w.checkout, root), root.Close())
	}
	layer, err := w.overlay.Open(ctx, of)
	if err != nil {
		return fmt.Errorf("open the overlay of the checkout: %w", err)
	}
	return errors.Join(do(w.checkout.In(layer), layer.Tree), layer.Tree.Close(), layer.Upper.Close())
}

// NoOverlay says why the checkout can't be in an overlay, as far as git knows; empty
// where nothing is against it.
func (w *Workspace) NoOverlay(ctx context.Context) (why string, err error) {
	return w.checkout.Unlayered(ctx, uint32(os.Geteuid()), uint32(os.Getegid()))
}

// Share lets other runs work in the checkout, too, where this one changes nothing of it
// before its end.
func (w *Workspace) Share(ctx context.Context) error {
	if w.shared || w.base.SHA != w.begunAt.SHA {
		return nil
	}
	return CheckoutFailure(w.checkout.Share(ctx))
}

// KeepAlone makes sure that a run whose commands change the checkout is alone in it.
func (w *Workspace) KeepAlone() error {
	w.shared = false
	return CheckoutFailure(w.checkout.Claim())
}

// takeSetup counts what setup commands made as there before the agent, and gives the
// tracked files that they changed.
func (w *Workspace) takeSetup(ctx context.Context) (changed []string, err error) {
	if !w.overlay.Any(OfSetup) {
		return nil, nil
	}
	err = w.in(ctx, OfSetup, func(c *gitops.Checkout, _ *os.Root) (err error) {
		if changed, err = c.Dirty(ctx); err == nil {
			w.snapshot, err = c.WithLayer(ctx, w.snapshot)
		}
		return err
	})
	return changed, err
}

// MakeGitFolder makes a git folder for commands that see a tree in an overlay of the
// checkout, which is to be on base.
func (w *Workspace) MakeGitFolder(ctx context.Context, dir string, base gitops.Base, tree gitops.Tree) error {
	return w.checkout.MakeGitFolder(ctx, gitops.GitFolder{Dir: dir, Tree: tree, Base: base, Snapshot: w.snapshot})
}

// land does what puts a change into the checkout, whole or not at all. A run that is
// killed meanwhile takes out first what is there of it when it goes on. It is a
// *changedByOthersError where the change would go over what others changed.
func (w *Workspace) land(ctx context.Context, change *gitops.ChangeSet, do func() error) error {
	if w.overlay == nil {
		return do()
	}
	if err := w.warnOfOthers(ctx); err != nil {
		return err
	}
	if err := w.giveWay(change); err != nil {
		return err
	}
	if err := w.KeepAlone(); err != nil {
		return err
	}
	if err := w.rec.WriteJSON(landingFile, pathsOf(change)); err != nil {
		return err
	}
	if err := do(); err != nil {
		return errors.Join(err, w.takeBackLanding(context.WithoutCancel(ctx)))
	}
	w.rec.Remove(landingFile)
	return nil
}

// pathsOf are the paths that a change touches, as bytes: JSON has no others than text.
func pathsOf(change *gitops.ChangeSet) [][]byte {
	paths := make([][]byte, len(change.Files))
	for i, file := range change.Files {
		paths[i] = []byte(file.Path)
	}
	return paths
}

// takeBackLanding takes out of the checkout what is there of a change that was being put
// there, and nothing of what others changed beside it.
func (w *Workspace) takeBackLanding(ctx context.Context) error {
	if !w.rec.Has(landingFile) {
		return nil
	}
	err := w.takeOutLanded(ctx)
	if err == nil {
		err = w.checkout.Restore(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("take out what was put into the checkout before: %w", err)
	}
	w.rec.Remove(landingFile)
	return nil
}

func (w *Workspace) takeOutLanded(ctx context.Context) error {
	var landed [][]byte
	if _, err := w.rec.ReadJSON(landingFile, &landed); err != nil {
		return err
	}
	half, err := w.checkout.Changes(ctx, w.snapshot)
	if err != nil {
		return err
	}
	paths := make([]string, len(landed))
	for i, path := range landed {
		paths[i] = string(path)
	}
	return w.checkout.Revert(ctx, half, paths)
}

// changedByOthersError says that others changed files of the checkout that the change
// touches, too.
type changedByOthersError struct{ paths []string }

func (e *changedByOthersError) Error() string {
	return fmt.Sprintf("others changed files of it (%s)", markdown.SomeFiles(e.paths))
}

// warnOfOthers tells, once, of what somebody else changed in the checkout while the run
// worked in its overlay. This process has changed nothing there before.
func (w *Workspace) warnOfOthers(ctx context.Context) (err error) {
	if w.overlay == nil || w.compared {
		return nil
	}
	w.compared = true
	w.byOthers, err = w.changedByOthers(ctx)
	if err != nil || len(w.byOthers) == 0 {
		return err
	}
	w.rec.Warn("checkout_changed", "Others changed the checkout while the run worked (%s); what commands of the run saw of these files may be either.", markdown.SomeFiles(w.byOthers))
	return nil
}

// giveWay is a *changedByOthersError where what others changed is in the way of a change.
func (w *Workspace) giveWay(change *gitops.ChangeSet) error {
	paths := slices.DeleteFunc(slices.Clone(w.byOthers), func(path string) bool {
		return !slices.ContainsFunc(change.Files, func(f gitops.File) bool { return sameOrAbove(f.Path, path) || sameOrAbove(path, f.Path) })
	})
	if len(paths) == 0 {
		return nil
	}
	return &changedByOthersError{paths}
}

func sameOrAbove(above, path string) bool {
	return path == above || strings.HasPrefix(path, above+"/")
}

func (w *Workspace) changedByOthers(ctx context.Context) ([]string, error) {
	if w.snapshot == nil {
		return nil, nil
	}
	paths, err := w.checkout.ChangedSince(ctx, w.snapshot)
	if err != nil {
		return nil, fmt.Errorf("look for what others changed in the checkout: %w", err)
	}
	return paths, nil
}

// unchangedBelow makes sure that the checkout is what it was when the run worked in an
// overlay of it: what was changed below an overlay shows in it, or does not.
func (w *Workspace) unchangedBelow(ctx context.Context) error {
	changed, err := w.changedByOthers(ctx)
	if err != nil || len(changed) == 0 {
		return err
	}
	return CannotResume("the checkout, which its work lies above, was changed since (%s); put it back as it was, or start a new run", markdown.SomeFiles(changed))
}

// inUse says whether an error is that other runs work in the checkout.
func inUse(err error) bool {
	var stop *outcome.Stop
	return errors.As(err, &stop) && stop.Reason == "checkout_in_use"
}
