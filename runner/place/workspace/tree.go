package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Tree is the tree that commands work in instead of the checkout: an overlay or a private copy. In
// an overlay, setup commands have a layer of their own, which is frozen after setup.
type Tree interface {
	// ClaimPath reserves the tree's path for this run.
	ClaimPath() error
	// Private reports whether the tree is a copy of the checkout.
	Private() bool
	// SandboxPath returns the tree's path for commands.
	SandboxPath() string
	// ChangesFolder returns the folder of the agent's changes: an overlay's layer, or the whole
	// private tree.
	ChangesFolder() string
	// GitFolder returns the folder of commands' .git in an overlay; a private tree contains its
	// .git. CopySetupGit replaces the agent's .git by a copy of setup's, if there is one.
	GitFolder(of Changes) string
	CopySetupGit(ctx context.Context) error
	// Open opens the tree while no command runs. None may start until it is closed.
	Open(ctx context.Context, of Changes) (gitops.Layer, error)
	// HasChanges reports whether commands may have changed anything.
	HasChanges(of Changes) bool
	// Drop removes the changes that commands made. It removes a private tree completely.
	Drop(of Changes) error
}

// Changes names who made changes in a work tree.
type Changes = string

// The makers of changes, besides checks.
const (
	OfSetup Changes = "setup"
	OfAgent Changes = "agent"
)

// workInTreeFile exists if the work of an ended run is only in its work tree.
const workInTreeFile = record.StateFolder + "/left"

// RecordWorkInTree records, before the run ends, whether only the work tree has the work. Otherwise
// a resumed run does not need the work tree.
func (w *Workspace) RecordWorkInTree() error {
	if w.workOnlyInTree {
		return w.rec.Write(workInTreeFile, nil)
	}
	w.rec.Remove(workInTreeFile)
	return nil
}

// WorkOnlyInTree reports whether an ended run's work is only in its work tree.
func WorkOnlyInTree(d *record.Directory) bool { return d.Has(workInTreeFile) }

// KeepsTree reports whether to keep the work tree after the end of the run. The only copy of the work
// is kept. It is also kept if the end is not recorded, because the run can then resume.
func (w *Workspace) KeepsTree(recorded bool) bool {
	return w.tree != nil && (w.workOnlyInTree || !recorded)
}

// UseTree sets the tree that commands work in. It makes the tree, unless a resumed run has found
// it.
func (w *Workspace) UseTree(ctx context.Context, t Tree) error {
	w.tree = t
	if err := t.ClaimPath(); err != nil {
		return err
	}
	switch {
	case w.snapshots.checkout == nil:
		return w.makeTree(ctx)
	case !t.Private() && !w.hasOtherBase():
		return nil
	}
	if made, _ := w.rec.FindPrivateTree(); t.Private() && made.SandboxPath != t.SandboxPath() {
		return CannotResume("its commands found their work tree at %s, where they may have installed from, and would find it at %s here; resume it where commands are confined as they were", made.SandboxPath, t.SandboxPath())
	}
	return w.withTree(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) error {
		now, err := c.Snapshot(ctx)
		if err != nil {
			return err
		}
		w.snapshots.work = w.snapshots.work.ForCopy(now)
		return nil
	})
}

// treeOutsideRun returns the private tree's place outside the run directory, or "".
func (w *Workspace) treeOutsideRun() string {
	made, _ := w.rec.FindPrivateTree()
	return made.Folder
}

