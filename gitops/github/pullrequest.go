package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const writePulls = "pull-requests: write"

// FindPullRequest looks at the newest pull requests from the branch, up to one page. If the repository was
// transferred, it looks again with its new owner, because GitHub filters by that.
func (r *repository) FindPullRequest(ctx context.Context, head, base string) (*forge.PullRequest, error) {
	call := apiCall{action: fmt.Sprintf("look for a pull request from %s in %s", head, r.fullName), permission: "pull-requests: read", ref: headsPrefix + head}
	owner := r.owner
	pulls, err := request(ctx, r, call, func() ([]*gh.PullRequest, *gh.Response, error) {
		pulls, resp, err := r.listPulls(ctx, owner, head)
		if err != nil || !isRedirected(resp) {
			return pulls, resp, err
		}
		found, resp, err := r.rest.Repositories.Get(ctx, r.owner, r.name)
		if err != nil {
			return pulls, resp, err
		}
		owner = cmp.Or(found.GetOwner().GetLogin(), r.owner)
		if strings.EqualFold(owner, r.owner) {
			return pulls, resp, nil
		}
		return r.listPulls(ctx, owner, head)
	})
	if err != nil {
		return nil, err
	}
	return r.bestPullRequest(pulls, owner, head, base), nil
}

// listPulls lists the newest pull requests from a branch of an owner.
func (r *repository) listPulls(ctx context.Context, owner, head string) ([]*gh.PullRequest, *gh.Response, error) {
	return r.rest.PullRequests.List(ctx, r.owner, r.name, &gh.PullRequestListOptions{
		State: "all", Head: owner + ":" + head,
		Sort: "created", Direction: "desc", ListOptions: gh.ListOptions{PerPage: pageSize},
	})
}

// isRedirected reports whether the server redirected the call, as it does if the repository was renamed or
// transferred.
func isRedirected(resp *gh.Response) bool { return resp.Request.Response != nil }

// bestPullRequest returns the best pull request from head, or nil. An open one into base is best, then an
// open one into another base, then the newest closed one into base. An empty base fits any. GitHub ignores
// filters that it does not understand, so it checks head again.
func (r *repository) bestPullRequest(pulls []*gh.PullRequest, owner, head, base string) *forge.PullRequest {
	var newest, otherBase *gh.PullRequest
	for _, pull := range pulls {
		from := pull.GetHead()
		if from.GetRef() != head || !strings.EqualFold(from.GetUser().GetLogin(), owner) {
			continue
		}
		open, intoBase := pull.GetState() == "open", base == "" || pull.GetBase().GetRef() == base
		switch {
		case open && intoBase:
			return r.pullRequestFrom(pull)
		case open:
			otherBase = pull
		case intoBase && (newest == nil || pull.GetNumber() > newest.GetNumber()):
			newest = pull
		}
	}
	if found := cmp.Or(otherBase, newest); found != nil {
		return r.pullRequestFrom(found)
	}
	return nil
}

// PullRequest reads a pull request.
func (r *repository) PullRequest(ctx context.Context, number int) (*forge.PullRequest, error) {
	call := apiCall{action: fmt.Sprintf("read the pull request %s#%d", r.fullName, number), permission: "pull-requests: read"}
	return r.requestPullRequest(ctx, call, func() (*gh.PullRequest, *gh.Response, error) {
		return r.rest.PullRequests.Get(ctx, r.owner, r.name, number)
	})
}

// CreatePullRequest creates a pull request and retries failed attempts. Before a retry it checks whether the
// attempt did create the pull request. It also retries if GitHub does not know a newly pushed head yet.
func (r *repository) CreatePullRequest(ctx context.Context, pull forge.NewPullRequest) (*forge.PullRequest, error) {
	send := func() (*forge.PullRequest, error) { return r.createOnce(ctx, pull) }
	return create(ctx, r, send, func() (*forge.PullRequest, error) {
		found, err := r.FindPullRequest(ctx, pull.Head, pull.Base)
		if found == nil || found.State != "open" || found.Base != pull.Base {
			return nil, err
		}
		return found, nil
	})
}

// create calls send and retries failed attempts. An attempt without a reply may have created the item: then find looks for
// it before a retry, and returns nil if it does not exist.
func create[T any](ctx context.Context, r *repository, send, find func() (*T, error)) (created *T, err error) {
	r.retry(ctx, func() bool {
		if forge.KindOf(err) == forge.Unavailable {
			found, findErr := find()
			if found != nil {
				created, err = found, nil
			}
			if found != nil || findErr != nil {
				return false
			}
		}
		created, err = send()
		return forge.KindOf(err) == forge.Unavailable || isUnknownObject(err)
	})
	return created, err
}

