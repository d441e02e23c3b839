package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/repair"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/worker"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// assignment is what a run is to do: by which settings, for whom, and who answers
// its agent.
type assignment struct {
	settings *settings.Settings
	project  project
	task     intake.Task
	source   *intake.Source // of the task; nil where it comes from a record
	model    worker.Model
	output   settings.OutputSchema
	red      *repair.Case // that is to be repaired; nil for another task
}

func (a assignment) job() *job.Job { return &a.settings.Job }

// by is the assignment under other settings, which were read from ws.
func (in *invocation) by(a assignment, set *settings.Settings, ws *workspace.Workspace) assignment {
	a.settings = set
	if a.source != nil {
		source := *a.source
		in.readFrom(&source, set, ws)
		a.source = &source
	}
	return a
}

// readFrom makes settings, and the workspace that they were read from, those of a
// source.
func (in *invocation) readFrom(source *intake.Source, set *settings.Settings, ws *workspace.Workspace) {
	source.Job, source.JobFile = &set.Job, set.File.Name
	source.Prompt = func(ctx context.Context) (string, error) { return in.source.ReadPrompt(ctx, commitOf(ws), set) }
	source.Beside = func(ctx context.Context, name string, limit int64) ([]byte, error) {
		return in.source.ReadBeside(ctx, commitOf(ws), set, name, limit)
	}
}

// surroundings are what the environment says of where a task comes from.
func surroundings(env settings.Environment) intake.Surroundings {
	_, server := github.Addresses(env.Get)
	return intake.Surroundings{
		InActions: env.InActions(), EventName: env.Get("GITHUB_EVENT_NAME"), EventPath: env.Get("GITHUB_EVENT_PATH"),
		Repository: env.Get("GITHUB_REPOSITORY"), Server: server, HasToken: env.Token() != "",
	}
}

// around is an event that tells of the surroundings alone, for what no event starts.
func (in *invocation) around() intake.Event {
	return intake.Event{Surroundings: surroundings(in.env)}
}

// configure merges the layers of configuration. The job may name another base than
// the one that the checkout, which may be nil, stands on; then the job is read again
// from there. Beside an error come the settings as far as they were read.
func (in *invocation) configure(ctx context.Context, ws *workspace.Workspace) (*settings.Settings, error) {
	set, err := in.load(ctx, ws)
	if err != nil || ws == nil {
		return set, err
	}
	ws.Checkout().AllowFilters(set.Job.Git.Listed())
	wanted, commit := set.Job.Repository.Base, set.Job.Repository.Commit
	if (wanted == "" || wanted == ws.Base().Branch) && (commit == "" || commit == ws.Base().SHA) {
		return set, nil
	}
	if err := ws.SetBase(ctx, gitops.BaseSpec{Branch: cmp.Or(wanted, ws.Base().Branch), SHA: commit}); err != nil {
		return set, workspace.CheckoutFailure(err)
	}
	again, err := in.load(ctx, ws)
	if err != nil {
		return set, err
	}
	if is := again.Job.Repository.Base; is != "" && wanted != "" && is != wanted {
		return again, outcome.Stopf(outcome.InvalidInput, "base",
			"The configuration on %s names another base, %s; give the one that holds with --set repository.base=….", wanted, is)
	}
	return again, nil
}

func (in *invocation) load(ctx context.Context, ws *workspace.Workspace) (*settings.Settings, error) {
	set, err := in.source.Load(ctx, commitOf(ws))
	if err == nil {
		in.keepOut(&set.Job)
	}
	return set, err
}

func commitOf(ws *workspace.Workspace) settings.Commit {
	if ws == nil {
		return settings.Commit{}
	}
	return ws.Commit()
}