// makeTree makes the work tree, as a private copy or an overlay, and takes the snapshots.
func (w *Workspace) makeTree(ctx context.Context) (err error) {
	if err := errors.Join(w.tree.Drop(OfSetup), w.tree.Drop(OfAgent)); err != nil { // left by a killed run
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
	w.snapshots.work = w.snapshots.checkout
	if w.hasOtherBase() {
		if err := w.writeBase(ctx); err != nil {
			return err
		}
		w.warnOfSubmodules()
	}
	return nil
}

// warnOfSubmodules warns of submodules that commands see at another commit than the base's.
func (w *Workspace) warnOfSubmodules() {
	if paths := w.snapshots.work.SubmodulesElsewhere(); len(paths) > 0 {
		w.rec.Warn("submodule_elsewhere", "Commands see submodules at the commit of the checkout, which is not the base's (%s); run git submodule update in setup, or check the base out before the run.", markdown.SomeFiles(paths))
	}
}

// writeBase writes the base into an overlay of the checkout, in setup's layer.
func (w *Workspace) writeBase(ctx context.Context) error {
	layer, err := w.tree.Open(ctx, OfSetup)
	if err != nil {
		return fmt.Errorf("open the work tree: %w", err)
	}
	w.snapshots.work, err = w.checkout.WriteBase(ctx, layer, w.snapshots.checkout)
	return errors.Join(err, layer.Close())
}

// makePrivate copies the checkout into a private tree. It warns of unreadable untracked files.
func (w *Workspace) makePrivate(ctx context.Context) (err error) {
	var unread []string
	w.snapshots.work, unread, err = w.checkout.MakePrivateTree(ctx, w.tree.ChangesFolder(), w.snapshots.checkout)
	if err != nil { // an incomplete tree only takes space
		err = errors.Join(err, w.tree.Drop(OfAgent))
	}
	if short := (*gitops.SpaceError)(nil); errors.As(err, &short) {
		return outcome.Stopf(outcome.InvalidInput, "no_space", "%s; free some space there, or use another disk: set --out, and without mount namespaces also XDG_STATE_HOME.", outcome.Sentence(short.Error())).Because(err)
	}
	if unreadable := (*gitops.UnreadableError)(nil); errors.As(err, &unreadable) {
		return outcome.Stopf(outcome.InvalidInput, "checkout_access", "The checkout can't be copied for commands: tracked files may not be read (%s); give the user of the run the right to read them, or use another checkout.", markdown.SomeFiles(unreadable.Paths)).Because(err)
	}
	if err == nil {
		err = w.rec.RecordPrivateTree(w.tree.ChangesFolder(), w.tree.SandboxPath())
	}
	if err != nil {
		return err
	}
	if len(unread) > 0 {
		w.rec.Warn("not_copied", "Commands don't see unreadable files of the checkout (%s).", markdown.SomeFiles(unread))
	}
	return nil
}

// CopyTree copies a private tree for another agent.
func (w *Workspace) CopyTree(ctx context.Context, from gitops.Layer, to string) error {
	_, _, err := w.checkout.InLayer(from).MakePrivateTree(ctx, to, w.snapshots.work)
	return err
}

// Untouched reports whether commands see exactly the checkout on disk: they work in an overlay and
// have changed nothing.
func (w *Workspace) Untouched() bool {
	return !w.tree.Private() && !w.tree.HasChanges(OfSetup) && !w.tree.HasChanges(OfAgent)
}

// withTree opens the work tree with the given changes, runs do and closes the tree.
func (w *Workspace) withTree(ctx context.Context, of Changes, do func(*gitops.Checkout, *os.Root) error) error {
	layer, err := w.tree.Open(ctx, of)
	if err != nil {
		return fmt.Errorf("open the work tree: %w", err)
	}
	return errors.Join(do(w.checkout.InLayer(layer), layer.Tree), layer.Close())
}

// NoOverlay returns why git could not work in an overlay, or "".
func (w *Workspace) NoOverlay(ctx context.Context) (why string, err error) {
	return w.checkout.WhyNoLayer(ctx, uint32(os.Geteuid()), uint32(os.Getegid()))
}

// LentObjects returns the checkout's object folders, keyed by the mount points of a tree that
// commands see at dir.
func (w *Workspace) LentObjects(dir string) map[string]string { return w.checkout.LentObjects(dir) }

// AdmitOthers lets other runs use the checkout too, if this run changes the checkout only at its
// end.
func (w *Workspace) AdmitOthers(ctx context.Context) error {
	if w.shared {
		return nil
	}
	return CheckoutFailure(w.checkout.Share(ctx))
}

// RequireAlone claims the checkout for this run alone. It fails if other runs use it.
func (w *Workspace) RequireAlone() error {
	w.shared = false
	return CheckoutFailure(w.checkout.Claim())
}

// MakeGit makes a .git on the base commit in dir. Before UseTree it does nothing.
func (w *Workspace) MakeGit(ctx context.Context, dir string) error {
	if w.snapshots.work == nil {
		return nil
	}
	folder := w.gitOnBase(dir)
	if err := w.checkout.MakeGitFolder(ctx, folder); err != nil {
		return err
	}
	if err := w.checkout.FillGitFolder(ctx, folder); err != nil {
		return err
	}
	return w.checkout.WriteIndex(ctx, folder)
}

func (w *Workspace) gitOnBase(dir string) gitops.GitFolder {
	return gitops.GitFolder{Dir: dir, TreeForCommands: w.TreeForCommands(w.base, w.base.Tree, &gitops.Head{})}
}

// BeginSetup takes a snapshot and makes setup's .git.
func (w *Workspace) BeginSetup(ctx context.Context) error {
	if err := w.TakeSnapshot(ctx); err != nil || w.tree.Private() {
		return err
	}
	return w.MakeGit(ctx, w.tree.GitFolder(OfSetup))
}

// copySetupGit copies setup's .git for the agent in an overlay, or makes one without setup. Nothing
// needs setup's own index afterwards. Without an index, the agent gets a new one.
func (w *Workspace) copySetupGit(ctx context.Context) error {
	if w.tree.Private() {
		return nil
	}
	if err := w.tree.CopySetupGit(ctx); err != nil {
		return err
	}
	agent := w.tree.GitFolder(OfAgent)
	if _, err := os.Lstat(w.tree.GitFolder(OfSetup)); errors.Is(err, fs.ErrNotExist) {
		return w.MakeGit(ctx, agent)
	}
	if _, err := os.Lstat(agent); err != nil {
		return ignoreMissing(err) // setup's .git was too large
	}
	if _, err := os.Lstat(filepath.Join(agent, "index")); err == nil {
		_ = os.Remove(filepath.Join(w.tree.GitFolder(OfSetup), "index")) // only takes space
		return nil
	}
	return w.checkout.WriteIndex(ctx, w.gitOnBase(agent))
}

// adoptSetupFiles makes setup's files part of the snapshot, so they do not count as the agent's. It
// returns the tracked files that setup changed.
func (w *Workspace) adoptSetupFiles(ctx context.Context) (changed []string, err error) {
	if !w.tree.HasChanges(OfSetup) {
		return nil, nil
	}
	err = w.withTree(ctx, OfSetup, func(c *gitops.Checkout, _ *os.Root) error {
		with, err := c.WithLayer(ctx, w.snapshots.work)
		if err != nil {
			return err
		}
		changed = with.Dirty()
		w.snapshots.work, w.snapshots.checkout = with, w.snapshots.checkout.WithUntrackedOf(with)
		return nil
	})
	return changed, err
}

// TreeForCommands describes a tree for commands, on a base. head is the HEAD of its .git.
func (w *Workspace) TreeForCommands(base gitops.Base, tree gitops.Tree, head *gitops.Head) gitops.TreeForCommands {
	return gitops.TreeForCommands{Tree: tree, Base: base, Head: head, Snapshot: w.snapshots.work}
}