// createOnce sends one attempt of CreatePullRequest.
func (r *repository) createOnce(ctx context.Context, pull forge.NewPullRequest) (*forge.PullRequest, error) {
	call := apiCall{action: fmt.Sprintf("create the pull request from %s in %s", pull.Head, r.fullName), permission: writePulls}
	return r.requestPullRequest(ctx, call, func() (*gh.PullRequest, *gh.Response, error) {
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
func (r *repository) retryUnknownObject(ctx context.Context, call apiCall, send func() error) (err error) {
	r.retry(ctx, func() bool {
		err = r.runCall(ctx, call, send)
		return forge.KindOf(err) == forge.NotFound || isUnknownObject(err)
	})
	return err
}

// UpdatePullRequest changes the fields of a pull request that update sets.
func (r *repository) UpdatePullRequest(ctx context.Context, number int, update forge.PullRequestUpdate) (*forge.PullRequest, error) {
	call := apiCall{action: fmt.Sprintf("update the pull request %s#%d", r.fullName, number), permission: writePulls}
	edit := &gh.PullRequest{Title: update.Title, Body: update.Body, State: update.State}
	return r.requestPullRequest(ctx, call, func() (*gh.PullRequest, *gh.Response, error) {
		return r.rest.PullRequests.Edit(ctx, r.owner, r.name, number, edit)
	})
}

// requestPullRequest sends a call that returns a pull request.
func (r *repository) requestPullRequest(ctx context.Context, call apiCall, send func() (*gh.PullRequest, *gh.Response, error)) (*forge.PullRequest, error) {
	pull, err := request(ctx, r, call, send)
	if err != nil {
		return nil, err
	}
	return r.pullRequestFrom(pull), nil
}

// pullRequestFrom converts a pull request of go-github. A head in the repository itself gets the name that r has
// for it, which may be an earlier one.
func (r *repository) pullRequestFrom(pull *gh.PullRequest) *forge.PullRequest {
	headRepository := pull.GetHead().GetRepo().GetFullName()
	if headRepository != "" && headRepository == pull.GetBase().GetRepo().GetFullName() {
		headRepository = r.fullName
	}
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
		HeadSHA:   pull.GetHead().GetSHA(), HeadRepository: headRepository,
		Base:   pull.GetBase().GetRef(),
		Labels: namesOf(pull.Labels, (*gh.Label).GetName),
		People: forge.People{
			Author:    userFrom(pull.GetUser()),
			Assignees: namesOf(pull.Assignees, (*gh.User).GetLogin),
			Reviewers: namesOf(pull.RequestedReviewers, (*gh.User).GetLogin), Teams: namesOf(pull.RequestedTeams, (*gh.Team).GetSlug),
		},
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

// AddLabels adds labels. It creates missing labels, if the token may do that.
func (r *repository) AddLabels(ctx context.Context, number int, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	call := apiCall{action: fmt.Sprintf("label %s#%d", r.fullName, number), permission: writeIssues + " (of a pull request " + writePulls + ")"}
	return r.retryUnknownObject(ctx, call, func() error { // go-github sends only the list, which GitHub does not document
		return r.sendJSON(ctx, http.MethodPost, fmt.Sprintf("repos/%s/issues/%d/labels", r.fullName, number), map[string][]string{"labels": labels}, nil)
	})
}

// AddAssignees assigns accounts. GitHub silently ignores accounts that it cannot assign, so it checks the
// result.
func (r *repository) AddAssignees(ctx context.Context, number int, logins []string) error {
	if len(logins) == 0 {
		return nil
	}
	call := apiCall{action: fmt.Sprintf("assign %s#%d", r.fullName, number), permission: writePulls}
	issue, err := request(ctx, r, call, func() (*gh.Issue, *gh.Response, error) {
		return r.rest.Issues.AddAssignees(ctx, r.owner, r.name, number, logins)
	})
	if err != nil {
		return err
	}
	if missing := forge.MissingNames(logins, namesOf(issue.Assignees, (*gh.User).GetLogin)); len(missing) > 0 {
		return &forge.Error{
			Kind: forge.Invalid, Doing: call.action, Message: "GitHub did not assign " + strings.Join(missing, ", "),
			Remedy: "name accounts with access to the repository, at most ten",
		}
	}
	return nil
}

// RequestReviewers asks accounts and teams for a review. It retries while GitHub does not know a
// new pull request.
func (r *repository) RequestReviewers(ctx context.Context, number int, users, teams []string) error {
	if len(users)+len(teams) == 0 {
		return nil
	}
	call := apiCall{action: fmt.Sprintf("request reviews of %s#%d", r.fullName, number), permission: writePulls}
	reviewers := gh.ReviewersRequest{Reviewers: users, TeamReviewers: teams}
	return r.retryUnknownObject(ctx, call, func() error {
		_, _, err := r.rest.PullRequests.RequestReviewers(ctx, r.owner, r.name, number, reviewers)
		return err
	})
}
