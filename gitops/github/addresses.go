package github

import (
	"cmp"
	"net/url"
	"strings"
)

// Addresses returns the root URLs of the API and of the web pages, by the environment variables of GitHub
// Actions.
func Addresses(getenv func(variable string) string) (api, server string) {
	api = cmp.Or(getenv("GITHUB_API_URL"), defaultAPIURL)
	return api, cmp.Or(strings.TrimSuffix(getenv("GITHUB_SERVER_URL"), "/"), serverOf(api))
}

// serverOf returns the root URL of the web pages for an API URL. GitHub's own API is on a separate
// host. An Enterprise Server has both on one host.
func serverOf(api string) string {
	u, err := url.Parse(api)
	if err != nil {
		return ""
	}
	u.Host = strings.TrimPrefix(u.Host, "api.")
	return u.Scheme + "://" + u.Host
}