// assign finds out what a run is to do, and whether who asks for it may. It asks
// nobody but the forge. known is what was found out by other settings; zero for
// nothing.
func (in *invocation) assign(ctx context.Context, event intake.Event, set *settings.Settings, ws *workspace.Workspace, known assignment) (a assignment, err error) {
	a = known
	a.settings, a.source = set, in.intakeSource(event, set, ws)
	if a.source.Request, err = event.Request(&set.Job); err != nil {
		return a, err
	}
	n := in.naming(&set.Job, event, ws)
	n.Request = a.source.Request
	switch {
	case known.source == nil:
		if a.project, err = in.findProject(n); err != nil {
			return a, err
		}
	case !intake.Fits(&set.Job, a.project.name()):
		return a, outcome.Stopf(outcome.InvalidInput, "other_repository",
			"The run works in a clone of %s, and repository.name is %s there; correct that, or name %s.", a.project.name(), set.Job.Repository.Name, set.Job.Repository.Name)
	default:
		a.source.Accounts = known.source.Accounts
	}
	ready := func() error { return in.checkReady(ctx, in.baseHere(a, ws), set) }
	asked := set.Job.Task.From != "" || in.env.Get("GITHUB_EVENT_NAME") != ""
	if !asked {
		if err := ready(); err != nil {
			return a, err
		}
	}
	a.source.Forge, a.source.To = a.project.forge, a.project.to
	pull, err := a.source.Admit(ctx)
	if err != nil {
		return a, err
	}
	if asked { // by who may be a stranger, for whom nothing has to be ready
		if err := ready(); err != nil {
			return a, err
		}
	}
	if a.model, err = in.findModel(ctx, &set.Job, 0); err != nil {
		return a, err
	}
	if pull != nil {
		a = in.by(a, set.OnBranch(pull.Head), ws)
	}
	if a, err = in.lookAtChecks(ctx, a, pull); err != nil {
		return a, err
	}
	if a.task, err = a.source.Read(ctx, pull); err != nil {
		return a, err
	}
	if a.output, err = in.source.ReadOutputSchema(ctx, commitOf(ws), a.settings); err == nil && set.Job.Publish.Feedback() {
		a.output, err = feedbackSchema(set.Job.Publish)
	}
	return a, err
}

// baseHere is the checkout, where its base commit is that of the run; nil where a clone will have it.
func (in *invocation) baseHere(a assignment, ws *workspace.Workspace) *workspace.Workspace {
	if ws == nil || in.wantsClone(a, ws, nil) {
		return nil
	}
	return ws
}

func (in *invocation) intakeSource(event intake.Event, set *settings.Settings, ws *workspace.Workspace) *intake.Source {
	source := &intake.Source{Event: event, Accounts: intake.Accounts{}, Record: in.rec, Publishes: in.publish != publishNone}
	in.readFrom(source, set, ws)
	return source
}

// findModel finds out who answers: a scripted session, after the turns that it has given, or the API.
// It asks nothing yet.
func (in *invocation) findModel(ctx context.Context, j *job.Job, given int) (worker.Model, error) {
	in.warnOfShortSecrets()
	if in.script != "" {
		if limit := j.Limits.CostUSD; limit != 0 && limit != job.DefaultCostUSD && !j.Model.Price.Known() {
			in.rec.Warn("no_price", "limits.cost_usd has no effect: scripted answers cost nothing. To try the limit, set model.price.")
		}
		return worker.NewScriptedModel(ctx, in.script, given, j)
	}
	return worker.NewAPIModel(j, in.env, in.version, in.rec)
}

// project is the repository that a run is for, and where its change goes.
type project struct {
	forge     forge.Forge
	to        forge.Repository // without a name where none is known
	serverURL string           // of the forge's pages and repositories
	publish   string           // where a change goes: one of the modes
}

// The publish modes.
const (
	publishGitHub = "github" // push to GitHub, open a pull request
	publishLocal  = "local"  // commit here, push to an origin on this machine
	publishNone   = "none"   // leave the change in the checkout
)

// PublishModes are the values of --publish.
func PublishModes() []string { return []string{publishGitHub, publishLocal, publishNone} }

// naming is what names the repository of a run in this checkout, which may be nil.
func (in *invocation) naming(j *job.Job, event intake.Event, ws *workspace.Workspace) intake.Naming {
	n := intake.Naming{Job: j, Event: event, Server: in.server()}
	if ws != nil {
		n.Origin = ws.Checkout().Origin()
	}
	return n
}

// server is the address of the forge's repositories.
func (in *invocation) server() string {
	_, server := github.Addresses(in.env.Get)
	return server
}

