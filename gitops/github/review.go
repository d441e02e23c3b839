package github

import (
	"context"
	"fmt"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// ReviewComments reads the comments on the diff of a pull request, oldest first,
// at most MaxComments.
func (c *Client) ReviewComments(ctx context.Context, owner, name string, number int) ([]forge.ReviewComment, error) {
	what := call{doing: fmt.Sprintf("read the review comments of %s/%s#%d", owner, name, number), permission: "pull-requests: read"}
	if err := checkRepository(what, owner, name); err != nil {
		return nil, err
	}
	var comments []forge.ReviewComment
	options := &gh.PullRequestListCommentsOptions{ListOptions: gh.ListOptions{Page: 1, PerPage: pageSize}}
	for len(comments) < forge.MaxComments {
		page, resp, err := c.rest.PullRequests.ListComments(ctx, owner, name, number, options)
		if err != nil {
			return nil, c.failed(ctx, what, err)
		}
		for _, each := range page {
			comments = append(comments, forge.ReviewComment{
				ID: each.GetID(), ReviewID: each.GetPullRequestReviewID(), Author: userFrom(each.GetUser()),
				Path: each.GetPath(), Line: each.GetLine(), DiffHunk: each.GetDiffHunk(), Body: each.GetBody(), CreatedAt: each.GetCreatedAt().Time,
				UpdatedAt: each.GetUpdatedAt().Time,
			})
		}
		if resp.NextPage <= options.Page {
			break
		}
		options.Page = resp.NextPage
	}
	return comments, nil
}
