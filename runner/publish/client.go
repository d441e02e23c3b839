package publish

import (
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// NewClient returns a client for the environment's GitHub server, and the root of its web pages. version is agent-ci's.
// The error is an *outcome.Stop.
func NewClient(env settings.Environment, version, token string) (*github.Client, string, error) {
	if err := env.CheckToken(token); err != nil {
		return nil, "", err
	}
	api, server := env.Forge()
	client, err := github.New(github.Options{APIURL: api, ServerURL: server, Token: token, UserAgent: "agent-ci/" + version, Pace: env.Get(settings.PaceVariable)})
	if err != nil {
		return nil, "", outcome.Stopf(outcome.InvalidInput, "api_url", "GITHUB_API_URL cannot be used (%v); give it as https://HOST/api/v3.", err).Because(err)
	}
	return client, server, nil
}
