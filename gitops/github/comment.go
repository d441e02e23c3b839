package github

import (
	"context"
	"fmt"

	gh "github.com/google/go-github/v60/github"
)

const writeIssues = "issues: write"

// CreateComment writes a comment below an issue or pull request.
func (c *Client) CreateComment(ctx context.Context, owner, name string, number int, body string) (*Comment, error) {
	what := call{doing: fmt.Sprintf("comment on %s/%s#%d", owner, name, number), permission: writeIssues}
	if err := checkRepository(what, owner, name); err != nil {
		return nil, err
	}
	written, _, err := c.rest.Issues.CreateComment(ctx, owner, name, number, &gh.IssueComment{Body: &body})
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	comment := commentFrom(written)
	return &comment, nil
}

// EditComment replaces the text of a comment of an issue or pull request.
func (c *Client) EditComment(ctx context.Context, owner, name string, id int64, body string) error {
	what := call{doing: fmt.Sprintf("edit the comment %d in %s/%s", id, owner, name), permission: writeIssues}
	if err := checkRepository(what, owner, name); err != nil {
		return err
	}
	if _, _, err := c.rest.Issues.EditComment(ctx, owner, name, id, &gh.IssueComment{Body: &body}); err != nil {
		return c.failed(ctx, what, err)
	}
	return nil
}
