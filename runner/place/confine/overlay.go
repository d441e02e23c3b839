package confine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// The backings of the work tree: an overlay of the checkout, or a copy of it. Commands outside runs
// work in the folder itself and have no backing.
const (
	InOverlay   = "overlay"
	PrivateTree = "private"
)

// Overlaid reports whether the work tree is an overlay. It is false before that is decided.
func (s *Sandboxes) Overlaid() bool { return s.confinement.WorkTree == InOverlay }

// Private reports whether the work tree is a copy of the checkout. It is false before that is
// decided.
func (s *Sandboxes) Private() bool { return s.confinement.WorkTree == PrivateTree }

// WhyNoOverlay returns why there is no overlay. It is "" if there is one, or if nothing confines
// commands.
func (s *Sandboxes) WhyNoOverlay() string { return s.private.reason }

// treeFolder returns the folder of the private tree.
func (s *Sandboxes) treeFolder() string {
	if s.private.path != nil {
		return s.private.path.treeFolder()
	}
	return s.Record.Join(record.PrivateTree)
}

// SandboxPath returns the work tree's path for a place's commands. With mount namespaces, it is the
// checkout's path.
func (s *Sandboxes) SandboxPath(p Place) string {
	if s.AllowsConcurrent() {
		return s.Root
	}
	return s.writableRoot(p)
}

// overlayFolderOf returns the folder of a place's overlay.
func (s *Sandboxes) overlayFolderOf(p Place) string {
	return s.Record.Join(ScratchFolder, p.changesScratch(), overlayFolder)
}

// overlayFolder is the folder of the overlay in a scratch folder.
const overlayFolder = "tree"

// changesScratch returns the scratch folder of the place whose changes the commands see and extend.
func (p Place) changesScratch() string {
	if p.Changes != "" {
		return p.Changes
	}
	return p.Scratch
}

// ChangesFolder returns the folder of a place's changes: an overlay's layer, or the whole tree.
func (s *Sandboxes) ChangesFolder(p Place) string {
	if !s.Overlaid() {
		return s.writableRoot(p)
	}
	return grants.Upper(s.overlayFolderOf(p))
}

// HasWorkTree reports whether an interrupted run still has the work tree with its agent's work.
func HasWorkTree(d *record.Directory) bool {
	return d.Has(ScratchFolder+"/"+AgentScratch+"/"+overlayFolder) || hasPrivateTree(d)
}

// hasPrivateTree reports whether a run still has its complete private tree. The tree's .git is no
// sign of that, because commands can write it.
func hasPrivateTree(d *record.Directory) bool {
	made, isRecorded := d.FindPrivateTree()
	if !isRecorded {
		return false
	}
	if made.Folder == "" {
		return d.Has(record.PrivateTree)
	}
	return (&treePath{dir: filepath.Dir(made.Folder), runDir: withoutLinks(d.Path())}).hasTree()
}

// lowerLayers returns the layers below a place's changes, latest first: kept leftovers, and setup's
// layer, which all later places see.
func (s *Sandboxes) lowerLayers(p Place) (all []string) {
	if p.Leftovers {
		all = append(all, s.overlayFolderOf(Place{Scratch: p.Caches}))
	}
	setup := s.overlayFolderOf(Place{Scratch: SetupScratch})
	if _, err := os.Lstat(setup); err == nil && s.overlayFolderOf(p) != setup {
		all = append(all, setup)
	}
	return all
}

// chooseTree decides whether the work tree is an overlay or a copy of the checkout, before any sandbox is
// opened.
func (s *Sandboxes) chooseTree(ctx context.Context) error {
	s.confinement.WorkTree = ""
	switch {
	case s.Checkout == nil:
		return nil
	case s.Earlier.Backing != "" && s.Earlier.Backing != InOverlay:
		return s.usePrivate("the run began so")
	case s.isUnconfined(): // no reason is needed: the user chose it
		return s.usePrivate("")
	case s.Job.Policy.Sandbox == string(grants.ReadOnly):
		return s.usePrivate("policy.sandbox is read-only, where patches alone change files")
	}
	why, err := s.Checkout.NoOverlay(ctx)
	if err != nil {
		return err
	}
	if mounts := grants.MountsBelow(s.Root); why == "" && len(mounts) > 0 {
		why = mounts[0] + " is a mount in the checkout"
	}
	if why != "" {
		return s.usePrivate(why)
	}
	s.confinement.WorkTree = InOverlay
	return nil
}

// usePrivate makes the work tree a copy of the checkout, and stores why. It fails if a resumed run has its
// work in an overlay.
func (s *Sandboxes) usePrivate(why string) error {
	if s.Earlier.Backing == InOverlay {
		return outcome.Stopf(outcome.SandboxUnavailable, "overlay",
			"The work of the run is in an overlay of the checkout, and this machine supports none (%s); fix that, or start a new run.", cmp.Or(why, "nothing confines commands"))
	}
	s.confinement.WorkTree, s.private.reason = PrivateTree, why
	_, err := s.Record.MakeFolder(record.PrivateTree)
	return err
}

