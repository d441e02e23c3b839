package start

import (
	"context"
	"reflect"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/agent/access"
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

// withSettings returns a copy of the assignment with other settings, which were read from the commit of ws.
func (s *Start) withSettings(a Assignment, set *settings.Settings, ws *workspace.Workspace) Assignment {
	a.Settings = set
	if a.Source != nil {
		source := *a.Source
		s.adoptSource(&source, set, ws)
		a.Source = &source
	}
	return a
}

// adoptSource makes a task source use these settings. It reads the files that they name from the commit of
// ws.
func (s *Start) adoptSource(source *intake.Source, set *settings.Settings, ws *workspace.Workspace) {
	source.Job, source.JobFile, source.JobFiles = &set.Job, set.File.Name, jobFiles{s.Source, set, ws}
}

// jobFiles reads what a job names from the commit of a workspace.
type jobFiles struct {
	source    *settings.Source
	settings  *settings.Settings
	workspace *workspace.Workspace
}

func (f jobFiles) ReadPrompt(ctx context.Context) (string, error) {
	return f.source.ReadPrompt(ctx, f.workspace.Commit(), f.settings)
}

func (f jobFiles) ReadBesideJob(ctx context.Context, name string, limit int64) ([]byte, error) {
	return f.source.ReadBesideJobFile(ctx, f.workspace.Commit(), f.settings, name, limit)
}

// recordedAssignment returns a recorded run's assignment without its results.
func recordedAssignment(h *history.Run, req *Request) *Assignment {
	return &Assignment{Request: req, Settings: &settings.Settings{Job: h.Job}, Task: h.RecordedTask()}
}

// EnsureCheckout finds the run's assignment and ensures a clean checkout of the right repository on its
// base commit: current, which may be nil, or a clone. noCheckout is the error that explains why current is
// missing or unusable.
func (s *Start) EnsureCheckout(ctx context.Context, event intake.Event, current *workspace.Workspace, noCheckout error) (*Assignment, error) {
	a, err := s.findAssignment(ctx, event, Assignment{Request: s.Assignment.Request}, s.Assignment.Settings, current)
	if err != nil {
		return nil, err
	}
	ws := current
	if s.wantsClone(a, current, noCheckout) {
		if ws, a, err = s.moveToClone(ctx, event, a, current); err != nil {
			return nil, err
		}
	}
	if ws == nil {
		return nil, workspace.CheckoutFailure(noCheckout)
	}
	return &a, ws.Prepare(ctx, a.checkoutNeeds(ws))
}

// moveToClone replaces the current checkout, which may be nil, by a clone of the assignment's repository.
// If the clone configures the run differently, it checks the requester again by that configuration.
func (s *Start) moveToClone(ctx context.Context, event intake.Event, before Assignment, current *workspace.Workspace) (*workspace.Workspace, Assignment, error) {
	if current != nil {
		s.AbandonedBase = current.Base()
		if before.Job().Repository.Name == "" {
			s.reportOtherCheckout(before.Project.Name(), intake.RepositoryInURL(current.Checkout().Origin(), s.Env.ForgeServer()), current)
		}
	}
	cloned, a, err := s.cloneRepository(ctx, before, event, current)
	if err != nil {
		return nil, a, err
	}
	if reflect.DeepEqual(before.Settings.Job, a.Settings.Job) {
		return cloned, a, s.checkReady(ctx, &a, cloned) // the earlier check did not know the commit's files
	}
	a, err = s.findAssignment(ctx, event, before, a.Settings, cloned)
	return cloned, a, err
}

// findAssignment finds the run's project, task and model, and checks the requester's permission. It asks only
// the forge. known is the assignment under earlier settings. Even on an error, it registers what it found
// so far.
func (s *Start) findAssignment(ctx context.Context, event intake.Event, known Assignment, set *settings.Settings, ws *workspace.Workspace) (a Assignment, err error) {
	a = known
	defer func() { s.Assignment = &a }()
	a.Settings, a.Source = set, s.intakeSource(event, known.Request, set, ws)
	if a.Source.Request, err = event.Request(&set.Job); err != nil {
		return a, err
	}
	if known.Source == nil {
		a.Project, err = s.findProject(&a, event, ws)
	} else {
		a.Source.Permissions, err = known.Source.Permissions, requireSameRepository(&a)
	}
	if err != nil {
		return a, err
	}
	a.Source.Forge, a.Source.Target = a.Project.Forge, a.Project.Repo
	pull, err := s.checkRequester(ctx, &a, ws)
	if err != nil {
		return a, err
	}
	if a.Model, err = access.Find(ctx, &set.Job, a.Script, 0, s.Env, s.Version, s.Record); err != nil {
		return a, err
	}
	if pull != nil {
		a = s.withSettings(a, set.WithBranch(pull.Head), ws)
	}
	if a.Repair, err = repair.PrepareAttempt(ctx, a.Source, a.Repair, pull); err != nil {
		return a, err
	}
	if a.Task, err = a.Source.Read(ctx, pull); err != nil {
		return a, err
	}
	a.OutputSchema, err = s.outputSchema(ctx, &a, ws)
	return a, err
}

// findProject returns the repository that the run publishes in.
func (s *Start) findProject(a *Assignment, event intake.Event, ws *workspace.Workspace) (publish.Project, error) {
	n := intake.RepositorySources{Job: a.Job(), Event: event, Request: a.Source.Request}
	if ws != nil {
		n.Origin = ws.Checkout().Origin()
	}
	return publish.FindProject(s.Env, s.Version, n, a.Publish)
}

// recordedProject returns the repository of a recorded run.
func (s *Start) recordedProject(a *Assignment, h *history.Run) (publish.Project, error) {
	n := intake.RepositorySources{Job: a.Job(), Event: intake.Event{Surroundings: intake.ReadSurroundings(s.Env)}, Recorded: h.Workspace.Repository}
	return publish.FindProject(s.Env, s.Version, n, a.Publish)
}

// requireSameRepository returns an error if the settings of a clone name another repository than the cloned one.
func requireSameRepository(a *Assignment) error {
	cloned, named := a.Project.Name(), a.Job().Repository.Name
	if intake.MatchesJobRepository(a.Job(), cloned) {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "other_repository",
		"The run works in a clone of %s, and repository.name is %s there; correct that, or name %s.", cloned, named, named)
}

// checkRequester checks the requester's permission and the run's requirements. It returns the pull request
// that the run is about, or nil. For a run that a stranger may have caused it checks the permission first,
// so that strangers learn nothing of missing requirements.
func (s *Start) checkRequester(ctx context.Context, a *Assignment, ws *workspace.Workspace) (*forge.PullRequest, error) {
	checkout := ws
	if ws != nil && s.wantsClone(*a, ws, nil) {
		checkout = nil // the clone will have the base commit
	}
	fromEvent := a.Job().Task.From != "" || s.Env.Get("GITHUB_EVENT_NAME") != ""
	if !fromEvent {
		if err := s.checkReady(ctx, a, checkout); err != nil {
			return nil, err
		}
	}
	pull, err := a.Source.RequireTrustedRequester(ctx)
	if err == nil && fromEvent {
		err = s.checkReady(ctx, a, checkout)
	}
	return pull, err
}

// outputSchema returns the schema of the agent's structured output: the job's, or that of the feedback to post.
func (s *Start) outputSchema(ctx context.Context, a *Assignment, ws *workspace.Workspace) (settings.OutputSchema, error) {
	schema, err := s.Source.ReadOutputSchema(ctx, ws.Commit(), a.Settings)
	if err == nil && a.Job().Publish.IsFeedback() {
		return feedback.Schema(a.Job().Publish)
	}
	return schema, err
}

// checkoutNeeds returns what the run needs of its checkout: the base branch, the folder, and whether other
// runs may share the checkout.
func (a *Assignment) checkoutNeeds(ws *workspace.Workspace) workspace.CheckoutNeeds {
	base := workspace.BaseBranch{Configured: a.Job().Repository.Base != "", NoneNeeded: a.Project.Mode == publish.Nowhere}
	if a.Job().PullRequest.Branch == "" {
		base.TaskBranch = a.Task.Branch
	}
	if a.Project.Mode == publish.ToForge {
		base.ForgeDefault = func(ctx context.Context) (string, error) { return intake.DefaultBranch(ctx, a.Project.Repo) }
	}
	shared := a.Project.Mode != publish.Nowhere && !ws.CheckedOut(a.Task.Branch)
	return workspace.CheckoutNeeds{
		Base: base, Path: a.Job().Repository.Path, SharesCheckout: shared,
		ExpectsChanges: a.Job().Task.Expects == "change", ReceivesChange: a.Project.Mode != publish.ToForge,
	}
}

// intakeSource returns the source that reads the run's task and checks its requester.
func (s *Start) intakeSource(event intake.Event, req *Request, set *settings.Settings, ws *workspace.Workspace) *intake.Source {
	source := &intake.Source{Event: event, Permissions: intake.PermissionCache{}, Record: s.Record, Publishes: req.Publish != publish.Nowhere}
	s.adoptSource(source, set, ws)
	return source
}

// checkReady stops a run that cannot work, before its first request. The error lists all mistakes and
// missing requirements. ws is a checkout of the base commit, or nil if that commit is unknown.
func (s *Start) checkReady(ctx context.Context, a *Assignment, ws *workspace.Workspace) error {
	found, err := look.CheckRequirements(ctx, s.Record, ws, preflight.Options{Job: a.Job(), Environ: s.Env, Scripted: a.Script != "", Publish: a.Publish})
	if err != nil {
		return err
	}
	return found.Stop()
}
