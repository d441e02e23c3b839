package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const maxMilestonePages = 10

// AddLabels adds labels to an issue or pull request. GitHub creates those that
// the repository does not have when the token may do so.
func (c *Client) AddLabels(ctx context.Context, owner, name string, number int, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	what := call{doing: fmt.Sprintf("label %s/%s#%d", owner, name, number), permission: writePulls}
	if err := checkRepository(what, owner, name); err != nil {
		return err
	}
	// go-github sends the list alone, a form that GitHub does not describe.
	return c.settled(ctx, func() error {
		request, err := c.rest.NewRequest(http.MethodPost, fmt.Sprintf("repos/%s/%s/issues/%d/labels", owner, name, number),
			map[string][]string{"labels": labels})
		if err == nil {
			_, err = c.rest.Do(ctx, request, nil)
		}
		if err != nil {
			return c.failed(ctx, what, err)
		}
		return nil
	})
}

// AddAssignees assigns accounts to an issue or pull request. GitHub leaves out
// those that it cannot assign without saying so; here that is an error of kind
// Invalid, after the others were assigned.
func (c *Client) AddAssignees(ctx context.Context, owner, name string, number int, logins []string) error {
	if len(logins) == 0 {
		return nil
	}
	what := call{doing: fmt.Sprintf("assign %s/%s#%d", owner, name, number), permission: writePulls}
	if err := checkRepository(what, owner, name); err != nil {
		return err
	}
	issue, _, err := c.rest.Issues.AddAssignees(ctx, owner, name, number, logins)
	if err != nil {
		return c.failed(ctx, what, err)
	}
	if missing := unassigned(logins, issue.Assignees); len(missing) > 0 {
		return &forge.Error{
			Kind: forge.Invalid, Doing: what.doing, Message: "GitHub did not assign " + strings.Join(missing, ", "),
			Remedy: "name accounts with access to the repository, at most ten",
		}
	}
	return nil
}

func unassigned(logins []string, assignees []*gh.User) []string {
	return slices.DeleteFunc(slices.Clone(logins), func(login string) bool {
		return slices.ContainsFunc(assignees, func(user *gh.User) bool {
			return strings.EqualFold(user.GetLogin(), login)
		})
	})
}

// RequestReviewers asks accounts and teams (slugs) of the owner's organisation
// for a review.
func (c *Client) RequestReviewers(ctx context.Context, owner, name string, number int, users, teams []string) error {
	if len(users)+len(teams) == 0 {
		return nil
	}
	what := call{doing: fmt.Sprintf("request reviews of %s/%s#%d", owner, name, number), permission: writePulls}
	if err := checkRepository(what, owner, name); err != nil {
		return err
	}
	reviewers := gh.ReviewersRequest{Reviewers: users, TeamReviewers: teams}
	return c.settled(ctx, func() error {
		if _, _, err := c.rest.PullRequests.RequestReviewers(ctx, owner, name, number, reviewers); err != nil {
			return c.failed(ctx, what, err)
		}
		return nil
	})
}

// SetMilestone puts an issue or pull request into the open milestone with a
// title, or else with that number; an error of kind NotFound when there is none.
func (c *Client) SetMilestone(ctx context.Context, owner, name string, number int, title string) error {
	what := call{doing: fmt.Sprintf("set the milestone of %s/%s#%d", owner, name, number), permission: writePulls}
	if err := checkRepository(what, owner, name); err != nil {
		return err
	}
	milestone, err := c.milestone(ctx, owner, name, title)
	if err != nil {
		return c.failed(ctx, what, err)
	}
	if milestone == nil {
		return &forge.Error{
			Kind: forge.NotFound, Doing: what.doing, Message: fmt.Sprintf("the repository has no open milestone %q", title),
			Remedy: "create it or name another",
		}
	}
	request := &gh.IssueRequest{Milestone: milestone.Number}
	if _, _, err := c.rest.Issues.Edit(ctx, owner, name, number, request); err != nil {
		return c.failed(ctx, what, err)
	}
	return nil
}

func (c *Client) milestone(ctx context.Context, owner, name, title string) (*gh.Milestone, error) {
	var numbered *gh.Milestone
	options := &gh.MilestoneListOptions{State: "open", ListOptions: gh.ListOptions{Page: 1, PerPage: pageSize}}
	for options.Page != 0 && options.Page <= maxMilestonePages {
		page, resp, err := c.rest.Issues.ListMilestones(ctx, owner, name, options)
		if err != nil {
			return nil, err
		}
		for _, milestone := range page {
			if milestone.GetTitle() == title {
				return milestone, nil
			}
			if strconv.Itoa(milestone.GetNumber()) == title {
				numbered = milestone
			}
		}
		options.Page = resp.NextPage
	}
	return numbered, nil
}
