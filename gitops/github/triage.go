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

// AddLabels also makes GitHub create labels that the repository does not have,
// when the token may do so.
func (r *repository) AddLabels(ctx context.Context, number int, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	what := call{doing: fmt.Sprintf("label %s#%d", r.fullName, number), permission: writePulls}
	return r.settled(ctx, what, func() error { // go-github sends the list alone, a form that GitHub does not describe
		return r.send(ctx, http.MethodPost, fmt.Sprintf("repos/%s/issues/%d/labels", r.fullName, number), map[string][]string{"labels": labels}, nil)
	})
}

// AddAssignees compares what was asked for with what came of it: GitHub leaves
// out those that it cannot assign, without saying so.
func (r *repository) AddAssignees(ctx context.Context, number int, logins []string) error {
	if len(logins) == 0 {
		return nil
	}
	what := call{doing: fmt.Sprintf("assign %s#%d", r.fullName, number), permission: writePulls}
	issue, err := ask(ctx, r, what, func() (*gh.Issue, *gh.Response, error) {
		return r.rest.Issues.AddAssignees(ctx, r.owner, r.name, number, logins)
	})
	if err != nil {
		return err
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

func (r *repository) RequestReviewers(ctx context.Context, number int, users, teams []string) error {
	if len(users)+len(teams) == 0 {
		return nil
	}
	what := call{doing: fmt.Sprintf("request reviews of %s#%d", r.fullName, number), permission: writePulls}
	reviewers := gh.ReviewersRequest{Reviewers: users, TeamReviewers: teams}
	return r.settled(ctx, what, func() error {
		_, _, err := r.rest.PullRequests.RequestReviewers(ctx, r.owner, r.name, number, reviewers)
		return err
	})
}

func (r *repository) SetMilestone(ctx context.Context, number int, title string) error {
	what := call{doing: fmt.Sprintf("set the milestone of %s#%d", r.fullName, number), permission: writePulls}
	var milestone *gh.Milestone
	err := r.do(ctx, what, func() (err error) {
		milestone, err = r.milestone(ctx, title)
		return err
	})
	if err != nil {
		return err
	}
	if milestone == nil {
		return &forge.Error{
			Kind: forge.NotFound, Doing: what.doing, Message: fmt.Sprintf("the repository has no open milestone %q", title),
			Remedy: "create it or name another",
		}
	}
	request := &gh.IssueRequest{Milestone: milestone.Number}
	return r.do(ctx, what, func() error {
		_, _, err := r.rest.Issues.Edit(ctx, r.owner, r.name, number, request)
		return err
	})
}

func (r *repository) milestone(ctx context.Context, title string) (*gh.Milestone, error) {
	var numbered *gh.Milestone
	options := &gh.MilestoneListOptions{State: "open", ListOptions: gh.ListOptions{Page: 1, PerPage: pageSize}}
	for options.Page != 0 && options.Page <= maxMilestonePages {
		page, resp, err := r.rest.Issues.ListMilestones(ctx, r.owner, r.name, options)
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
