package hooks

import (
	"context"
	"path"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Find returns the hooks of the operator and of the job j for a run on the commit base. operatorFile is "" if the
// operator has no hooks. home is the user's home folder.
func Find(ctx context.Context, operatorFile string, j *job.Job, base settings.Commit, home string) ([]Hook, error) {
	operators, err := settings.ReadOperatorFile(ctx, operatorFile, base.Root())
	if err != nil {
		return nil, err
	}
	return Combine(operators, j.Hooks, base.ReadBase, home)
}

// New returns the hooks of a run, or nil if there are none. They run in sandboxes opened by boxes, where they can read
// the workspace and the base tree but have no network access. root is the folder of the agent's work tree.
func New(all []Hook, boxes *confine.Sandboxes, root string) *Hooks {
	if len(all) == 0 {
		return nil
	}
	if sandbox.Level(boxes.Confinement().Level) == sandbox.LevelNone {
		boxes.Record.Warn("hooks_unconfined", "Nothing confines the hooks of this run or protects their files from commands: policy.sandbox is danger-full-access.")
	}
	folder := path.Clean(boxes.Job.Repository.Path)
	return &Hooks{
		All: all, Record: boxes.Record,
		Facts: Facts{Model: boxes.Job.Model.Name, Path: folder, WorkDir: path.Join(root, folder)},
		Sandboxes: SandboxProvider{
			Environ: boxes.Environ, BaseTree: boxes.BaseTree, WritableByCommands: boxes.WritableFolders(),
			Open: func(ctx context.Context, agent *sandbox.Sandbox) (*sandbox.Sandbox, error) {
				// A hook must not run files that setup installed: they may come from a pull request, or be links
				// into the workspace.
				return boxes.OpenSidecar(ctx, agent, confine.Sidecar{Name: "hooks", Workspace: confine.SidecarRead, BaseTree: true, WithoutSetupFiles: true})
			},
		},
	}
}

// RecordList records which hooks the run has.
func (h *Hooks) RecordList() error {
	if h == nil {
		return nil
	}
	list := transcript.Hooks{Hooks: []transcript.ActiveHook{}}
	for _, hook := range h.All {
		list.Hooks = append(list.Hooks, hook.ActiveHook)
	}
	return h.Record.Append(list)
}
