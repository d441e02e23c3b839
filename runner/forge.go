package runner

import (
	"context"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// repository is the one that a pull request goes to.
type repository struct {
	forge.Repository // nil before newForge
	serverURL        string
}

func (r repository) known() bool    { return r.Name() != "" }
func (r repository) gitURL() string { return r.serverURL + "/" + r.Name() + ".git" }

// Name is OWNER/NAME; empty where no repository is known.
func (r repository) Name() string {
	if r.Repository == nil {
		return ""
	}
	return r.Repository.Name()
}

// newForge finds out how GitHub is reached and which repository the run is for.
// It asks nothing yet.
func (r *run) newForge(context.Context) error {
	api, server := github.Addresses(r.env.Get)
	client, err := github.New(github.Options{APIURL: api, ServerURL: server, Token: r.env.Token(), UserAgent: "agent-ci/" + r.options.Version})
	if err != nil {
		return outcome.Stopf(outcome.InvalidInput, "api_url", "GITHUB_API_URL cannot be used (%v); give it as https://HOST/api/v3.", err).Because(err)
	}
	name := r.repositoryName(server)
	if _, short, _ := strings.Cut(name, "/"); short == "" {
		name = ""
	}
	r.forge, r.repo = client, repository{client.Repository(name), server}
	if r.publishMode() == publishGitHub {
		return r.canReachGitHub()
	}
	return nil
}
