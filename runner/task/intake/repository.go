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

// Naming is all that may name the repository of a run.
type Naming struct {
	Recorded string // by an earlier part of the run; empty for none
	Job      *job.Job
	Event    Event            // of a workflow, or of a command that names a pull request
	Request  *actions.Request // that the event makes; nil for none
	Origin   string           // of the checkout; empty for none
	Server   string           // root of the forge's pages
}

// Repository returns OWNER/REPO of the repository that a run works on; empty where nothing
// names one. It is the one place that decides: the pull request that is asked to be worked on
// comes first, then the job, its issue, Actions, and the checkout's origin.
func (n Naming) Repository() (string, error) {
	if n.Recorded != "" {
		return n.Recorded, nil
	}
	if err := issueFits(n.Job, n.Server); err != nil {
		return "", err
	}
	if n.Request != nil && n.Request.OnPull {
		return n.Event.Repository, pullFits(n.Job, n.Event.Repository)
	}
	issue, _ := form.ParseIssue(n.Job.Task.Issue) // none where it is not one
	return cmp.Or(n.Job.Repository.Name, issue.Repository, n.Event.Repository, NameInURL(n.Origin, n.Server)), nil
}

// pullFits refuses a job whose repository.name is not the repository of the pull request that
// the run works on.
func pullFits(j *job.Job, repository string) error {
	if Fits(j, repository) {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "other_repository",
		"The pull request is of %s, and repository.name is %s; remove repository.name, or give a pull request of %s.", repository, j.Repository.Name, j.Repository.Name)
}

// Fits says whether repository.name, where a job has it, is this repository.
func Fits(j *job.Job, repository string) bool {
	return j.Repository.Name == "" || strings.EqualFold(j.Repository.Name, repository)
}

// issueFits refuses an issue that was given by an address of another server than the
// run asks, or of another repository than repository.name: it was pasted from
// elsewhere.
func issueFits(j *job.Job, server string) error {
	at := form.IssueServer(j.Task.Issue)
	if at == "" {
		return nil
	}
	issue, err := form.ParseIssue(j.Task.Issue)
	if err != nil {
		return err // the job was checked
	}
	if !sameHost(at, server) {
		return outcome.Stopf(outcome.InvalidInput, "issue",
			"task.issue is on %s, and the run asks %s: give an issue of that, or set GITHUB_SERVER_URL and GITHUB_API_URL.", at, server)
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
	} else if u, err := url.Parse(origin); err == nil && strings.EqualFold(u.Hostname(), s.Hostname()) && (u.Scheme == "ssh" || port(u) == port(s)) {
		path = u.Path
	}
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	name := strings.TrimSuffix(strings.Join(parts, "/"), ".git")
	if form.ValidateRepository(name) != nil {
		return ""
	}
	return name
}

// port is the port of an address; empty for the one that its scheme has anyway.
func port(u *url.URL) string {
	if usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]; u.Port() != usual {
		return u.Port()
	}
	return ""
}

// DefaultBranch is the branch that a clone of a repository stands on.
func DefaultBranch(ctx context.Context, of forge.Repository) (string, error) {
	branch, err := of.DefaultBranch(ctx)
	return branch, ForgeFailure("The default branch of "+of.Name()+" cannot be asked for", err)
}

// LookUpBranch is the commit that a branch ends in; nil when there is no such
// branch.
func LookUpBranch(ctx context.Context, in forge.Repository, branch string) (*forge.Commit, error) {
	commit, err := in.Branch(ctx, branch)
	return commit, ForgeFailure("The branch "+branch+" cannot be looked up", err)
}

// FindPullRequest is the pull request of a task's branch: the open one, which may
// go to another base by now, else the newest; nil when there is none.
func FindPullRequest(ctx context.Context, in forge.Repository, branch, base string) (*forge.PullRequest, error) {
	pull, err := in.FindPullRequest(ctx, branch, base)
	return pull, ForgeFailure("The pull requests of "+in.Name()+" cannot be listed", err)
}

func ReadPullRequest(ctx context.Context, in forge.Repository, number int) (*forge.PullRequest, error) {
	pull, err := in.PullRequest(ctx, number)
	return pull, ForgeFailure(fmt.Sprintf("Pull request #%d cannot be read", number), err)
}

// ForgeFailure is the outcome that an error of a forge stands for; nil for none.
func ForgeFailure(what string, err error) error {
	if err == nil {
		return nil
	}
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