// findProject finds out which repository a run is for and how GitHub is reached. It
// asks nothing yet.
func (in *invocation) findProject(n intake.Naming) (project, error) {
	api, server := github.Addresses(in.env.Get)
	client, err := github.New(github.Options{APIURL: api, ServerURL: server, Token: in.env.Token(), UserAgent: "agent-ci/" + in.version, Pace: in.env.Get(settings.PaceVariable)})
	if err != nil {
		return project{}, outcome.Stopf(outcome.InvalidInput, "api_url", "GITHUB_API_URL cannot be used (%v); give it as https://HOST/api/v3.", err).Because(err)
	}
	name, err := n.Repository()
	if err != nil {
		return project{}, err
	}
	if _, short, _ := strings.Cut(name, "/"); short == "" {
		name = ""
	}
	p := project{forge: client, to: client.Repository(name), serverURL: server, publish: in.publish}
	switch {
	case p.publish != "":
	case in.env.Token() != "" && name != "":
		p.publish = publishGitHub
	default:
		p.publish = publishLocal
	}
	if p.publish == publishGitHub {
		return p, p.canBeReached(in.env.Token() != "")
	}
	return p, nil
}

func (p project) canBeReached(hasToken bool) error {
	switch {
	case p.name() == "":
		return outcome.Stopf(outcome.InvalidInput, "no_repository",
			"No GitHub repository is known to publish to: set repository.name, or use --publish local.")
	case !hasToken:
		return outcome.Stopf(outcome.InvalidInput, "no_token",
			"There is no GitHub token: set GITHUB_TOKEN, with the permissions contents: write and pull-requests: write, or use --publish local.")
	}
	return nil
}

// name is OWNER/NAME; empty where no repository is known.
func (p project) name() string {
	if p.to == nil {
		return ""
	}
	return p.to.Name()
}

// site is where the project's pages are; the zero value where no repository is known.
func (p project) site() transcript.Site {
	if p.name() == "" {
		return transcript.Site{}
	}
	return transcript.Site{Server: p.serverURL, Repository: p.name()}
}

// onForge publishes on the project's forge.
func (in *invocation) onForge(p project, ws *workspace.Workspace) publish.Forge {
	return publish.Forge{Means: in.means(p, ws), Server: p.forge}
}

func (in *invocation) means(p project, ws *workspace.Workspace) publish.Means {
	return publish.Means{Record: in.rec, Workspace: ws, Env: in.env, Repository: p.name(), ServerURL: p.serverURL}
}

// destination is where a change of the project goes; nil for nowhere.
func (in *invocation) destination(p project, ws *workspace.Workspace) publish.Destination {
	switch p.publish {
	case publishGitHub:
		return in.onForge(p, ws)
	case publishLocal:
		return publish.Local{Means: in.means(p, ws)}
	}
	return nil
}

// openHere opens the checkout that --repo names, on the base that the event names.
// That there is none, or none that can be used, is no end yet, for the run may
// clone one: why tells of it. A checkout without that base is given all the same, so
// that nothing is configured without it.
func (in *invocation) openHere(ctx context.Context, base string) (ws *workspace.Workspace, why error) {
	ws, why = workspace.Open(ctx, in.rec, workspace.Options{Dir: cmp.Or(in.dir, "."), Path: in.env.Get("PATH"), Forge: in.server(), OpenFilter: in.earlyFilters()})
	if why == nil {
		why = ws.StartOn(ctx, base)
	}
	return ws, why
}

// baseOf is the branch from which a run on a pull request is configured. The base of an
// event in another repository says nothing of this one's branches.
func baseOf(event intake.Event, a assignment) string {
	switch pull := a.task.OnPull(); {
	case pull != nil:
		return pull.Base
	case strings.EqualFold(event.Repository, a.project.name()):
		return event.Base()
	}
	return ""
}

// wantsClone says whether the run works on another repository than the checkout's
// or on another base than the checkout is on, or there is no checkout.
func (in *invocation) wantsClone(a assignment, ws *workspace.Workspace, noCheckout error) bool {
	switch {
	case a.project.name() == "":
		return false
	case ws == nil:
		return errors.Is(noCheckout, gitops.ErrNotRepository)
	case a.task.OnPull() != nil && a.task.OnPull().Base != ws.Base().Branch:
		return true // a comment's event does not tell the workflow which branch to check out
	}
	here := intake.NameInURL(ws.Checkout().Origin(), a.project.serverURL)
	if here == "" && in.env.InActions() && strings.EqualFold(in.env.Get("GITHUB_REPOSITORY"), a.project.name()) {
		return false // the checkout of a workflow, whose origin another step changed
	}
	return !strings.EqualFold(here, a.project.name())
}

