package runner

import (
	"context"
	"reflect"

	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/feedback"
	"github.com/agent-ci/agent-ci/runner/publish/repair"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/setup/look"
	"github.com/agent-ci/agent-ci/runner/setup/preflight"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// withSettings returns a copy of the assignment with the settings set, which were read from ws.
func (r *runner) withSettings(a assignment, set *settings.Settings, ws *workspace.Workspace) assignment {
	a.settings = set
	if a.source != nil {
		source := *a.source
		r.adoptSource(&source, set, ws)
		a.source = &source
	}
	return a
}

// adoptSource gives a source the settings set. Files that they name are read from ws's commit.
func (r *runner) adoptSource(source *intake.Source, set *settings.Settings, ws *workspace.Workspace) {
	source.Job, source.JobFile = &set.Job, set.File.Name
	source.Prompt = func(ctx context.Context) (string, error) { return r.source.ReadPrompt(ctx, ws.Commit(), set) }
	source.Beside = func(ctx context.Context, name string, limit int64) ([]byte, error) {
		return r.source.ReadBeside(ctx, ws.Commit(), set, name, limit)
	}
}

// recordedAssignment returns a recorded run's assignment without its results.
func recordedAssignment(h *history.Run, asked *request) *assignment {
	return &assignment{request: asked, settings: &settings.Settings{Job: h.Job}, task: h.Assigned()}
}

// ensureCheckout finds the run's assignment and ensures a checkout of the right repository, clean and
// on its base commit: the current one, which may be nil, or a clone. It registers the settings.
func (r *runner) ensureCheckout(ctx context.Context, event intake.Event, current *workspace.Workspace, noCheckout error) (*assignment, error) {
	asked, err := r.assign(ctx, event, assignment{request: r.end.assignment.request}, r.end.assignment.settings, current)
	if err != nil {
		return nil, err
	}
	a, ws := asked, current
	if r.wantsClone(a, ws, noCheckout) {
		if ws != nil {
			r.end.abandonedBase = ws.Base()
			if a.job().Repository.Name == "" {
				r.reportOtherCheckout(a.project.Name(), intake.NameInURL(ws.Checkout().Origin(), r.env.ForgeServer()), ws)
			}
		}
		if ws, a, err = r.clone(ctx, a, event, ws); err != nil {
			return nil, err
		}
		// The clone's settings decide who may start a run, so check the requester again.
		if !reflect.DeepEqual(asked.settings.Job, a.settings.Job) {
			a, err = r.assign(ctx, event, asked, a.settings, ws)
		} else { // the earlier check did not know the commit's files
			err = r.checkReady(ctx, a.request, ws, a.settings)
		}
		if err != nil {
			return nil, err
		}
	}
	if ws == nil {
		return nil, workspace.CheckoutFailure(noCheckout)
	}
	return &a, ws.Prepare(ctx, a.preparation(ws))
}

// assign finds the run's project, task and model, and checks the requester's permission. It asks only
// the forge. known is the assignment under earlier settings. Even on an error, assign registers what it
// found so far.
func (r *runner) assign(ctx context.Context, event intake.Event, known assignment, set *settings.Settings, ws *workspace.Workspace) (a assignment, err error) {
	a = known
	defer func() { r.end.assignment = &a }()
	a.settings, a.source = set, r.intakeSource(event, known.request, set, ws)
	if a.source.Request, err = event.Request(&set.Job); err != nil {
		return a, err
	}
	n := intake.Naming{Job: &set.Job, Event: event, Request: a.source.Request}
	if ws != nil {
		n.Origin = ws.Checkout().Origin()
	}
	switch {
	case known.source == nil:
		if a.project, err = publish.FindProject(r.env, r.version, n, a.publish); err != nil {
			return a, err
		}
	case !intake.Fits(&set.Job, a.project.Name()):
		return a, outcome.Stopf(outcome.InvalidInput, "other_repository",
			"The run works in a clone of %s, and repository.name is %s there; correct that, or name %s.", a.project.Name(), set.Job.Repository.Name, set.Job.Repository.Name)
	default:
		a.source.Accounts = known.source.Accounts
	}
	ready := func() error {
		base := ws
		if ws != nil && r.wantsClone(a, ws, nil) {
			base = nil // the clone will have it
		}
		return r.checkReady(ctx, a.request, base, set)
	}
	// asked: an event may have caused the run, so the requester may be a stranger.
	asked := set.Job.Task.From != "" || r.env.Get("GITHUB_EVENT_NAME") != ""
	if !asked {
		if err := ready(); err != nil {
			return a, err
		}
	}
	a.source.Forge, a.source.To = a.project.Forge, a.project.Repo
	pull, err := a.source.Admit(ctx)
	if err != nil {
		return a, err
	}
	if asked { // a stranger learns nothing of missing requirements
		if err := ready(); err != nil {
			return a, err
		}
	}
	if a.model, err = provider.Find(ctx, &set.Job, a.script, 0, r.env, r.version, r.rec); err != nil {
		return a, err
	}
	if pull != nil {
		a = r.withSettings(a, set.OnBranch(pull.Head), ws)
	}
	if a.repair, err = repair.NewAttempt(ctx, a.source, a.repair, pull); err != nil {
		return a, err
	}
	if a.task, err = a.source.Read(ctx, pull); err != nil {
		return a, err
	}
	if a.output, err = r.source.ReadOutputSchema(ctx, ws.Commit(), a.settings); err == nil && set.Job.Publish.Feedback() {
		a.output, err = feedback.Schema(set.Job.Publish)
	}
	return a, err
}

// preparation returns what the run needs of its checkout: the base branch, the folder, and whether other
// runs may share the checkout.
func (a *assignment) preparation(ws *workspace.Workspace) workspace.CheckoutNeeds {
	base := workspace.BaseBranch{Configured: a.job().Repository.Base != "", NoneNeeded: a.project.Mode == publish.Nowhere}
	if a.job().PullRequest.Branch == "" {
		base.TaskBranch = a.task.Branch
	}
	if a.project.Mode == publish.ToForge {
		base.ForgeDefault = func(ctx context.Context) (string, error) { return intake.DefaultBranch(ctx, a.project.Repo) }
	}
	shared := a.project.Mode != publish.Nowhere && !ws.CheckedOut(a.task.Branch)
	return workspace.CheckoutNeeds{Base: base, Path: a.job().Repository.Path, ExpectsChanges: a.job().Task.Expects == "change", SharesCheckout: shared}
}

// intakeSource returns the source that reads the run's task and checks its requester.
func (r *runner) intakeSource(event intake.Event, asked *request, set *settings.Settings, ws *workspace.Workspace) *intake.Source {
	source := &intake.Source{Event: event, Accounts: intake.Accounts{}, Record: r.rec, Publishes: asked.publish != publish.Nowhere}
	r.adoptSource(source, set, ws)
	return source
}

// checkReady stops a run that cannot work, before its first request. The error lists all mistakes and
// missing requirements. ws is a checkout of the base commit, or nil if that commit is unknown.
func (r *runner) checkReady(ctx context.Context, asked *request, ws *workspace.Workspace, set *settings.Settings) error {
	found, err := look.Lacks(ctx, r.rec, ws, preflight.Options{Job: &set.Job, Environ: r.env, Scripted: asked.script != "", Publish: asked.publish})
	if err != nil {
		return err
	}
	return found.Stop()
}
