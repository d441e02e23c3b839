package github

import (
	"context"
	"fmt"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const writeIssues = "issues: write"

// CreateComment writes a comment below an issue or pull request.
func (c *Client) CreateComment(ctx context.Context, owner, name string, number int, body string) (*forge.Comment, error) {
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

// DeleteComment deletes a comment of an issue or pull request. That it is gone
// already is no error.
func (c *Client) DeleteComment(ctx context.Context, owner, name string, id int64) error {
	what := call{doing: fmt.Sprintf("delete the comment %d in %s/%s", id, owner, name), permission: writeIssues}
	if err := checkRepository(what, owner, name); err != nil {
		return err
	}
	_, err := c.rest.Issues.DeleteComment(ctx, owner, name, id)
	if err == nil {
		return nil
	}
	if err = c.failed(ctx, what, err); forge.KindOf(err) == forge.NotFound {
		return nil
	}
	return err
}

// Comments reads the comments of an issue or pull request, oldest first, at most
// MaxComments.
func (c *Client) Comments(ctx context.Context, owner, name string, number int) ([]forge.Comment, error) {
	what := call{doing: fmt.Sprintf("read the comments of %s/%s#%d", owner, name, number), permission: "issues: read"}
	if err := checkRepository(what, owner, name); err != nil {
		return nil, err
	}
	comments, err := c.comments(ctx, owner, name, number)
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	return comments, nil
}
