package runner

import (
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

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
func (r *runner) naming(j *job.Job, event intake.Event, ws *workspace.Workspace) intake.Naming {
	n := intake.Naming{Job: j, Event: event, Server: r.server()}
	if ws != nil {
		n.Origin = ws.Checkout().Origin()
	}
	return n
}

// server is the address of the forge's repositories.
func (r *runner) server() string {
	_, server := github.Addresses(r.env.Get)
	return server
}

// findProject finds out which repository a run is for and how GitHub is reached. It
// asks nothing yet.
func (r *runner) findProject(n intake.Naming, publish string) (project, error) {
	api, server := github.Addresses(r.env.Get)
	client, err := github.New(github.Options{APIURL: api, ServerURL: server, Token: r.env.Token(), UserAgent: "agent-ci/" + r.version, Pace: r.env.Get(settings.PaceVariable)})
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
	p := project{forge: client, to: client.Repository(name), serverURL: server, publish: publish}
	switch {
	case p.publish != "":
	case r.env.Token() != "" && name != "":
		p.publish = publishGitHub
	default:
		p.publish = publishLocal
	}
	if p.publish == publishGitHub {
		return p, p.canBeReached(r.env.Token() != "")
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
func (r *runner) onForge(p project, ws *workspace.Workspace) publish.Forge {
	return publish.Forge{Means: r.means(p, ws), Server: p.forge}
}

func (r *runner) means(p project, ws *workspace.Workspace) publish.Means {
	return publish.Means{Record: r.rec, Workspace: ws, Env: r.env, Repository: p.name(), ServerURL: p.serverURL}
}

// destination is where a change of the project goes; nil for nowhere.
func (r *runner) destination(p project, ws *workspace.Workspace) publish.Destination {
	switch p.publish {
	case publishGitHub:
		return r.onForge(p, ws)
	case publishLocal:
		return publish.Local{Means: r.means(p, ws)}
	}
	return nil
}
