package github

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct{ apiURL, serverURL, api, server string }{
		{"", "", "https://api.github.com", "https://github.com"},
		{"https://ghe.example.com/api/v3", "", "https://ghe.example.com/api/v3", "https://ghe.example.com"},
		{"https://api.octo.ghe.com", "", "https://api.octo.ghe.com", "https://octo.ghe.com"},
		{"https://api.github.com", "https://pages.example.com/", "https://api.github.com", "https://pages.example.com"},
		{"https://[::1", "", "https://[::1", ""}, // which New refuses
	} {
		env := map[string]string{"GITHUB_API_URL": c.apiURL, "GITHUB_SERVER_URL": c.serverURL}
		if api, server := Addresses(func(variable string) string { return env[variable] }); api != c.api || server != c.server {
			t.Errorf("%v: %s and %s", env, api, server)
		}
	}
}

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
