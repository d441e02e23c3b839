package intake

import (
	"net/url"
	"strings"

	"github.com/agent-ci/agent-ci/runner/job"
)

// RepositoryName is OWNER/REPO from the job, the issue, Actions or the origin of
// the checkout on server, in this order; empty for unknown.
func RepositoryName(j *job.Job, ofActions, origin, server string) string {
	if j.Repository.Name != "" {
		return j.Repository.Name
	}
	if issue, err := job.ParseIssue(j.Task.Issue); err == nil && issue.Repository != "" {
		return issue.Repository
	}
	if ofActions != "" {
		return ofActions
	}
	return NameInURL(origin, server)
}

// NameInURL is OWNER/REPO when origin is a repository on server: an http(s)
// URL, ssh://git@host/owner/repo or git@host:owner/repo.
func NameInURL(origin, server string) string {
	s, err := url.Parse(server)
	if err != nil || origin == "" {
		return ""
	}
	path := ""
	if host, rest, ok := strings.Cut(origin, ":"); ok && !strings.Contains(origin, "://") {
		if _, after, found := strings.Cut(host, "@"); found {
			host = after
		}
		if strings.EqualFold(host, s.Hostname()) {
			path = rest
		}
	} else if u, err := url.Parse(origin); err == nil && strings.EqualFold(u.Hostname(), s.Hostname()) && (u.Scheme == "ssh" || u.Host == s.Host) {
		path = u.Path
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if job.ValidateRepository(path) != nil {
		return ""
	}
	return path
}
