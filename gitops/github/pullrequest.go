package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/transport"
)

const writePulls = "pull-requests: write"

// FindPullRequest looks at the newest pull requests from the branch, up to one page.
func (r *repository) FindPullRequest(ctx context.Context, head, base string) (*forge.PullRequest, error) {
	what := call{action: fmt.Sprintf("look for a pull request from %s in %s", head, r.fullName), permission: "pull-requests: read", ref: heads + head}
	pulls, err := ask(ctx, r, what, func() ([]*gh.PullRequest, *gh.Response, error) {
		return r.rest.PullRequests.List(ctx, r.owner, r.name, &gh.PullRequestListOptions{
			State: "all", Head: r.owner + ":" + head,
			Sort: "created", Direction: "desc", ListOptions: gh.ListOptions{PerPage: pageSize},
		})
	})
	if err != nil {
		return nil, err
	}
	return bestPullRequest(pulls, r.owner, head, base), nil
}

// bestPullRequest returns the best pull request from head, or nil. An open one into base is best, then an
// open one into another base, then the newest closed one into base. If base is "", any base fits.
// It checks head again, because GitHub ignores filters that it does not understand.
func bestPullRequest(pulls []*gh.PullRequest, owner, head, base string) *forge.PullRequest {
	var newest, elsewhere *gh.PullRequest
	for _, pull := range pulls {
		from := pull.GetHead()
		if from.GetRef() != head || !strings.EqualFold(from.GetUser().GetLogin(), owner) {
			continue
		}
		open, wanted := pull.GetState() == "open", base == "" || pull.GetBase().GetRef() == base
		switch {
		case open && wanted:
			return pullRequestFrom(pull)
		case open:
			elsewhere = pull
		case wanted && (newest == nil || pull.GetNumber() > newest.GetNumber()):
			newest = pull
		}
	}
	if found := cmp.Or(elsewhere, newest); found != nil {
		return pullRequestFrom(found)
	}
	return nil
}

func (r *repository) PullRequest(ctx context.Context, number int) (*forge.PullRequest, error) {
	what := call{action: fmt.Sprintf("read the pull request %s#%d", r.fullName, number), permission: "pull-requests: read"}
	return r.pullRequest(ctx, what, func() (*gh.PullRequest, *gh.Response, error) {
		return r.rest.PullRequests.Get(ctx, r.owner, r.name, number)
	})
}

// CreatePullRequest retries a failed attempt. Before that it looks whether the attempt did create
// the pull request. It also retries if GitHub does not know a newly pushed head yet.
func (r *repository) CreatePullRequest(ctx context.Context, pull forge.NewPullRequest) (*forge.PullRequest, error) {
	for attempt := 1; ; attempt++ {
		created, err := r.createOnce(ctx, pull)
		if err == nil || attempt == transport.MaxAttempts || forge.KindOf(err) != forge.Unavailable && !isUnknownObject(err) {
			return created, err
		}
		if waitErr := r.wait(ctx, time.Second<<(attempt-1)); waitErr != nil {
			return nil, err
		}
		if forge.KindOf(err) != forge.Unavailable {
			continue
		}
		found, findErr := r.FindPullRequest(ctx, pull.Head, pull.Base)
		if findErr != nil {
			return nil, err
		}
		if found != nil && found.State == "open" && found.Base == pull.Base {
			return found, nil
		}
	}
}

// createOnce sends one attempt of CreatePullRequest.
func (r *repository) createOnce(ctx context.Context, pull forge.NewPullRequest) (*forge.PullRequest, error) {
	what := call{action: fmt.Sprintf("create the pull request from %s in %s", pull.Head, r.fullName), permission: writePulls}
	return r.pullRequest(ctx, what, func() (*gh.PullRequest, *gh.Response, error) {
		return r.rest.PullRequests.Create(ctx, r.owner, r.name, &gh.NewPullRequest{
			Title: &pull.Title, Head: &pull.Head, Base: &pull.Base, Body: &pull.Body, Draft: &pull.Draft,
		})
	})
}

// isUnknownObject reports whether GitHub refused a call because it does not know a new object yet.
func isUnknownObject(err error) bool {
	failed, ok := errors.AsType[*forge.Error](err)
	return ok && failed.Status == http.StatusUnprocessableEntity &&
		slices.ContainsFunc([]string{"PullRequest head invalid", "No commits between", "Could not resolve to a node"}, func(words string) bool {
			return strings.Contains(failed.Message, words)
		})
}

// retryUnknownObject sends a call about a new object. It retries the call a few times if GitHub does not know
// the object yet.
func (r *repository) retryUnknownObject(ctx context.Context, what call, send func() error) error {
	for attempt := 1; ; attempt++ {
		err := r.run(ctx, what, send)
		if attempt == transport.MaxAttempts || forge.KindOf(err) != forge.NotFound && !isUnknownObject(err) {
			return err
		}
		if r.wait(ctx, transport.FirstDelay<<attempt) != nil {
			return err
		}
	}
}

