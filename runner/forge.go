package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/settings"
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
	api, server := gitHub(r.env)
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

// gitHub says where GitHub's API is, and where its web pages and repositories
// are.
func gitHub(e settings.Environment) (api, server string) {
	api = cmp.Or(e.Get("GITHUB_API_URL"), github.DefaultAPIURL)
	return api, cmp.Or(strings.TrimSuffix(e.Get("GITHUB_SERVER_URL"), "/"), serverOf(api))
}

// serverOf is where the web pages and repositories of an API are: GitHub's own
// API has a host of its own, an Enterprise Server's is a path.
func serverOf(api string) string {
	u, err := url.Parse(api)
	if err != nil {
		return ""
	}
	u.Host = strings.TrimPrefix(u.Host, "api.")
	return u.Scheme + "://" + u.Host
}

func defaultBranch(ctx context.Context, of forge.Repository) (string, error) {
	branch, err := of.DefaultBranch(ctx)
	return branch, forgeFailureOrNil("The default branch of "+of.Name()+" cannot be asked for", err)
}

func lookUpBranch(ctx context.Context, in forge.Repository, branch string) (*forge.Commit, error) {
	commit, err := in.Branch(ctx, branch)
	return commit, forgeFailureOrNil("The branch "+branch+" cannot be looked up", err)
}

func readPullRequest(ctx context.Context, in forge.Repository, number int) (*forge.PullRequest, error) {
	pull, err := in.PullRequest(ctx, number)
	return pull, forgeFailureOrNil(fmt.Sprintf("Pull request #%d cannot be read", number), err)
}

// forgeFailure is the outcome that an error of GitHub's API stands for.
func forgeFailure(what string, err error) error {
	said := outcome.Trimmed(err)
	var answer *forge.Error
	switch {
	case errors.As(err, &answer): // which may be a connection that timed out
		said = answer.Message // what was being done is said already
		if answer.Remedy != "" {
			said = strings.TrimSuffix(said, ".") + "; " + strings.TrimSuffix(answer.Remedy, ".")
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return outcome.Stopf(outcome.ForgeFailed, string(forge.KindOf(err)), "%s: %s.", what, said).Because(err)
}

func forgeFailureOrNil(what string, err error) error {
	if err == nil {
		return nil
	}
	return forgeFailure(what, err)
}
