package hooks

import (
	"context"
	"path"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Find returns the hooks that a run of j on base has: those of the operator's file, which may be
// empty, and those of the job. home is the user's folder.
func Find(ctx context.Context, operatorFile string, j *job.Job, base settings.Commit, home string) ([]Hook, error) {
	operators, err := settings.ReadOperatorFile(ctx, operatorFile, base.Root())
	if err != nil {
		return nil, err
	}
	return Collect(operators, j.Hooks, base.ReadBase, home)
}

// New returns the hooks of the run that boxes confine; nil for none. root is where the agent works.
// They read the workspace and the base tree, and reach nothing.
func New(all []Hook, boxes *confine.Sandboxes, root string) *Hooks {
	if len(all) == 0 {
		return nil
	}
	if sandbox.Level(boxes.Reached().Level) == sandbox.LevelNone {
		boxes.Record.Warn("hooks_unconfined", "Nothing confines the hooks of this run or protects their files from commands: policy.sandbox is danger-full-access.")
	}
	folder := path.Clean(boxes.Job.Repository.Path)
	return &Hooks{
		All: all, Record: boxes.Record,
		Facts: Facts{
			RunID: boxes.Record.ID, Model: boxes.Job.Model.Name, Root: root, Path: folder, WorkDir: path.Join(root, folder), Transcript: boxes.Record.Join(record.TranscriptFile),
		},
		Rooms: Rooms{
			Environ: boxes.Environ, BaseTree: boxes.BaseTree, Changeable: boxes.Changeable(),
			Open: func(ctx context.Context, agent *sandbox.Sandbox) (*sandbox.Sandbox, error) {
				// What setup commands installed may lead into the workspace, or be of a pull request.
				return boxes.OpenBeside(ctx, agent, confine.Beside{Name: "hooks", Workspace: confine.BesideRead, BaseTree: true, Bare: true})
			},
		},
	}
}

// List records which hooks the run has.
func (h *Hooks) List() error {
	if h == nil {
		return nil
	}
	return h.Record.Append(transcript.TypeHooks, Listed(h.All))
}