// FindWorkTree finds out the confinement and the work tree's backing. If the sandbox can't use an
// overlay, it chooses a copy. begun is a process of Begin for the first sandbox, or nil.
func (s *Sandboxes) FindWorkTree(ctx context.Context, begun *sandbox.EarlyProcess) error {
	if err := s.chooseTree(ctx); err != nil {
		return err
	}
	reached, overlaid, err := s.probeConfinement(ctx, AgentPlace().egressCommands(), begun)
	if s.Overlaid() && (err != nil || !overlaid) {
		why := "it takes namespaces"
		if refused := (*sandbox.OverlayError)(nil); errors.As(err, &refused) {
			why = "the kernel gives none with its changes in the run directory: " + refused.Why
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.usePrivate(why); err != nil {
			return err
		}
		reached, _, err = s.probeConfinement(ctx, AgentPlace().egressCommands(), nil)
	}
	reached.WorkTree = s.confinement.WorkTree
	if err == nil {
		s.confinement = reached
	}
	return err
}

// dropTree removes the private tree so that a new one can be made.
func (s *Sandboxes) dropTree() error {
	s.removeEarlierTree()
	s.Record.Remove(record.PrivateTreeFile)
	if s.private.path != nil {
		return s.private.path.removeTree()
	}
	return sandbox.RemoveScratch(s.treeFolder())
}

// removeEarlierTree removes this run's tree at the path of another checkout, where the run began.
// Errors are ignored: the tree is removed later, after the run directory.
func (s *Sandboxes) removeEarlierTree() {
	made, _ := s.Record.FindPrivateTree()
	earlier := &treePath{dir: filepath.Dir(made.Folder), runDir: withoutLinks(s.Record.Path())}
	isCurrent := s.private.path != nil && s.private.path.dir == earlier.dir
	if made.Folder == "" || isCurrent || !earlier.hasTree() {
		return
	}
	_ = sandbox.RemoveScratch(filepath.Dir(earlier.asidePath(earlier.runDir)))
	_ = earlier.removeOwnerless(func() bool { return earlier.owner() == earlier.runDir })
}

// RemoveTreeAtEnd removes the private tree, and frees its path for other runs.
func (s *Sandboxes) RemoveTreeAtEnd() error {
	if s.private.path != nil {
		return s.private.path.removeTreeAtEnd()
	}
	return s.dropTree()
}

// MoveTreeAside frees the path of the agent's private tree for a check's tree; back removes that and
// restores the agent's. It does nothing if sandboxes can show a check's tree at that path. No command may
// run meanwhile.
func (s *Sandboxes) MoveTreeAside() (back func() error, err error) {
	if !s.Private() || s.AllowsConcurrent() {
		return func() error { return nil }, nil
	}
	if s.private.path == nil {
		return nil, errors.New("set the tree of the agent aside: it has no path yet")
	}
	if err := s.private.path.moveAside(s.private.path.runDir); err != nil {
		return nil, fmt.Errorf("set the tree of the agent aside: %w", err)
	}
	return func() error {
		if err := s.private.path.restoreTree(); err != nil {
			return fmt.Errorf("put the tree of the agent back: %w", err)
		}
		return nil
	}, nil
}

// CloseAgent closes a sandbox of AgentPlace. It keeps the overlay open for the next OpenLayer, which then
// needs no sandbox, until someone asks for the options of another sandbox with an overlay.
func (s *Sandboxes) CloseAgent(box *sandbox.Sandbox) error {
	if !s.Overlaid() || box.Level() == sandbox.LevelNone {
		return box.Close()
	}
	layer, err := s.LayerOf(box, AgentPlace())
	closeErr := box.Close()
	switch {
	case err != nil: // OpenLayer opens a sandbox
	case closeErr != nil: // processes may still write
		_ = layer.Close()
	default:
		s.agentLayer.Store(&layer)
	}
	return closeErr
}

// OpenLayer opens the work tree as a place's commands see it. No command may run. Close it before
// you open the place's next sandbox.
func (s *Sandboxes) OpenLayer(ctx context.Context, p Place) (gitops.Layer, error) {
	if !s.Overlaid() {
		return s.LayerOf(nil, p)
	}
	if p.changesScratch() == AgentScratch {
		if kept := s.agentLayer.Swap(nil); kept != nil {
			return *kept, nil
		}
	}
	box, err := s.Open(ctx, p)
	if err != nil {
		return gitops.Layer{}, err
	}
	layer, err := s.LayerOf(box, p)
	return layer, errors.Join(err, box.Close())
}

// Fork returns a new place. Its commands begin with parent's view of the checkout, and their changes are
// private. Fork pauses parent's commands, which run in box. Nobody else may write to parent's layer
// meanwhile. The fork has nothing of parent's home or /tmp. Remove it after you close its sandbox.
//
// Fork returns a layer.ForkError if the changes are too large or the disk is too small. It returns
// a sandbox.PauseError if commands cannot be paused.
func (s *Sandboxes) Fork(ctx context.Context, box *sandbox.Sandbox, parent Place, scratch string) (Place, error) {
	fork := Place{Scratch: scratch, Network: parent.Network, Key: parent.Key, CommandKind: parent.CommandKind}
	_, err := s.Record.MakeFolder(ScratchFolder)
	if err == nil {
		err = os.Mkdir(s.scratchPath(fork), 0o700) // fails if another place has the folder
	}
	if err != nil {
		return Place{}, fmt.Errorf("fork the workspace: %w", err)
	}
	if !s.Overlaid() {
		fork.Root = filepath.Join(s.scratchPath(fork), overlayFolder)
	}
	if err = s.WhilePaused(box, func() error { return s.copyChanges(ctx, parent, fork) }); err != nil {
		return Place{}, fmt.Errorf("fork the workspace: %w", errors.Join(err, s.Remove(fork)))
	}
	return fork, nil
}

// copyChanges copies a place's changes of the checkout to a new fork.
func (s *Sandboxes) copyChanges(ctx context.Context, from, fork Place) error {
	if !s.Overlaid() {
		return s.copyTree(ctx, from, fork.Root)
	}
	if err := s.copyGit(ctx, from, fork); err != nil {
		return err
	}
	return layer.Copy(ctx, s.overlayFolderOf(from), s.overlayFolderOf(fork))
}

// WhilePaused runs do while the sandbox's commands are paused. Without namespaces it cannot pause
// them.
func (s *Sandboxes) WhilePaused(box *sandbox.Sandbox, do func() error) error {
	if !s.AllowsConcurrent() {
		return do()
	}
	return box.Paused(do)
}

// copyTree copies a place's private tree to a folder.
func (s *Sandboxes) copyTree(ctx context.Context, of Place, to string) error {
	from, err := s.LayerOf(nil, of)
	if err != nil {
		return err
	}
	err = s.Checkout.CopyTree(ctx, from, to)
	if short := (*gitops.SpaceError)(nil); errors.As(err, &short) {
		err = &layer.ForkError{Why: short.Error()}
	}
	return errors.Join(err, from.Close())
}

// CopyScratch is the prefix of the scratch folders of copies of the agent.
const CopyScratch = AgentScratch + "-"

// DropCopies removes the copies of agents that a killed run left.
func (s *Sandboxes) DropCopies() error {
	entries, err := os.ReadDir(s.Record.Join(ScratchFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), CopyScratch) {
			err = errors.Join(err, s.Remove(Place{Scratch: entry.Name()}))
		}
	}
	return err
}

