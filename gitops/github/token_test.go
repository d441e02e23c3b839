package github

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestTokenKind(t *testing.T) {
	for token, want := range map[string]string{
		"": "none", "github_pat_x": "fine-grained personal access token", "ghp_x": "classic personal access token",
		"ghu_x": "user token of an App", "gho_x": "OAuth token", "x": "of a kind that is not known", " ghp_x": "of a kind that is not known",
	} {
		must.Same(t, want, TokenKind(token), token)
	}
}

func TestGraphQLURL(t *testing.T) {
	for api, want := range map[string]string{
		"":                               "https://api.github.com/graphql",
		"https://api.github.com/":        "https://api.github.com/graphql",
		"https://ghe.example.com/api/v3": "https://ghe.example.com/api/graphql",
		"https://api.corp.ghe.com":       "https://api.corp.ghe.com/graphql",
		"http://127.0.0.1:80/x/api/v3/":  "http://127.0.0.1:80/x/api/graphql",
	} {
		u, err := parseAPIURL(api)
		if err != nil {
			t.Errorf("%s: %v", api, err)
			continue
		}
		must.Same(t, want, graphQLURL(u), api)
	}
}
