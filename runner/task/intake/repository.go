package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// RepositorySources holds all sources for the name of a run's repository.
type RepositorySources struct {
	Recorded string // by an earlier part of the run; empty for none
	Job      *job.Job
	Event    Event            // of a workflow, or of a command that names a pull request
	Request  *actions.Request // that the event makes; nil for none
	Origin   string           // of the checkout; empty for none
	Server   string           // root of the forge's pages
}

// Repository returns OWNER/REPO of the run's repository, or "" without any source. No other
// function decides this. A recorded name comes first, then the requested pull request, the job, its
// issue, Actions, and the checkout's origin.
func (n RepositorySources) Repository() (string, error) {
	if n.Recorded != "" {
		return n.Recorded, nil
	}
	if err := requireIssueOnServer(n.Job, n.Server); err != nil {
		return "", err
	}
	if n.Request != nil && n.Request.OnPull {
		return n.Event.Repository, requireJobRepository(n.Job, n.Event.Repository)
	}
	issue, _ := form.ParseIssue(n.Job.Task.Issue) // zero without an issue
	return cmp.Or(n.Job.Repository.Name, issue.Repository, n.Event.Repository, RepositoryInURL(n.Origin, n.Server)), nil
}

// requireJobRepository returns an error if repository.name differs from the pull request's repository.
func requireJobRepository(j *job.Job, repository string) error {
	if MatchesJobRepository(j, repository) {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "other_repository",
		"The pull request is of %s, and repository.name is %s; remove repository.name, or give a pull request of %s.", repository, j.Repository.Name, j.Repository.Name)
}

// MatchesJobRepository reports whether the job's repository.name is repository or empty.
func MatchesJobRepository(j *job.Job, repository string) bool {
	return j.Repository.Name == "" || strings.EqualFold(j.Repository.Name, repository)
}

// requireIssueOnServer rejects an issue address on another server than the run's, or in another repository
// than repository.name. Such an address was pasted from elsewhere.
func requireIssueOnServer(j *job.Job, server string) error {
	issueServer := form.IssueServer(j.Task.Issue)
	if issueServer == "" {
		return nil
	}
	issue, err := form.ParseIssue(j.Task.Issue)
	if err != nil {
		return err // the job was checked
	}
	if !sameHost(issueServer, server) {
		return outcome.Stopf(outcome.InvalidInput, "issue",
			"task.issue is on %s, and the run asks %s: give an issue of that, or set GITHUB_SERVER_URL and GITHUB_API_URL.", issueServer, server)
	}
	if name := j.Repository.Name; name != "" && !strings.EqualFold(name, issue.Repository) {
		return outcome.Stopf(outcome.InvalidInput, "issue",
			"task.issue is of %s, and repository.name is %s: give an issue of that, or write %s if an issue of another repository is meant.", issue.Repository, name, issue)
	}
	return nil
}

func sameHost(a, b string) bool {
	first, err := url.Parse(a)
	second, errSecond := url.Parse(b)
	return errors.Join(err, errSecond) == nil && strings.EqualFold(first.Host, second.Host)
}

// RepositoryInURL returns OWNER/REPO if origin is a repository on server, else "". origin is an http(s)
// URL, ssh://git@host/owner/repo or git@host:owner/repo.
func RepositoryInURL(origin, server string) string {
	s, err := url.Parse(server)
	if err != nil || origin == "" {
		return ""
	}
	path := pathOnServer(origin, s)
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	name := strings.TrimSuffix(strings.Join(parts, "/"), ".git")
	if form.ValidateRepository(name) != nil {
		return ""
	}
	return name
}

// ForeignOrigin returns ", as ..." with the reason why a checkout's origin is no repository on server. It returns ""
// if it is one, and without an origin.
func ForeignOrigin(origin, server string) string {
	if origin == "" || RepositoryInURL(origin, server) != "" {
		return ""
	}
	return fmt.Sprintf(", as the origin %s is not on %s (for GitHub Enterprise Server, set GITHUB_SERVER_URL and GITHUB_API_URL)", origin, server)
}

// pathOnServer returns the path in an origin, or "" for an origin on another server.
func pathOnServer(origin string, server *url.URL) string {
	if host, path, isSCP := strings.Cut(origin, ":"); isSCP && !strings.Contains(origin, "://") {
		if _, afterUser, hasUser := strings.Cut(host, "@"); hasUser {
			host = afterUser
		}
		if !strings.EqualFold(host, server.Hostname()) {
			return ""
		}
		return path
	}
	u, err := url.Parse(origin)
	if err != nil || !strings.EqualFold(u.Hostname(), server.Hostname()) {
		return ""
	}
	if u.Scheme != "ssh" && explicitPort(u) != explicitPort(server) {
		return ""
	}
	return u.Path
}

// explicitPort returns the port of an address. It is empty for the default port of the scheme.
func explicitPort(u *url.URL) string {
	if usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]; u.Port() != usual {
		return u.Port()
	}
	return ""
}

// DefaultBranch returns the default branch of a repository.
func DefaultBranch(ctx context.Context, repository forge.Repository) (string, error) {
	branch, err := repository.DefaultBranch(ctx)
	return branch, ForgeFailure("The default branch of "+repository.Name()+" cannot be asked for", err)
}

// LookUpBranch returns the last commit of a branch. It is nil for a missing branch.
func LookUpBranch(ctx context.Context, repository forge.Repository, branch string) (*forge.Commit, error) {
	commit, err := repository.Branch(ctx, branch)
	return commit, ForgeFailure("The branch "+branch+" cannot be looked up", err)
}

// FindPullRequest returns the pull request of a task's branch: the open one, even with another base
// by now, else the newest. It is nil without any.
func FindPullRequest(ctx context.Context, repository forge.Repository, branch, base string) (*forge.PullRequest, error) {
	pull, err := repository.FindPullRequest(ctx, branch, base)
	return pull, ForgeFailure("The pull requests of "+repository.Name()+" cannot be listed", err)
}

func ReadPullRequest(ctx context.Context, repository forge.Repository, number int) (*forge.PullRequest, error) {
	pull, err := repository.PullRequest(ctx, number)
	return pull, ForgeFailure(fmt.Sprintf("Pull request #%d cannot be read", number), err)
}

// ForgeFailure converts an error of a forge into an outcome. It is nil without an error.
func ForgeFailure(operation string, err error) error {
	if err == nil {
		return nil
	}
	message := outcome.WithoutFullStop(err)
	var forgeError *forge.Error
	switch {
	case errors.As(err, &forgeError): // comes first, because it may wrap a timeout of the connection
		message = forgeError.Message
		if forgeError.Remedy != "" {
			message = strings.TrimSuffix(message, ".") + "; " + strings.TrimSuffix(forgeError.Remedy, ".")
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return outcome.Stopf(outcome.ForgeFailed, string(forge.KindOf(err)), "%s: %s.", operation, message).Because(err)
}
