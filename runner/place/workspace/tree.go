package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Tree is the commands' work tree instead of the checkout. Its backing is an overlay, where setup
// commands have their own layer that is frozen afterwards, or a private copy.
type Tree interface {
	// ClaimPath takes its path for this run.
	ClaimPath() error
	// Private says whether it is a copy.
	Private() bool
	// SandboxPath returns its path for commands.
	SandboxPath() string
	// ChangesFolder returns the agent's changes: an overlay's layer, or the whole private tree.
	ChangesFolder() string
	// GitFolder returns the place of commands' .git in an overlay. CopySetupGit gives the agent a copy of
	// setup's. A private tree contains its .git.
	GitFolder(of Changes) string
	CopySetupGit(ctx context.Context) error
	// Open opens the tree while no command runs. None may start until it is closed.
	Open(ctx context.Context, of Changes) (gitops.Layer, error)
	// HasChanges says whether commands may have changed anything.
	HasChanges(of Changes) bool
	// Drop removes commands' changes; of a private tree everything.
	Drop(of Changes) error
}

// Changes names the owner of a work tree's changes.
type Changes = string

// Owners of changes besides checks.
const (
	OfSetup Changes = "setup"
	OfAgent Changes = "agent"
)

// workInTreeFile exists if an ended run's work is only in its work tree.
const workInTreeFile = record.StateFolder + "/left"

// RecordWorkInTree records before the end whether only the work tree has the work. Otherwise a resumed run
// does not need the work tree.
func (w *Workspace) RecordWorkInTree() error {
	if w.workOnlyInTree {
		return w.rec.Write(workInTreeFile, nil)
	}
	w.rec.Remove(workInTreeFile)
	return nil
}

// WorkOnlyInTree reports whether an ended run's work is only in its work tree.
func WorkOnlyInTree(d *record.Directory) bool { return d.Has(workInTreeFile) }

// KeepsTree reports whether to keep the work tree after the end: it alone has the work, or the
// unrecorded end makes the run resumable.
func (w *Workspace) KeepsTree(recorded bool) bool {
	return w.tree != nil && (w.workOnlyInTree || !recorded)
}

// UseTree says what commands work in. It is made, unless a run that goes on has found it.
func (w *Workspace) UseTree(ctx context.Context, t Tree) error {
	w.tree = t
	if err := t.ClaimPath(); err != nil {
		return err
	}
	switch {
	case w.snapshot == nil:
		return w.makeTree(ctx)
	case !t.Private() && !w.hasOtherBase():
		return nil
	}
	if made, _ := w.rec.MadeTree(); t.Private() && made.SandboxPath != t.SandboxPath() {
		return CannotResume("its commands found their work tree at %s, where they may have installed from, and would find it at %s here; resume it where commands are confined as they were", made.SandboxPath, t.SandboxPath())
	}
	return w.withTree(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) error {
		now, err := c.Snapshot(ctx)
		if err == nil {
			w.workSnapshot = w.workSnapshot.ForCopy(now)
		}
		return err
	})
}

// treeOutsideRun returns the private tree's place outside the run directory, or "".
func (w *Workspace) treeOutsideRun() string {
	made, _ := w.rec.MadeTree()
	return made.Folder
}

func (w *Workspace) makeTree(ctx context.Context) (err error) {
	if err := errors.Join(w.tree.Drop(OfSetup), w.tree.Drop(OfAgent)); err != nil { // of a run that was killed
		return err
	}
	if err := w.takeCheckoutSnapshot(ctx); err != nil {
		return err
	}
	if w.tree.Private() {
		if err := w.makePrivate(ctx); err != nil {
			return err
		}
		w.warnOfSubmodules()
		return nil
	}
	if w.workSnapshot = w.snapshot; w.hasOtherBase() {
		if err := w.writeBase(ctx); err != nil {
			return err
		}
		w.warnOfSubmodules()
	}
	return w.makeGit(ctx)
}

// warnOfSubmodules names submodules that commands see at another commit than the base's.
func (w *Workspace) warnOfSubmodules() {
	if paths := w.workSnapshot.SubmodulesElsewhere(); len(paths) > 0 {
		w.rec.Warn("submodule_elsewhere", "Commands see submodules at the commit of the checkout, which is not the base's (%s); run git submodule update in setup, or check the base out before the run.", markdown.SomeFiles(paths))
	}
}

// writeBase puts the base into an overlay of the checkout, below what setup commands make.
func (w *Workspace) writeBase(ctx context.Context) error {
	layer, err := w.tree.Open(ctx, OfSetup)
	if err != nil {
		return fmt.Errorf("open the work tree: %w", err)
	}
	w.workSnapshot, err = w.checkout.WriteBase(ctx, layer, w.snapshot)
	return errors.Join(err, layer.Close())
}

