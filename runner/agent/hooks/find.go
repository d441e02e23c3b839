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

// Find returns the operator's and the job's hooks for a run of j on base. operatorFile is "" if the operator
// has no hooks. home is the user's folder.
func Find(ctx context.Context, operatorFile string, j *job.Job, base settings.Commit, home string) ([]Hook, error) {
	operators, err := settings.ReadOperatorFile(ctx, operatorFile, base.Root())
	if err != nil {
		return nil, err
	}
	return Combine(operators, j.Hooks, base.ReadBase, home)
}

// New returns the hooks of a run, which run in sandboxes of boxes. It returns nil if there are none. root is
// the agent's working tree. Hooks can read the workspace and the base tree. They have no network access.
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
		Facts: Facts{
			RunID: boxes.Record.ID, Model: boxes.Job.Model.Name, Path: folder, WorkDir: path.Join(root, folder), Transcript: boxes.Record.Join(record.TranscriptFile),
		},
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

// RecordList records the run's hooks.
func (h *Hooks) RecordList() error {
	if h == nil {
		return nil
	}
	return h.Record.Append(transcript.TypeHooks, ForTranscript(h.All))
}