func (r *repository) UpdatePullRequest(ctx context.Context, number int, update forge.PullRequestUpdate) (*forge.PullRequest, error) {
	what := call{action: fmt.Sprintf("update the pull request %s#%d", r.fullName, number), permission: writePulls}
	edit := &gh.PullRequest{Title: update.Title, Body: update.Body, State: update.State}
	return r.pullRequest(ctx, what, func() (*gh.PullRequest, *gh.Response, error) {
		return r.rest.PullRequests.Edit(ctx, r.owner, r.name, number, edit)
	})
}

func (r *repository) pullRequest(ctx context.Context, what call, send func() (*gh.PullRequest, *gh.Response, error)) (*forge.PullRequest, error) {
	pull, err := ask(ctx, r, what, send)
	if err != nil {
		return nil, err
	}
	return pullRequestFrom(pull), nil
}

// pullRequestFrom converts a pull request of go-github.
func pullRequestFrom(pull *gh.PullRequest) *forge.PullRequest {
	return &forge.PullRequest{
		Number:    pull.GetNumber(),
		NodeID:    pull.GetNodeID(),
		URL:       pull.GetHTMLURL(),
		State:     pull.GetState(),
		Draft:     pull.GetDraft(),
		Merged:    pull.GetMerged() || pull.MergedAt != nil, // a list has only MergedAt
		Mergeable: pull.GetMergeableState(),
		Title:     pull.GetTitle(),
		Body:      pull.GetBody(),
		Head:      pull.GetHead().GetRef(),
		HeadSHA:   pull.GetHead().GetSHA(), HeadRepository: pull.GetHead().GetRepo().GetFullName(),
		Base:      pull.GetBase().GetRef(),
		Author:    userFrom(pull.GetUser()),
		Labels:    namesOf(pull.Labels, (*gh.Label).GetName),
		Assignees: namesOf(pull.Assignees, (*gh.User).GetLogin),
		Reviewers: namesOf(pull.RequestedReviewers, (*gh.User).GetLogin), Teams: namesOf(pull.RequestedTeams, (*gh.Team).GetSlug),
	}
}

// namesOf returns the name of each element.
func namesOf[T any](list []T, name func(T) string) []string {
	var all []string
	for _, each := range list {
		all = append(all, name(each))
	}
	return all
}

// AddLabels also creates labels that do not exist, if the token may do that.
func (r *repository) AddLabels(ctx context.Context, number int, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	what := call{action: fmt.Sprintf("label %s#%d", r.fullName, number), permission: writeIssues + " (of a pull request " + writePulls + ")"}
	return r.retryUnknownObject(ctx, what, func() error { // go-github sends only the list, which GitHub does not document
		return r.send(ctx, http.MethodPost, fmt.Sprintf("repos/%s/issues/%d/labels", r.fullName, number), map[string][]string{"labels": labels}, nil)
	})
}

// AddAssignees checks the result, because GitHub silently ignores accounts that it cannot assign.
func (r *repository) AddAssignees(ctx context.Context, number int, logins []string) error {
	if len(logins) == 0 {
		return nil
	}
	what := call{action: fmt.Sprintf("assign %s#%d", r.fullName, number), permission: writePulls}
	issue, err := ask(ctx, r, what, func() (*gh.Issue, *gh.Response, error) {
		return r.rest.Issues.AddAssignees(ctx, r.owner, r.name, number, logins)
	})
	if err != nil {
		return err
	}
	if missing := unassigned(logins, issue.Assignees); len(missing) > 0 {
		return &forge.Error{
			Kind: forge.Invalid, Doing: what.action, Message: "GitHub did not assign " + strings.Join(missing, ", "),
			Remedy: "name accounts with access to the repository, at most ten",
		}
	}
	return nil
}

// unassigned returns the logins that are not among the assignees.
func unassigned(logins []string, assignees []*gh.User) []string {
	return slices.DeleteFunc(slices.Clone(logins), func(login string) bool {
		return slices.ContainsFunc(assignees, func(user *gh.User) bool {
			return strings.EqualFold(user.GetLogin(), login)
		})
	})
}

// RequestReviewers asks accounts and teams for a review. It retries while GitHub does not know a
// new pull request.
func (r *repository) RequestReviewers(ctx context.Context, number int, users, teams []string) error {
	if len(users)+len(teams) == 0 {
		return nil
	}
	what := call{action: fmt.Sprintf("request reviews of %s#%d", r.fullName, number), permission: writePulls}
	reviewers := gh.ReviewersRequest{Reviewers: users, TeamReviewers: teams}
	return r.retryUnknownObject(ctx, what, func() error {
		_, _, err := r.rest.PullRequests.RequestReviewers(ctx, r.owner, r.name, number, reviewers)
		return err
	})
}
