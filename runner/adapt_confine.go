package runner

import (
	"context"
	"path/filepath"

	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

var programsFolder = confine.ProgramsFolder

// newBoxes makes the sandboxes of the checkout that the run works in.
func (r *run) newBoxes() *confine.Sandboxes {
	r.boxes = &confine.Sandboxes{
		Record: r.rec, Environ: r.env, Job: r.job, Rules: r.rules, Root: r.checkout.Root(), Dir: r.options.Dir, Known: r.hidden, LeaveOut: r.ws().LeaveOut,
	}
	return r.boxes
}

func (r *run) confine(ctx context.Context) error {
	boxes := r.newBoxes()
	if err := r.inWorkspace(func(*workspace.Workspace) error { return boxes.Confine(ctx) }); err != nil {
		return err
	}
	r.confined = r.boxes.Reached()
	r.warnOfOwner()
	if err := r.boxes.ConfineSetup(ctx); err != nil {
		return err
	}
	return r.markGit(ctx)
}

func (r *run) denied() int {
	if r.boxes == nil {
		return 0
	}
	return r.boxes.Denied()
}

func (r *run) network() string                  { return r.boxes.Network() }
func (r *run) confinementWords() string         { return r.boxes.Words() }
func (r *run) networkWords() string             { return r.boxes.NetworkWords() }
func (r *run) removeScratch(name string)        { r.rec.Remove(filepath.Join(confine.ScratchFolder, name)) }
func (r *run) absolute(paths []string) []string { return r.env.Absolute(r.checkout.Root(), paths) }
func (r *run) linkPatchTool()                   { r.boxes.LinkProgram(patchTool) }
