package runner

import (
	"context"
	"reflect"

	"github.com/agent-ci/agent-ci/gitops/forge"
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
	source.ReadBesideJob = func(ctx context.Context, name string, limit int64) ([]byte, error) {
		return r.source.ReadBeside(ctx, ws.Commit(), set, name, limit)
	}
}

// recordedAssignment returns a recorded run's assignment without its results.
func recordedAssignment(h *history.Run, req *request) *assignment {
	return &assignment{request: req, settings: &settings.Settings{Job: h.Job}, task: h.RecordedTask()}
}

// ensureCheckout finds the run's assignment and ensures a checkout of the right repository, clean and
// on its base commit: the current one, which may be nil, or a clone. It registers the settings.
func (r *runner) ensureCheckout(ctx context.Context, event intake.Event, current *workspace.Workspace, noCheckout error) (*assignment, error) {
	a, err := r.assign(ctx, event, assignment{request: r.end.assignment.request}, r.end.assignment.settings, current)
	if err != nil {
		return nil, err
	}
	ws := current
	if r.wantsClone(a, current, noCheckout) {
		if ws, a, err = r.moveToClone(ctx, event, a, current); err != nil {
			return nil, err
		}
	}
	if ws == nil {
		return nil, workspace.CheckoutFailure(noCheckout)
	}
	return &a, ws.Prepare(ctx, a.preparation(ws))
}

// moveToClone replaces the current checkout, which may be nil, by a clone of the assignment's repository. The
// clone's settings decide who may start a run, so it checks the requester again if they differ.
func (r *runner) moveToClone(ctx context.Context, event intake.Event, before assignment, current *workspace.Workspace) (*workspace.Workspace, assignment, error) {
	if current != nil {
		r.end.abandonedBase = current.Base()
		if before.job().Repository.Name == "" {
			r.reportOtherCheckout(before.project.Name(), intake.RepositoryInURL(current.Checkout().Origin(), r.env.ForgeServer()), current)
		}
	}
	cloned, a, err := r.clone(ctx, before, event, current)
	if err != nil {
		return nil, a, err
	}
	if reflect.DeepEqual(before.settings.Job, a.settings.Job) {
		return cloned, a, r.checkReady(ctx, &a, cloned) // the earlier check did not know the commit's files
	}
	a, err = r.assign(ctx, event, before, a.settings, cloned)
	return cloned, a, err
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
	if known.source == nil {
		a.project, err = r.findProject(&a, event, ws)
	} else {
		a.source.Permissions, err = known.source.Permissions, requireSameRepository(&a)
	}
	if err != nil {
		return a, err
	}
	a.source.Forge, a.source.Target = a.project.Forge, a.project.Repo
	pull, err := r.admit(ctx, &a, ws)
	if err != nil {
		return a, err
	}
	if a.model, err = provider.Find(ctx, &set.Job, a.script, 0, r.env, r.version, r.rec); err != nil {
		return a, err
	}
	if pull != nil {
		a = r.withSettings(a, set.WithBranch(pull.Head), ws)
	}
	if a.repair, err = repair.NewAttempt(ctx, a.source, a.repair, pull); err != nil {
		return a, err
	}
	if a.task, err = a.source.Read(ctx, pull); err != nil {
		return a, err
	}
	a.outputSchema, err = r.outputSchema(ctx, &a, ws)
	return a, err
}

// findProject returns the repository that the run publishes in.
func (r *runner) findProject(a *assignment, event intake.Event, ws *workspace.Workspace) (publish.Project, error) {
	n := intake.RepositorySources{Job: a.job(), Event: event, Request: a.source.Request}
	if ws != nil {
		n.Origin = ws.Checkout().Origin()
	}
	return publish.FindProject(r.env, r.version, n, a.publish)
}

// recordedProject returns the repository of a recorded run.
func (r *runner) recordedProject(a *assignment, h *history.Run) (publish.Project, error) {
	n := intake.RepositorySources{Job: a.job(), Event: intake.Event{Surroundings: intake.ReadSurroundings(r.env)}, Recorded: h.Workspace.Repository}
	return publish.FindProject(r.env, r.version, n, a.publish)
}

// requireSameRepository returns an error if the settings of a clone name another repository than the cloned one.
func requireSameRepository(a *assignment) error {
	cloned, named := a.project.Name(), a.job().Repository.Name
	if intake.MatchesJobRepository(a.job(), cloned) {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "other_repository",
		"The run works in a clone of %s, and repository.name is %s there; correct that, or name %s.", cloned, named, named)
}

// admit checks the requester's permission and the run's requirements. It returns the pull request that the
// run is about, or nil. If a stranger may have caused the run, it checks permission first: a stranger
// learns nothing of missing requirements.
func (r *runner) admit(ctx context.Context, a *assignment, ws *workspace.Workspace) (*forge.PullRequest, error) {
	checkout := ws
	if ws != nil && r.wantsClone(*a, ws, nil) {
		checkout = nil // the clone will have the base commit
	}
	fromEvent := a.job().Task.From != "" || r.env.Get("GITHUB_EVENT_NAME") != ""
	if !fromEvent {
		if err := r.checkReady(ctx, a, checkout); err != nil {
			return nil, err
		}
	}
	pull, err := a.source.Admit(ctx)
	if err == nil && fromEvent {
		err = r.checkReady(ctx, a, checkout)
	}
	return pull, err
}

// outputSchema returns the schema of the agent's structured output: the job's, or that of the feedback to post.
func (r *runner) outputSchema(ctx context.Context, a *assignment, ws *workspace.Workspace) (settings.OutputSchema, error) {
	schema, err := r.source.ReadOutputSchema(ctx, ws.Commit(), a.settings)
	if err == nil && a.job().Publish.IsFeedback() {
		return feedback.Schema(a.job().Publish)
	}
	return schema, err
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
func (r *runner) intakeSource(event intake.Event, req *request, set *settings.Settings, ws *workspace.Workspace) *intake.Source {
	source := &intake.Source{Event: event, Permissions: intake.PermissionCache{}, Record: r.rec, Publishes: req.publish != publish.Nowhere}
	r.adoptSource(source, set, ws)
	return source
}

// checkReady stops a run that cannot work, before its first request. The error lists all mistakes and
// missing requirements. ws is a checkout of the base commit, or nil if that commit is unknown.
func (r *runner) checkReady(ctx context.Context, a *assignment, ws *workspace.Workspace) error {
	found, err := look.Lacks(ctx, r.rec, ws, preflight.Options{Job: a.job(), Environ: r.env, Scripted: a.script != "", Publish: a.publish})
	if err != nil {
		return err
	}
	return found.Stop()
}
