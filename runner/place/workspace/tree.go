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
	// Take takes its path for this run.
	Take() error
	// Private says whether it is a copy.
	Private() bool
	// Seen returns its path for commands.
	Seen() string
	// Folder returns the agent's changes: an overlay's layer, or the whole private tree.
	Folder() string
	// Git returns the place of commands' .git in an overlay. GiveGit gives the agent a copy of
	// setup's. A private tree contains its .git.
	Git(of Changes) string
	GiveGit(ctx context.Context) error
	// Open opens the tree while no command runs. None may start until it is closed.
	Open(ctx context.Context, of Changes) (gitops.Layer, error)
	// Any says whether commands may have changed anything.
	Any(of Changes) bool
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

// leftFile exists if an ended run's work is only in its work tree.
const leftFile = record.StateFolder + "/left"

// MarkLeft records before the end whether only the work tree has the work. Otherwise a resumed run
// does not need the work tree.
func (w *Workspace) MarkLeft() error {
	if w.left {
		return w.rec.Write(leftFile, nil)
	}
	w.rec.Remove(leftFile)
	return nil
}

// LeftInTree reports whether an ended run's work is only in its work tree.
func LeftInTree(d *record.Directory) bool { return d.Has(leftFile) }

// KeepsTree reports whether to keep the work tree after the end: it alone has the work, or the
// unrecorded end makes the run resumable.
func (w *Workspace) KeepsTree(recorded bool) bool {
	return w.tree != nil && (w.left || !recorded)
}

// UseTree says what commands work in. It is made, unless a run that goes on has found it.
func (w *Workspace) UseTree(ctx context.Context, t Tree) error {
	w.tree = t
	if err := t.Take(); err != nil {
		return err
	}
	switch {
	case w.snapshot == nil:
		return w.makeTree(ctx)
	case !t.Private() && !w.based():
		return nil
	}
	if made, _ := w.rec.MadeTree(); t.Private() && made.Seen != t.Seen() {
		return CannotResume("its commands found their work tree at %s, where they may have installed from, and would find it at %s here; resume it where commands are confined as they were", made.Seen, t.Seen())
	}
	return w.in(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) error {
		now, err := c.Snapshot(ctx)
		if err == nil {
			w.begun = w.begun.At(now)
		}
		return err
	})
}

// madeTreeElsewhere returns the private tree's place outside the run directory, or "".
func (w *Workspace) madeTreeElsewhere() string {
	made, _ := w.rec.MadeTree()
	return made.Folder
}

func (w *Workspace) makeTree(ctx context.Context) (err error) {
	if err := errors.Join(w.tree.Drop(OfSetup), w.tree.Drop(OfAgent)); err != nil { // of a run that was killed
		return err
	}
	if err := w.lookAtCheckout(ctx); err != nil {
		return err
	}
	if w.tree.Private() {
		if err := w.makePrivate(ctx); err != nil {
			return err
		}
		w.warnOfSubmodules()
		return nil
	}
	if w.begun = w.snapshot; w.based() {
		if err := w.layBase(ctx); err != nil {
			return err
		}
		w.warnOfSubmodules()
	}
	return w.makeGit(ctx)
}

// warnOfSubmodules names submodules that commands see at another commit than the base's.
func (w *Workspace) warnOfSubmodules() {
	if paths := w.begun.SubmodulesElsewhere(); len(paths) > 0 {
		w.rec.Warn("submodule_elsewhere", "Commands see submodules at the commit of the checkout, which is not the base's (%s); run git submodule update in setup, or check the base out before the run.", markdown.SomeFiles(paths))
	}
}

// layBase puts the base into an overlay of the checkout, below what setup commands make.
func (w *Workspace) layBase(ctx context.Context) error {
	layer, err := w.tree.Open(ctx, OfSetup)
	if err != nil {
		return fmt.Errorf("open the work tree: %w", err)
	}
	w.begun, err = w.checkout.LayBase(ctx, layer, w.snapshot)
	return errors.Join(err, layer.Close())
}

