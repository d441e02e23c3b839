package github

import (
	"context"
	"fmt"
	"time"

	gh "github.com/google/go-github/v60/github"
)

const (
	// MaxComments is how many comments of an issue are read, the oldest first.
	MaxComments = 1000

	pageSize = 100
)

// User is an account.
type User struct {
	Login string
	ID    int64
	Bot   bool
}

// Issue is an issue with its comments. GitHub numbers pull requests as issues;
// PullRequest tells them apart.
type Issue struct {
	Number      int
	Title       string
	Body        string
	State       string // open or closed
	ClosedBy    User   // the last one; nobody's while open, and where the account is gone
	URL         string
	PullRequest bool
	Author      User
	Association string // of the author: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, …, NONE
	Labels      []string
	CreatedAt   time.Time
	UpdatedAt   time.Time // of anything about it: text, labels, comments
	Comments    []Comment // oldest first, at most MaxComments
	// MoreComments is how many comments there are that were not read.
	MoreComments int
}

// Comment is a comment of an issue.
type Comment struct {
	ID          int64
	Author      User
	Association string // as in Issue
	Body        string
	URL         string
	CreatedAt   time.Time
	UpdatedAt   time.Time // later than CreatedAt when it was edited
}

// Issue reads an issue and its comments. An issue that was moved to another
// repository is not found; the error says where it is.
func (c *Client) Issue(ctx context.Context, owner, name string, number int) (*Issue, error) {
	what := call{doing: fmt.Sprintf("read the issue %s/%s#%d", owner, name, number), permission: "issues: read"}
	if err := checkRepository(what, owner, name); err != nil {
		return nil, err
	}
	found, _, err := c.rest.Issues.Get(ctx, owner, name, number)
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	if found.GetNumber() != number {
		return nil, &Error{
			Kind: NotFound, Doing: what.doing, Message: "the issue was moved to " + c.printable(found.GetHTMLURL()),
			Remedy: "name the issue where it is now",
		}
	}
	issue := issueFrom(found)
	if found.GetComments() == 0 {
		return issue, nil
	}
	issue.Comments, err = c.comments(ctx, owner, name, number)
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	issue.MoreComments = max(found.GetComments()-len(issue.Comments), 0)
	return issue, nil
}

func (c *Client) comments(ctx context.Context, owner, name string, number int) ([]Comment, error) {
	var comments []Comment
	options := &gh.IssueListCommentsOptions{ListOptions: gh.ListOptions{Page: 1, PerPage: pageSize}}
	for {
		page, resp, err := c.rest.Issues.ListComments(ctx, owner, name, number, options)
		if err != nil {
			return nil, err
		}
		for _, comment := range page {
			comments = append(comments, commentFrom(comment))
		}
		if len(comments) >= MaxComments {
			return comments[:MaxComments], nil
		}
		if resp.NextPage <= options.Page {
			return comments, nil
		}
		options.Page = resp.NextPage
	}
}

func issueFrom(issue *gh.Issue) *Issue {
	return &Issue{
		Number:      issue.GetNumber(),
		Title:       issue.GetTitle(),
		Body:        issue.GetBody(),
		State:       issue.GetState(),
		ClosedBy:    userFrom(issue.GetClosedBy()),
		URL:         issue.GetHTMLURL(),
		PullRequest: issue.IsPullRequest(),
		Author:      userFrom(issue.GetUser()),
		Association: issue.GetAuthorAssociation(),
		Labels:      labelNames(issue.Labels),
		CreatedAt:   issue.GetCreatedAt().Time,
		UpdatedAt:   issue.GetUpdatedAt().Time,
	}
}

func commentFrom(comment *gh.IssueComment) Comment {
	return Comment{
		ID:          comment.GetID(),
		Author:      userFrom(comment.GetUser()),
		Association: comment.GetAuthorAssociation(),
		Body:        comment.GetBody(),
		URL:         comment.GetHTMLURL(),
		CreatedAt:   comment.GetCreatedAt().Time,
		UpdatedAt:   comment.GetUpdatedAt().Time,
	}
}

func userFrom(user *gh.User) User {
	return User{Login: user.GetLogin(), ID: user.GetID(), Bot: user.GetType() == "Bot"}
}

func labelNames(labels []*gh.Label) []string {
	names := make([]string, 0, len(labels))
	for _, label := range labels {
		names = append(names, label.GetName())
	}
	return names
}