// leaveOther lets go of the checkout here, which may be nil, if it is of another repository
// than the pull request that a command names: nothing that is configured there counts.
func (in *invocation) leaveOther(event intake.Event, here *workspace.Workspace, noCheckout error) (*workspace.Workspace, error) {
	if in.repairs == "" || here == nil {
		return here, noCheckout
	}
	of := intake.NameInURL(here.Checkout().Origin(), in.server())
	if strings.EqualFold(of, event.Repository) {
		return here, noCheckout
	}
	in.tellElsewhere(event.Repository, of, here)
	return nil, cmp.Or(here.Close(), gitops.ErrNotRepository)
}

// tellElsewhere says that a run on one repository does not work in the checkout of another.
func (in *invocation) tellElsewhere(name, of string, here *workspace.Workspace) {
	if of == "" || strings.EqualFold(of, name) || in.env.InActions() {
		return
	}
	in.rec.Warn("cloned", "The run works in a clone of %s, in its run directory: %s is a checkout of %s.", name, here.Root(), of)
}

// clone clones the repository in the place of the checkout here, which may be nil,
// and reads what configures a run there.
func (in *invocation) clone(ctx context.Context, a assignment, event intake.Event, here *workspace.Workspace) (*workspace.Workspace, *settings.Settings, error) {
	if here != nil {
		if err := here.Close(); err != nil {
			return nil, nil, fmt.Errorf("close the checkout of another repository: %w", err)
		}
	}
	base := baseOf(event, a)
	defer in.rec.Begins("", "clone of "+a.project.name())()
	cloned, err := workspace.Clone(ctx, in.rec, workspace.CloneOptions{
		Options: workspace.Options{Dir: in.dir, Path: in.env.Get("PATH"), Forge: in.server(), OpenFilter: in.earlyFilters()}, From: in.remote(a.project), Repository: a.project.name(),
		Branch: cmp.Or(a.job().Repository.Base, base), StartOn: base,
	})
	if err != nil {
		return nil, nil, err
	}
	set, err := in.configure(ctx, cloned)
	return cloned, set, err
}

func (in *invocation) remote(p project) remote.Remote { return in.onForge(p, nil).Remote() }

// joinBranch puts the checkout on the end of a person's branch. What configures the
// run was read from the base by now.
func (in *invocation) joinBranch(ctx context.Context, a assignment, event intake.Event, ws *workspace.Workspace) (*workspace.Workspace, assignment, error) {
	pull := a.task.Pull
	tip, err := intake.LookUpBranch(ctx, a.project.forge.Repository(event.Repository), pull.Head)
	switch {
	case err != nil:
		return ws, a, err
	case tip == nil:
		return ws, a, outcome.Stopf(outcome.Skipped, "foreign_branch", "The branch %s of pull request #%d is gone: %s.", pull.Head, pull.Number, pull.URL)
	}
	if ws, a, err = in.standOn(ctx, a, event, ws, gitops.BaseSpec{Branch: pull.Base, SHA: tip.SHA}); err != nil {
		return ws, a, err
	}
	return ws, in.by(a, a.settings.OnBranch(pull.Head).ForPerson(), ws), ws.HasFolder(a.job().Repository.Path)
}

// standOn puts the checkout on a commit of the repository; on one that is not here, a
// clone.
func (in *invocation) standOn(ctx context.Context, a assignment, event intake.Event, ws *workspace.Workspace, on gitops.BaseSpec) (*workspace.Workspace, assignment, error) {
	err := ws.SetBase(ctx, on)
	if errors.As(err, new(*gitops.UnknownBaseError)) && !ws.Cloned() { // a workflow's checkout mostly has one commit
		cloned, set, failed := in.clone(ctx, a, event, ws)
		if ws = cloned; set != nil {
			a = in.by(a, set, ws)
		}
		if failed != nil {
			return ws, a, failed
		}
		err = ws.SetBase(ctx, on)
	}
	return ws, a, workspace.CheckoutFailure(err)
}
