package github

import (
	"cmp"
	"net/url"
	"strings"
)

// Addresses say where the API is, and where its web pages and repositories are, by
// the variables that GitHub Actions sets.
func Addresses(get func(variable string) string) (api, server string) {
	api = cmp.Or(get("GITHUB_API_URL"), DefaultAPIURL)
	return api, cmp.Or(strings.TrimSuffix(get("GITHUB_SERVER_URL"), "/"), serverOf(api))
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
