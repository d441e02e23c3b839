package github

import (
	"cmp"
	"net/url"
	"strings"
)

// Addresses returns the root URLs of the API and of the web pages, from the variables of GitHub
// Actions.
func Addresses(get func(variable string) string) (api, server string) {
	api = cmp.Or(get("GITHUB_API_URL"), defaultAPIURL)
	return api, cmp.Or(strings.TrimSuffix(get("GITHUB_SERVER_URL"), "/"), serverOf(api))
}

// serverOf returns the web root for an API: GitHub's own API has a separate host, an Enterprise
// Server's has a path.
func serverOf(api string) string {
	u, err := url.Parse(api)
	if err != nil {
		return ""
	}
	u.Host = strings.TrimPrefix(u.Host, "api.")
	return u.Scheme + "://" + u.Host
}
