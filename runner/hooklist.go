package runner

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/hooks"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// Checked is a checkout, with the job that a run there would have.
type Checked struct {
	Dir      string
	JobFile  string
	Set      []string
	Operator string // path of the operator's file; empty for none

	Environ  []string
	Reserved []string
	Version  string
}

// HookStatus is a hook that a run here would have.
type HookStatus struct {
	transcript.HookActive
	// Problem says what keeps it from being started, as far as looking tells; empty for nothing.
	Problem string `json:"problem,omitempty"`
}

// ListHooks are the hooks that a run in a checkout would have, and whether they start. Nothing is
// run.
func ListHooks(ctx context.Context, o Checked) (list []HookStatus, err error) {
	err = o.look(ctx, func(in *invocation, ws *workspace.Workspace, set *settings.Settings) (err error) {
		list, err = in.listHooks(ctx, o.Operator, ws, set)
		return err
	})
	return list, err
}

// look shows the base commit of a checkout, and the settings that a run there would have, with
// a record that is gone after that.
func (o Checked) look(ctx context.Context, at func(in *invocation, ws *workspace.Workspace, set *settings.Settings) error) error {
	in := newInvocation("", settings.Given{JobFile: o.JobFile, Set: o.Set}, Surroundings{Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Quiet: true})
	return in.inScratch(func() error {
		ws, err := in.openBase(ctx, o.Dir)
		if err != nil {
			return err
		}
		defer ws.Close()
		set, err := in.source.LoadTemplate(ctx, ws.Commit())
		if err != nil {
			return err
		}
		return at(in, ws, set)
	})
}

// inScratch does something with a record in a temporary folder.
func (in *invocation) inScratch(do func() error) error {
	folder, err := os.MkdirTemp("", "agent-ci-look-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer sandbox.RemoveScratch(folder)
	if err := in.rec.Make(folder, nil); err != nil {
		return err
	}
	defer in.rec.Close()
	return do()
}

// openBase opens a checkout on its base commit. The caller closes it.
func (in *invocation) openBase(ctx context.Context, dir string) (*workspace.Workspace, error) {
	ws, err := workspace.Open(ctx, in.rec, workspace.Options{Dir: dir, Path: in.env.Get("PATH"), Forge: in.server(), OpenFilter: in.earlyFilters()})
	if err != nil {
		return nil, workspace.CheckoutFailure(err)
	}
	if err := ws.StartOn(ctx, ""); err != nil {
		return nil, errors.Join(workspace.CheckoutFailure(err), ws.Close())
	}
	return ws, nil
}

func (in *invocation) listHooks(ctx context.Context, operatorFile string, ws *workspace.Workspace, set *settings.Settings) (list []HookStatus, err error) {
	operators, err := settings.ReadOperatorFile(ctx, operatorFile, ws.Root())
	if err != nil {
		return nil, err
	}
	all, err := hooks.Collect(operators, set.Job.Hooks, ws.Commit().ReadBase, in.env.Get("HOME"))
	if err != nil || len(all) == 0 {
		return nil, err
	}
	tree, err := ws.BaseTree()(ctx)
	if err != nil {
		return nil, err
	}
	boxes := confine.Sandboxes{Record: in.rec, Environ: in.env, Job: &set.Job, Root: ws.Root()}
	rooms := hooks.Rooms{Environ: in.env, Changeable: boxes.Changeable()}
	for i, active := range hooks.Listed(all).Hooks {
		status := HookStatus{HookActive: active}
		if err := all[i].Starts(rooms, tree); err != nil {
			status.Problem = err.Error()
		}
		list = append(list, status)
	}
	return list, nil
}
