package github

import (
	"context"
	"fmt"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const pageSize = 100

// Issue reads an issue with its comments. GitHub redirects to the new place of a transferred issue,
// so the number shows whether it was moved.
func (r *repository) Issue(ctx context.Context, number int) (*forge.Issue, error) {
	call := apiCall{action: fmt.Sprintf("read the issue %s#%d", r.fullName, number), permission: "issues: read"}
	found, err := request(ctx, r, call, func() (*gh.Issue, *gh.Response, error) { return r.rest.Issues.Get(ctx, r.owner, r.name, number) })
	if err != nil {
		return nil, err
	}
	if found.GetNumber() != number {
		return nil, &forge.Error{
			Kind: forge.NotFound, Doing: call.action, Message: "the issue was moved to " + r.printable(found.GetHTMLURL()),
			Remedy: "name the issue where it is now",
		}
	}
	issue := issueFrom(found)
	if found.GetComments() == 0 {
		return issue, nil
	}
	if issue.Comments, err = r.listComments(ctx, call, number); err != nil {
		return nil, err
	}
	issue.MoreComments = max(found.GetComments()-len(issue.Comments), 0)
	return issue, nil
}

// issueFrom converts an issue of go-github, without comments.
func issueFrom(issue *gh.Issue) *forge.Issue {
	return &forge.Issue{
		Title:       issue.GetTitle(),
		Body:        issue.GetBody(),
		State:       issue.GetState(),
		URL:         issue.GetHTMLURL(),
		PullRequest: issue.IsPullRequest(),
		Author:      userFrom(issue.GetUser()),
		Labels:      namesOf(issue.Labels, (*gh.Label).GetName),
		UpdatedAt:   issue.GetUpdatedAt().Time,
	}
}

// userFrom converts an account of go-github. A nil account becomes the zero User.
func userFrom(user *gh.User) forge.User {
	return forge.User{Login: user.GetLogin(), ID: user.GetID(), Bot: user.GetType() == "Bot"}
}
