package runner

import (
	"context"
	"path/filepath"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/confine"
)

var programsFolder = confine.ProgramsFolder

// newBoxes makes the sandboxes of the checkout that the run works in.
func (r *run) newBoxes() *confine.Sandboxes {
	r.boxes = &confine.Sandboxes{Record: r.rec, Environ: r.env, Job: r.job, Rules: r.rules, Root: r.root(), Dir: r.options.Dir, Known: r.hidden}
	if r.checkout != nil {
		r.boxes.LeaveOut = func(found *grants.Secrets) (*grants.Secrets, error) {
			err := r.useHidden(found)
			return r.hidden, err
		}
	}
	return r.boxes
}

func (r *run) confine(ctx context.Context) error {
	if err := r.newBoxes().Confine(ctx); err != nil {
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
func (r *run) confinementWords() string           { return r.boxes.Words() }
func (r *run) networkWords() string               { return r.boxes.NetworkWords() }
func (r *run) removeScratch(name string)          { r.rec.Remove(filepath.Join(confine.ScratchFolder, name)) }
func (r *run) linkPatchTool()                     { r.boxes.LinkProgram(patchTool) }

// root is the folder that commands may change: the checkout, or the folder of
// a command that has none.
func (r *run) root() string {
	if r.checkout != nil {
		return r.checkout.Root()
	}
	return r.options.Dir
}
