package publish

import (
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Publication modes.
const (
	ToForge = "github" // push to GitHub, open a pull request
	ToLocal = "local"  // commit here, push to an origin on this machine
	Nowhere = "none"   // leave the change in the checkout
)

// Modes returns the values of --publish.
func Modes() []string { return []string{ToForge, ToLocal, Nowhere} }

// Project is a run's repository and where its change is published.
type Project struct {
	Forge forge.Forge
	Repo  forge.Repository // has no name if no repository is known
	Mode  string

	ServerURL string // root of the forge's pages and repositories
}

// FindProject returns the repository that sources name, with a GitHub client. An empty mode means ToForge if a
// token and a repository are known, or else ToLocal. It sends no requests.
func FindProject(env settings.Environment, version string, sources intake.RepositorySources, mode string) (Project, error) {
	client, server, err := NewClient(env, version, env.Token())
	if err != nil {
		return Project{}, err
	}
	sources.Server = server
	name, err := sources.Repository()
	if err != nil {
		return Project{}, err
	}
	if _, short, _ := strings.Cut(name, "/"); short == "" {
		name = ""
	}
	p := Project{Forge: client, Repo: client.Repository(name), Mode: mode, ServerURL: server}
	if mode == "" {
		p.Mode = ToLocal
		if env.Token() != "" && name != "" {
			p.Mode = ToForge
		}
	}
	if p.Mode != ToForge {
		return p, nil
	}
	switch {
	case name == "":
		return p, outcome.Stopf(outcome.InvalidInput, "no_repository",
			"No GitHub repository is known to publish to%s: set repository.name, or use --publish local.", intake.ForeignOrigin(sources.Origin, server))
	case env.Token() == "":
		return p, outcome.Stopf(outcome.InvalidInput, "no_token",
			"There is no GitHub token: set GITHUB_TOKEN, with the permissions contents: write and pull-requests: write, or use --publish local.")
	}
	return p, nil
}

// Name returns OWNER/NAME, or "" if no repository is known.
func (p Project) Name() string {
	if p.Repo == nil {
		return ""
	}
	return p.Repo.Name()
}

// Site returns the address of the project's pages, or the zero value without a known repository.
func (p Project) Site() transcript.Site {
	if p.Name() == "" {
		return transcript.Site{}
	}
	return transcript.Site{Server: p.ServerURL, Repository: p.Name()}
}

// Destination returns the destination for the mode, or nil for Nowhere.
func (m Publisher) Destination() Destination {
	switch m.Mode {
	case ToForge:
		return Forge{m}
	case ToLocal:
		return Local{m}
	}
	return nil
}

// NoTokenForIssue returns the error for a task from an issue without a token. The user most likely expects a
// pull request, but the run could only commit on this machine.
func NoTokenForIssue() *outcome.Stop {
	return outcome.Stopf(outcome.InvalidInput, "no_token",
		"A task from an issue ends in a pull request, which needs GITHUB_TOKEN; set it, or use --publish local to commit here only.")
}
