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

func (r *run) hideMore(ctx context.Context) error { return r.boxes.HideMore(ctx) }
func (r *run) network() string                    { return r.boxes.Network() }
func (r *run) removeScratch(name string)          { r.rec.Remove(filepath.Join(confine.ScratchFolder, name)) }
func (r *run) absolute(paths []string) []string   { return r.env.Absolute(r.root(), paths) }
func (r *run) linkPatchTool()                     { r.boxes.LinkProgram("apply_patch") }

// root is the folder that commands may change: the checkout, or the folder of
// a command that has none.
func (r *run) root() string {
	if r.checkout != nil {
		return r.checkout.Root()
	}
	return r.options.Dir
}
