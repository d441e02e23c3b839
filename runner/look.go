package runner

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/skills"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/setup/preflight"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
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
	err = o.look(ctx, func(r *runner, ws *workspace.Workspace, set *settings.Settings) (err error) {
		list, err = r.listHooks(ctx, o.Operator, ws, set)
		return err
	})
	return list, err
}

// look shows the base commit of a checkout, and the settings that a run there would have, with
// a record that is gone after that.
func (o Checked) look(ctx context.Context, at func(r *runner, ws *workspace.Workspace, set *settings.Settings) error) error {
	r := newRunner("", settings.Given{JobFile: o.JobFile, Set: o.Set}, Surroundings{Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Quiet: true})
	return r.inScratch(func() error {
		ws, err := r.openBase(ctx, o.Dir)
		if err != nil {
			return err
		}
		defer ws.Close()
		set, err := r.source.LoadTemplate(ctx, ws.Commit())
		if err != nil {
			return err
		}
		return at(r, ws, set)
	})
}

// inScratch does something with a record in a temporary folder.
func (r *runner) inScratch(do func() error) error {
	folder, err := os.MkdirTemp("", "agent-ci-look-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer sandbox.RemoveScratch(folder)
	if err := r.rec.Make(folder, nil); err != nil {
		return err
	}
	defer r.rec.Close()
	return do()
}

// openBase opens a checkout on its base commit. The caller closes it.
func (r *runner) openBase(ctx context.Context, dir string) (*workspace.Workspace, error) {
	ws, err := workspace.Open(ctx, r.rec, r.at(dir))
	if err != nil {
		return nil, workspace.CheckoutFailure(err)
	}
	if err := ws.StartOn(ctx, ""); err != nil {
		return nil, errors.Join(workspace.CheckoutFailure(err), ws.Close())
	}
	return ws, nil
}

func (r *runner) listHooks(ctx context.Context, operatorFile string, ws *workspace.Workspace, set *settings.Settings) (list []HookStatus, err error) {
	_, all, err := r.collectHooks(ctx, operatorFile, &set.Job, ws)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	tree, err := ws.BaseTree()(ctx)
	if err != nil {
		return nil, err
	}
	boxes := confine.Sandboxes{Record: r.rec, Environ: r.env, Job: &set.Job, Root: ws.Root()}
	rooms := hooks.Rooms{Environ: r.env, Changeable: boxes.Changeable()}
	for i, active := range hooks.Listed(all).Hooks {
		status := HookStatus{HookActive: active}
		if err := all[i].Starts(rooms, tree); err != nil {
			status.Problem = err.Error()
		}
		list = append(list, status)
	}
	return list, nil
}

// skillsOf are the skills that a run by these settings can load.
func skillsOf(base settings.Commit, by *settings.Settings) (skills.Found, error) {
	if !worker.OffersSkills(&by.Job) {
		return skills.Found{}, nil
	}
	return skills.Find(base.Checkout, by.Job.Skills.Folders)
}

// ListSkills are the skills that a run in a checkout could load, and what is wrong with them.
// Nothing is run, and nobody asked.
func ListSkills(ctx context.Context, o Checked) (found skills.Found, err error) {
	err = o.look(ctx, func(_ *runner, ws *workspace.Workspace, set *settings.Settings) (err error) {
		found, err = skillsOf(ws.Commit(), set)
		return err
	})
	return found, err
}

// LessonsGone are the lessons of the base commit of a checkout whose evidence is gone: a path that
// it does not have any more, a check that the job does not have. The problems are those of the
// file, whose lessons no run is told of then.
func LessonsGone(ctx context.Context, o Checked) (gone []proposals.Gone, problems job.Problems, err error) {
	err = o.look(ctx, func(_ *runner, ws *workspace.Workspace, set *settings.Settings) (err error) {
		if gone, err = proposals.GoneIn(ws, &set.Job); errors.As(err, &problems) {
			return nil
		}
		return err
	})
	return gone, problems, err
}

// ReadyOptions say of which run ListReadiness tells.
type ReadyOptions struct {
	Dir      string   // the checkout, or any folder
	JobFile  string   // empty for the repository's defaults
	Defaults string   // file that is taken in place of the base commit's defaults; empty for those
	Set      []string // KEY=VALUE
	Environ  []string
	Reserved []string
	Version  string
}

// ListReadiness returns what is wrong or missing for a run here, as far as it can be known without
// asking anybody. Without a checkout nothing is said of files of the repository.
func ListReadiness(ctx context.Context, o ReadyOptions) (found preflight.Findings, err error) {
	r := newRunner("", settings.Given{JobFile: o.JobFile, Defaults: o.Defaults, Set: o.Set}, Surroundings{Environ: o.Environ, Reserved: o.Reserved, Version: o.Version, Quiet: true})
	err = r.inScratch(func() error {
		ws, err := r.openBase(ctx, o.Dir)
		switch {
		case err == nil:
			defer ws.Close()
		case outcome.Of(ctx, err).Reason != "no_checkout":
			return err
		}
		set, err := r.source.LoadTemplate(ctx, commitOf(ws))
		if err == nil {
			found, err = r.readiness(ctx, &request{}, ws, set)
		}
		return err
	})
	return found, err
}

// checkReady ends a run before it asks anybody, with all that is wrong or missing.
func (r *runner) checkReady(ctx context.Context, asked *request, ws *workspace.Workspace, set *settings.Settings) error {
	found, err := r.readiness(ctx, asked, ws, set)
	if err != nil {
		return err
	}
	return found.Stop()
}

// readiness returns what is wrong or missing for a run by these settings. ws is the checkout of its
// base commit; nil where that is not known yet.
func (r *runner) readiness(ctx context.Context, asked *request, ws *workspace.Workspace, set *settings.Settings) (preflight.Findings, error) {
	boxes := confine.Sandboxes{Record: r.rec, Environ: r.env, Job: &set.Job, Root: r.rec.Path()}
	o := preflight.Options{Job: &set.Job, Environ: r.env, Scripted: asked.script != "", Signs: asked.publish != publishNone}
	if ws != nil {
		boxes.Root, o.InBase = ws.Root(), ws.Checkout().HasBase
	}
	folders := boxes.Changeable()
	o.Path = confine.PathOutside(r.env.Get("PATH"), folders)
	o.Changeable = func(path string) bool { return confine.LeadsInto(path, folders) }
	found, err := preflight.Check(ctx, o)
	if asked.publish == "" && r.env.Token() == "" && set.Job.Task.Issue != "" && !set.Job.Publish.Feedback() {
		found.Add(ctx, preflight.Missing, noTokenForIssue())
	}
	return found, err
}
