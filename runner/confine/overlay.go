package confine

import (
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
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
)

// The ways in which commands work on the checkout: in an overlay, which leaves it as
// it is, or in the checkout itself.
const (
	InOverlay  = "overlay"
	InCheckout = "checkout"
)

// Overlaid says whether commands work in an overlay; false while that is not known.
func (s *Sandboxes) Overlaid() bool { return s.reached.WorkTree == InOverlay }

// WhyNoOverlay says why commands work in the checkout itself; empty where they don't,
// or where the job wants it so.
func (s *Sandboxes) WhyNoOverlay() string { return s.noOverlay }

// overlay is the folder that the changes of a place go to.
func (s *Sandboxes) overlay(p Place) string {
	return s.Record.Join(ScratchFolder, p.changes(), overlayFolder)
}

// overlayFolder of a scratch folder has the changes of an overlay.
const overlayFolder = "tree"

// changes names the place whose changes of the checkout commands see and add to.
func (p Place) changes() string {
	if p.Changes != "" {
		return p.Changes
	}
	return p.Scratch
}

// ChangesOf is the folder in which the kernel keeps what commands of a place changed.
func (s *Sandboxes) ChangesOf(p Place) string { return grants.Upper(s.overlay(p)) }

// LeftOverlay says whether a run that was left has an overlay with what its agent did.
func LeftOverlay(d *record.Directory) bool {
	return d.Has(ScratchFolder + "/" + AgentScratch + "/" + overlayFolder)
}

// frozen are the changes below those of a place, the latest first: leftovers, and what setup commands
// made, which every later place sees.
func (s *Sandboxes) frozen(p Place) (all []string) {
	if p.Leftovers {
		all = append(all, s.overlay(Place{Scratch: p.Caches}))
	}
	setup := s.overlay(Place{Scratch: SetupScratch})
	if _, err := os.Lstat(setup); err == nil && s.overlay(p) != setup {
		all = append(all, setup)
	}
	return all
}

// tryOverlay finds out whether commands can work in an overlay, and how they are
// confined then. The job may want neither.
func (s *Sandboxes) tryOverlay(ctx context.Context) error {
	s.reached.WorkTree = InCheckout
	switch {
	case s.WorkIn == InCheckout || s.NoOverlay == nil:
		return nil
	case s.unconfined() && s.WorkIn != InOverlay: // that they are is told
		return nil
	case s.unconfined():
		return s.withoutOverlay("policy.sandbox is danger-full-access, which mounts nothing")
	case s.Job.Policy.Sandbox == string(grants.ReadOnly):
		return s.withoutOverlay("policy.sandbox is read-only, where patches alone change files")
	}
	why, err := s.NoOverlay(ctx)
	if err != nil {
		return err
	}
	if why == "" {
		if mounts := grants.MountsBelow(s.Root); len(mounts) > 0 {
			why = mounts[0] + " is a mount in the checkout"
		}
	}
	if why == "" {
		s.reached.WorkTree = InOverlay
		return nil
	}
	return s.withoutOverlay(why)
}

// withoutOverlay has commands work in the checkout itself, unless the job demands an
// overlay.
func (s *Sandboxes) withoutOverlay(why string) error {
	s.reached.WorkTree, s.noOverlay = InCheckout, why
	if s.WorkIn != InOverlay {
		return nil
	}
	remedy := "set work_in to auto or checkout"
	if s.Job.WorkIn != InOverlay { // the run worked in one before it was stopped
		remedy = "start a new run"
	}
	return outcome.Stopf(outcome.SandboxUnavailable, "overlay",
		"Commands can't work in an overlay of the checkout here (%s); mend that, or %s.", why, remedy)
}

