package confine

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/place/services"
)

// resolveServices checks the job's services and that their sandboxes can be opened.
func (s *Sandboxes) resolveServices(ctx context.Context) error {
	if err := s.services.Resolve(ctx, s.Record, s.Job, s.level()); err != nil || s.services.IsEmpty() {
		return err
	}
	place := Place{Scratch: ProbeScratch, Services: true}
	defer s.Remove(place) // what can't be removed is removed with the run's working files
	box, err := s.Open(ctx, place)
	if err != nil {
		return err
	}
	return errors.Join(s.services.TrySandboxes(ctx, s.serviceCommands(box, place, "")), box.Close())
}

// Serve starts new services for a place's sandbox and waits until all are ready. dir is the
// commands' folder. It returns nil if the place's commands can reach none.
func (s *Sandboxes) Serve(ctx context.Context, box *sandbox.Sandbox, p Place, dir string) (services.Running, error) {
	if !s.reachesServices(p) {
		return nil, nil
	}
	return s.services.Start(ctx, s.serviceCommands(box, p, dir))
}

// reachesServices reports whether a place's commands can reach the job's services.
func (s *Sandboxes) reachesServices(p Place) bool {
	hasLoopback := p.Network.IsZero() || p.Network.HasList() || p.Network.Mode == string(sandbox.NetworkLoopback)
	return p.Services && !s.services.IsEmpty() && hasLoopback
}

// serviceCommands describes a place's commands to their services.
func (s *Sandboxes) serviceCommands(box *sandbox.Sandbox, p Place, dir string) services.Commands {
	return services.Commands{
		Name: p.Scratch, Box: box, Dir: dir, Env: s.envForTree(s.SandboxPath(p)), LendsTree: s.Overlaid(), ScratchFolder: s.Record.Join(ScratchFolder),
		OpenSandbox: func(ctx context.Context, scratch string, tree *os.File, as *sandbox.User) (*sandbox.Sandbox, error) {
			return s.openService(ctx, p, scratch, tree, as)
		},
	}
}

// openService opens the sandbox of a service for a place's commands.
func (s *Sandboxes) openService(ctx context.Context, p Place, scratch string, tree *os.File, as *sandbox.User) (*sandbox.Sandbox, error) {
	servicePlace := p
	servicePlace.Scratch = scratch
	if err := sandbox.RemoveScratch(s.scratchPath(servicePlace)); err != nil { // left by a killed run
		return nil, err
	}
	if _, err := s.Record.MakeFolder(filepath.Join(ScratchFolder, scratch, "tmp", services.DataFolder)); err != nil {
		return nil, err
	}
	f := s.fileAccess(servicePlace)
	// The lent tree already has what setup commands changed in the user's folder.
	f.Mode, f.EarlierScratch, f.Readable = grants.ReadOnly, nil, nil
	o := sandbox.Options{Network: sandbox.NetworkLoopback, At: s.level()}
	o.User = as
	if tree != nil {
		o.Borrowed, o.BorrowedFrom = tree, s.overlayFolderOf(p)
		f.Overlay, f.LowerLayers, f.Git, f.RemoveHidden, f.BorrowedFolders = "", nil, "", false, nil
	}
	o.Folders = f
	box, err := sandbox.Open(ctx, o)
	if err != nil {
		return nil, openFailure(o, err)
	}
	return box, nil
}

// sharing returns the ports of the job's services, and how often the place's sandbox lends its work tree to
// services and sidecars.
func (s *Sandboxes) sharing(p Place, overlaid bool) (shared sandbox.Sharing) {
	if p.LendsWorkspace && overlaid {
		shared.LendToRead, shared.LendToWrite = s.countLentMounts()
	}
	if !s.reachesServices(p) {
		return shared
	}
	shared.Ports = s.services.Ports()
	if overlaid {
		shared.LendToRead += s.services.StartedCount()
	}
	return shared
}
