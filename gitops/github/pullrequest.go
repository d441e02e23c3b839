package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const writePulls = "pull-requests: write"

// FindPullRequest is the pull request from the branch head of the repository
// into base ("" for any): the open one, else an open one into another base, which
// somebody may have given it, else the newest into base; nil when there is none.
func (c *Client) FindPullRequest(ctx context.Context, owner, name, head, base string) (*forge.PullRequest, error) {
	what := call{doing: fmt.Sprintf("look for a pull request from %s in %s/%s", head, owner, name), permission: "pull-requests: read"}
	if err := checkRepository(what, owner, name); err != nil {
		return nil, err
	}
	if err := checkBranch(what, head); err != nil {
		return nil, err
	}
	pulls, _, err := c.rest.PullRequests.List(ctx, owner, name, &gh.PullRequestListOptions{
		State: "all", Head: owner + ":" + head,
		Sort: "created", Direction: "desc", ListOptions: gh.ListOptions{PerPage: pageSize},
	})
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	return preferred(pulls, owner, head, base), nil
}

// preferred checks head again, since GitHub leaves out a filter that it does
// not understand.
func preferred(pulls []*gh.PullRequest, owner, head, base string) *forge.PullRequest {
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

// PullRequest reads a pull request.
func (c *Client) PullRequest(ctx context.Context, owner, name string, number int) (*forge.PullRequest, error) {
	what := call{doing: fmt.Sprintf("read the pull request %s/%s#%d", owner, name, number), permission: "pull-requests: read"}
	if err := checkRepository(what, owner, name); err != nil {
		return nil, err
	}
	pull, _, err := c.rest.PullRequests.Get(ctx, owner, name, number)
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	return pullRequestFrom(pull), nil
}

// CreatePullRequest creates a pull request. Where it cannot be told whether an
// attempt was carried out, it is looked for before the next one. A head that was
// pushed just now may not be known yet; GitHub is given some time to learn of it.
func (c *Client) CreatePullRequest(ctx context.Context, owner, name string, pull forge.NewPullRequest) (*forge.PullRequest, error) {
	for attempt := 1; ; attempt++ {
		created, err := c.createOnce(ctx, owner, name, pull)
		if err == nil || attempt == maxAttempts || forge.KindOf(err) != forge.Unavailable && !unsettled(err) {
			return created, err
		}
		if waitErr := c.wait(ctx, time.Second<<(attempt-1)); waitErr != nil {
			return nil, err
		}
		if forge.KindOf(err) != forge.Unavailable {
			continue
		}
		found, findErr := c.FindPullRequest(ctx, owner, name, pull.Head, pull.Base)
		if findErr != nil {
			return nil, err
		}
		if found != nil && found.State == "open" && found.Base == pull.Base {
			return found, nil
		}
	}
}

func (c *Client) createOnce(ctx context.Context, owner, name string, pull forge.NewPullRequest) (*forge.PullRequest, error) {
	what := call{doing: fmt.Sprintf("create the pull request from %s in %s/%s", pull.Head, owner, name), permission: writePulls}
	if err := checkRepository(what, owner, name); err != nil {
		return nil, err
	}
	created, _, err := c.rest.PullRequests.Create(ctx, owner, name, &gh.NewPullRequest{
		Title: &pull.Title, Head: &pull.Head, Base: &pull.Base, Body: &pull.Body, Draft: &pull.Draft,
	})
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	return pullRequestFrom(created), nil
}

// unsettled says whether GitHub refuses something because one of its parts does
// not know yet what another was told.
func unsettled(err error) bool {
	var failed *forge.Error
	if !errors.As(err, &failed) || failed.Status != http.StatusUnprocessableEntity {
		return false
	}
	for _, words := range []string{"PullRequest head invalid", "No commits between", "Could not resolve to a node"} {
		if strings.Contains(failed.Message, words) {
			return true
		}
	}
	return false
}

// settled makes a call on something that was made just now. Where GitHub does
// not know of it yet, the call is made again a few times.
func (c *Client) settled(ctx context.Context, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if attempt == maxAttempts || forge.KindOf(err) != forge.NotFound && !unsettled(err) {
			return err
		}
		if c.wait(ctx, firstDelay<<attempt) != nil {
			return err
		}
	}
}

// UpdatePullRequest changes a pull request.
func (c *Client) UpdatePullRequest(ctx context.Context, owner, name string, number int, update forge.PullRequestUpdate) (*forge.PullRequest, error) {
	what := call{doing: fmt.Sprintf("update the pull request %s/%s#%d", owner, name, number), permission: writePulls}
	if err := checkRepository(what, owner, name); err != nil {
		return nil, err
	}
	edit := &gh.PullRequest{Title: update.Title, Body: update.Body, State: update.State}
	updated, _, err := c.rest.PullRequests.Edit(ctx, owner, name, number, edit)
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	return pullRequestFrom(updated), nil
}

func pullRequestFrom(pull *gh.PullRequest) *forge.PullRequest {
	return &forge.PullRequest{
		Number:  pull.GetNumber(),
		NodeID:  pull.GetNodeID(),
		URL:     pull.GetHTMLURL(),
		State:   pull.GetState(),
		Draft:   pull.GetDraft(),
		Merged:  pull.GetMerged() || pull.MergedAt != nil, // a list has only the latter
		Title:   pull.GetTitle(),
		Body:    pull.GetBody(),
		Head:    pull.GetHead().GetRef(),
		HeadSHA: pull.GetHead().GetSHA(), HeadRepository: pull.GetHead().GetRepo().GetFullName(),
		Base:   pull.GetBase().GetRef(),
		Author: userFrom(pull.GetUser()),
		Labels: labelNames(pull.Labels), Assignees: logins(pull.Assignees), Milestone: pull.GetMilestone().GetTitle(),
		Reviewers: logins(pull.RequestedReviewers), Teams: slugs(pull.RequestedTeams),
	}
}

func logins(users []*gh.User) []string {
	var list []string
	for _, user := range users {
		list = append(list, user.GetLogin())
	}
	return list
}

func slugs(teams []*gh.Team) []string {
	var list []string
	for _, team := range teams {
		list = append(list, team.GetSlug())
	}
	return list
}