// FindWorkTree finds out how commands are confined, and whether they work in an
// overlay.
func (s *Sandboxes) FindWorkTree(ctx context.Context) error {
	if err := s.tryOverlay(ctx); err != nil {
		return err
	}
	reached, overlaid, err := s.probe(ctx, Agent())
	var refused *sandbox.OverlayError
	switch {
	case errors.As(err, &refused):
		err = s.withoutOverlay("the kernel gives none with its changes in the run directory: " + refused.Why)
		if err == nil {
			reached, _, err = s.probe(ctx, Agent())
		}
	case err == nil && s.Overlaid() && !overlaid:
		err = s.withoutOverlay("it takes namespaces")
	}
	reached.WorkTree = s.reached.WorkTree
	if err == nil {
		s.reached = reached
	}
	return err
}

// OpenLayer opens the checkout as the commands of a place see it, none of which runs.
// The caller closes it before the next sandbox of the place is opened.
func (s *Sandboxes) OpenLayer(ctx context.Context, p Place) (gitops.Layer, error) {
	box, err := s.Open(ctx, p)
	if err != nil {
		return gitops.Layer{}, err
	}
	layer, err := s.LayerOf(box, p)
	return layer, errors.Join(err, box.Close())
}

// Fork gives a new place, whose commands begin with the checkout as those of parent see
// it at this time, and change it for themselves. Those run in box, and are stopped for
// a moment; who writes by their layer must not do so meanwhile. Of what they changed
// elsewhere, in their home and in /tmp, the fork has nothing. Remove forgets it, once
// its own sandbox is closed.
//
// It is refused by a layer.ForkError where commands don't work in an overlay or have
// changed too much, and by a sandbox.PauseError where they can't be stopped.
func (s *Sandboxes) Fork(ctx context.Context, box *sandbox.Sandbox, parent Place, scratch string) (Place, error) {
	if !s.Overlaid() {
		return Place{}, &layer.ForkError{Why: "commands work in the checkout itself, and there is one of it"}
	}
	fork := Place{Scratch: scratch, Network: parent.Network, Key: parent.Key, Commands: parent.Commands}
	_, err := s.Record.MakeFolder(ScratchFolder)
	if err == nil {
		err = os.Mkdir(s.scratch(fork), 0o700) // which nobody else has
	}
	if err != nil {
		return Place{}, fmt.Errorf("fork the workspace: %w", err)
	}
	err = box.Paused(func() error { return layer.Copy(ctx, s.overlay(parent), s.overlay(fork)) })
	if err != nil {
		return Place{}, fmt.Errorf("fork the workspace: %w", errors.Join(err, s.Remove(fork)))
	}
	return fork, nil
}

// CopyScratch begins the scratch folders of copies that agents of a run work on.
const CopyScratch = AgentScratch + "-"

// DropCopies removes the copies that a run which was killed has left.
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

// LayerOf opens the checkout as the commands in a sandbox see it. The caller closes it,
// and changes nothing of it while they may: see sandbox.Paused.
func (s *Sandboxes) LayerOf(box *sandbox.Sandbox, p Place) (gitops.Layer, error) {
	path, err := box.Tree()
	if err != nil {
		return gitops.Layer{}, err
	}
	tree, err := os.OpenRoot(path)
	if err != nil {
		return gitops.Layer{}, fmt.Errorf("open the overlay of the checkout: %w", err)
	}
	upper, err := os.OpenRoot(s.ChangesOf(p))
	if err != nil {
		return gitops.Layer{}, fmt.Errorf("open the overlay of the checkout: %w", errors.Join(err, tree.Close()))
	}
	return gitops.Layer{Tree: tree, Upper: upper}, nil
}

// GitFolder is where a git folder of a place's own belongs.
func (s *Sandboxes) GitFolder(p Place) string {
	return filepath.Join(s.scratch(p), "repository", ".git")
}

// DropChanges forgets what commands of a place changed of the checkout.
func (s *Sandboxes) DropChanges(p Place) error { return sandbox.RemoveScratch(s.overlay(p)) }

// Changed says whether the overlay of a place has any changes.
func (s *Sandboxes) Changed(p Place) bool {
	entries, err := os.ReadDir(s.ChangesOf(p))
	return err == nil && len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
}