func (w *Workspace) makePrivate(ctx context.Context) (err error) {
	var unread []string
	w.begun, unread, err = w.checkout.MakePrivateTree(ctx, gitops.PrivateTree{Dir: w.tree.Folder(), Snapshot: w.snapshot})
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
		err = w.rec.PutMadeTree(w.tree.Folder(), w.tree.Seen())
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
	_, _, err := w.checkout.In(from).MakePrivateTree(ctx, gitops.PrivateTree{Dir: to, Snapshot: w.begun})
	return err
}

// Untouched says whether the checkout is on disk as commands see it: they work in an
// overlay of it and have changed nothing.
func (w *Workspace) Untouched() bool {
	return !w.tree.Private() && !w.tree.Any(OfSetup) && !w.tree.Any(OfAgent)
}

// in does something with the work tree as commands left it.
func (w *Workspace) in(ctx context.Context, of Changes, do func(*gitops.Checkout, *os.Root) error) error {
	layer, err := w.tree.Open(ctx, of)
	if err != nil {
		return fmt.Errorf("open the work tree: %w", err)
	}
	return errors.Join(do(w.checkout.In(layer), layer.Tree), layer.Close())
}

// NoOverlay returns the reason against an overlay known to git, or "".
func (w *Workspace) NoOverlay(ctx context.Context) (why string, err error) {
	return w.checkout.Unlayered(ctx, uint32(os.Geteuid()), uint32(os.Getegid()))
}

// Share admits other runs to the checkout, if this one only changes it at its end.
func (w *Workspace) Share(ctx context.Context) error {
	if w.shared {
		return nil
	}
	return CheckoutFailure(w.checkout.Share(ctx))
}

// KeepAlone verifies that a run whose commands change the checkout is alone there.
func (w *Workspace) KeepAlone() error {
	w.shared = false
	return CheckoutFailure(w.checkout.Claim())
}

// makeGit gives commands in an overlay a .git of their own, on the base.
func (w *Workspace) makeGit(ctx context.Context) error {
	if w.tree == nil || w.tree.Private() {
		return nil
	}
	return w.MakeGit(ctx, w.tree.Git(OfSetup))
}

// MakeGit makes a .git on the base commit in a folder; none before UseTree.
func (w *Workspace) MakeGit(ctx context.Context, dir string) error {
	if w.begun == nil {
		return nil
	}
	folder := gitops.GitFolder{Dir: dir, Shown: w.Shown(w.base, w.base.Tree, &gitops.Head{})}
	err := w.checkout.MakeGitFolder(ctx, folder)
	if err == nil {
		err = w.checkout.Stage(ctx, folder, nil)
	}
	return err
}

// giveGit gives the agent in an overlay setup's .git.
func (w *Workspace) giveGit(ctx context.Context) error {
	if w.tree == nil || w.tree.Private() {
		return nil
	}
	return w.tree.GiveGit(ctx)
}

// takeSetup treats setup's files as existing before the agent, and returns changed tracked files.
func (w *Workspace) takeSetup(ctx context.Context) (changed []string, err error) {
	if !w.tree.Any(OfSetup) {
		return nil, nil
	}
	err = w.in(ctx, OfSetup, func(c *gitops.Checkout, _ *os.Root) (err error) {
		if changed, err = c.DirtySince(ctx, w.begun); err != nil {
			return err
		}
		w.begun, err = c.WithLayer(ctx, w.begun)
		if err == nil {
			w.snapshot = w.snapshot.Covering(w.begun)
		}
		return err
	})
	return changed, err
}

// Shown describes a tree on a base for commands, with HEAD of its .git.
func (w *Workspace) Shown(base gitops.Base, tree gitops.Tree, head *gitops.Head) gitops.Shown {
	return gitops.Shown{Tree: tree, Base: base, Head: head, Snapshot: w.begun}
}