func (w *Workspace) makePrivate(ctx context.Context) (err error) {
	var unread []string
	w.workSnapshot, unread, err = w.checkout.MakePrivateTree(ctx, gitops.PrivateTree{Dir: w.tree.ChangesFolder(), Snapshot: w.snapshot})
	if err != nil { // what is there of it would only take room
		err = errors.Join(err, w.tree.Drop(OfAgent))
	}
	if short := (*gitops.SpaceError)(nil); errors.As(err, &short) {
		return outcome.Stopf(outcome.InvalidInput, "no_space", "%s; free some space there, or use another disk: set --out, and without mount namespaces also XDG_STATE_HOME.", outcome.Sentence(short.Error())).Because(err)
	}
	if unreadable := (*gitops.UnreadableError)(nil); errors.As(err, &unreadable) {
		return outcome.Stopf(outcome.InvalidInput, "checkout_access", "The checkout can't be copied for commands: tracked files may not be read (%s); give the user of the run the right to read them, or use another checkout.", markdown.SomeFiles(unreadable.Paths)).Because(err)
	}
	if err == nil {
		err = w.rec.RecordMadeTree(w.tree.ChangesFolder(), w.tree.SandboxPath())
	}
	if err != nil {
		return err
	}
	if len(unread) > 0 {
		w.rec.Warn("not_copied", "Commands don't see unreadable files of the checkout (%s).", markdown.SomeFiles(unread))
	}
	return nil
}

// CopyTree copies a private tree for an agent of its own.
func (w *Workspace) CopyTree(ctx context.Context, from gitops.Layer, to string) error {
	_, _, err := w.checkout.InLayer(from).MakePrivateTree(ctx, gitops.PrivateTree{Dir: to, Snapshot: w.workSnapshot})
	return err
}

// Untouched says whether the checkout is on disk as commands see it: they work in an
// overlay of it and have changed nothing.
func (w *Workspace) Untouched() bool {
	return !w.tree.Private() && !w.tree.HasChanges(OfSetup) && !w.tree.HasChanges(OfAgent)
}

// withTree does something with the work tree as commands left it.
func (w *Workspace) withTree(ctx context.Context, of Changes, do func(*gitops.Checkout, *os.Root) error) error {
	layer, err := w.tree.Open(ctx, of)
	if err != nil {
		return fmt.Errorf("open the work tree: %w", err)
	}
	return errors.Join(do(w.checkout.InLayer(layer), layer.Tree), layer.Close())
}

// NoOverlay returns the reason against an overlay known to git, or "".
func (w *Workspace) NoOverlay(ctx context.Context) (why string, err error) {
	return w.checkout.WhyNoLayer(ctx, uint32(os.Geteuid()), uint32(os.Getegid()))
}

// AdmitOthers admits other runs to the checkout, if this one only changes it at its end.
func (w *Workspace) AdmitOthers(ctx context.Context) error {
	if w.shared {
		return nil
	}
	return CheckoutFailure(w.checkout.Share(ctx))
}

// RequireAlone verifies that a run whose commands change the checkout is alone there.
func (w *Workspace) RequireAlone() error {
	w.shared = false
	return CheckoutFailure(w.checkout.Claim())
}

// makeGit gives commands in an overlay a .git of their own, on the base.
func (w *Workspace) makeGit(ctx context.Context) error {
	if w.tree == nil || w.tree.Private() {
		return nil
	}
	return w.MakeGit(ctx, w.tree.GitFolder(OfSetup))
}

// MakeGit makes a .git on the base commit in a folder; none before UseTree.
func (w *Workspace) MakeGit(ctx context.Context, dir string) error {
	if w.workSnapshot == nil {
		return nil
	}
	folder := gitops.GitFolder{Dir: dir, TreeForCommands: w.TreeForCommands(w.base, w.base.Tree, &gitops.Head{})}
	err := w.checkout.MakeGitFolder(ctx, folder)
	if err == nil {
		err = w.checkout.WriteIndex(ctx, folder, nil)
	}
	return err
}

// copySetupGit gives the agent in an overlay setup's .git.
func (w *Workspace) copySetupGit(ctx context.Context) error {
	if w.tree == nil || w.tree.Private() {
		return nil
	}
	return w.tree.CopySetupGit(ctx)
}

// adoptSetupFiles treats setup's files as existing before the agent, and returns changed tracked files.
func (w *Workspace) adoptSetupFiles(ctx context.Context) (changed []string, err error) {
	if !w.tree.HasChanges(OfSetup) {
		return nil, nil
	}
	err = w.withTree(ctx, OfSetup, func(c *gitops.Checkout, _ *os.Root) (err error) {
		if changed, err = c.DirtySince(ctx, w.workSnapshot); err != nil {
			return err
		}
		w.workSnapshot, err = c.WithLayer(ctx, w.workSnapshot)
		if err == nil {
			w.snapshot = w.snapshot.WithUntrackedOf(w.workSnapshot)
		}
		return err
	})
	return changed, err
}

// TreeForCommands describes a tree on a base for commands, with HEAD of its .git.
func (w *Workspace) TreeForCommands(base gitops.Base, tree gitops.Tree, head *gitops.Head) gitops.TreeForCommands {
	return gitops.TreeForCommands{Tree: tree, Base: base, Head: head, Snapshot: w.workSnapshot}
}