// TreePath returns the path, for this process, of the work tree that a sandbox shows.
func (s *Sandboxes) TreePath(box *sandbox.Sandbox, p Place) (string, error) {
	if !s.Overlaid() {
		return s.writableRoot(p), nil
	}
	return box.Tree()
}

// LayerOf opens the work tree as the commands in a sandbox see it. The caller closes it. Change
// nothing in it while commands may: see sandbox.Paused.
func (s *Sandboxes) LayerOf(box *sandbox.Sandbox, p Place) (gitops.Layer, error) {
	path, err := s.TreePath(box, p)
	if err != nil {
		return gitops.Layer{}, err
	}
	tree, err := os.OpenRoot(path)
	if err != nil {
		return gitops.Layer{}, fmt.Errorf("open the work tree: %w", err)
	}
	if !s.Overlaid() {
		return gitops.Layer{Tree: tree}, nil
	}
	upper, err := os.OpenRoot(s.ChangesFolder(p))
	if err != nil {
		return gitops.Layer{}, fmt.Errorf("open the work tree: %w", errors.Join(err, tree.Close()))
	}
	return gitops.Layer{Tree: tree, Upper: upper, GitDir: s.GitFolder(p)}, nil
}

// GitFolder returns the path of a place's .git, for an overlay. Commands may write to it, so
// agent-ci only copies it for other commands.
func (s *Sandboxes) GitFolder(p Place) string {
	return s.Record.Join(ScratchFolder, p.changesScratch(), "repository", ".git")
}

// copyGit copies the .git of one place to another. No command may run.
func (s *Sandboxes) copyGit(ctx context.Context, from, to Place) error {
	if _, err := os.Lstat(s.GitFolder(from)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	oldGit, newGit := s.GitFolder(from), s.GitFolder(to)
	if err := layer.CopyFolder(ctx, filepath.Dir(oldGit), filepath.Dir(newGit), filepath.Base(oldGit)); err != nil {
		return fmt.Errorf("copy .git: %w", err)
	}
	return nil
}

// dropChanges removes a place's changes of the checkout and its .git.
func (s *Sandboxes) dropChanges(p Place) error {
	return errors.Join(sandbox.RemoveScratch(s.overlayFolderOf(p)), sandbox.RemoveScratch(filepath.Dir(s.GitFolder(p))))
}

// HasChanges reports whether a place may have changes in the work tree.
func (s *Sandboxes) HasChanges(p Place) bool {
	if !s.Overlaid() {
		return true
	}
	entries, err := os.ReadDir(s.ChangesFolder(p))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return len(entries) > 0
}
