package github

import (
	"context"
	"fmt"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const writeIssues = "issues: write"

func (r *repository) CreateComment(ctx context.Context, number int, body string) (*forge.Comment, error) {
	what := call{doing: fmt.Sprintf("comment on %s#%d", r.fullName, number), permission: writeIssues}
	if err := r.check(what); err != nil {
		return nil, err
	}
	written, _, err := r.rest.Issues.CreateComment(ctx, r.owner, r.name, number, &gh.IssueComment{Body: &body})
	if err != nil {
		return nil, r.failed(ctx, what, err)
	}
	comment := commentFrom(written)
	return &comment, nil
}

func (r *repository) EditComment(ctx context.Context, id int64, body string) error {
	what := call{doing: fmt.Sprintf("edit the comment %d in %s", id, r.fullName), permission: writeIssues}
	if err := r.check(what); err != nil {
		return err
	}
	if _, _, err := r.rest.Issues.EditComment(ctx, r.owner, r.name, id, &gh.IssueComment{Body: &body}); err != nil {
		return r.failed(ctx, what, err)
	}
	return nil
}

func (r *repository) DeleteComment(ctx context.Context, id int64) error {
	what := call{doing: fmt.Sprintf("delete the comment %d in %s", id, r.fullName), permission: writeIssues}
	if err := r.check(what); err != nil {
		return err
	}
	_, err := r.rest.Issues.DeleteComment(ctx, r.owner, r.name, id)
	if err == nil {
		return nil
	}
	if err = r.failed(ctx, what, err); forge.KindOf(err) == forge.NotFound {
		return nil
	}
	return err
}

func (r *repository) Comments(ctx context.Context, number int) ([]forge.Comment, error) {
	what := call{doing: fmt.Sprintf("read the comments of %s#%d", r.fullName, number), permission: "issues: read"}
	if err := r.check(what); err != nil {
		return nil, err
	}
	comments, err := r.comments(ctx, number)
	if err != nil {
		return nil, r.failed(ctx, what, err)
	}
	return comments, nil
}

func (r *repository) ReviewComments(ctx context.Context, number int) ([]forge.ReviewComment, error) {
	what := call{doing: fmt.Sprintf("read the review comments of %s#%d", r.fullName, number), permission: "pull-requests: read"}
	if err := r.check(what); err != nil {
		return nil, err
	}
	var comments []forge.ReviewComment
	options := &gh.PullRequestListCommentsOptions{ListOptions: gh.ListOptions{Page: 1, PerPage: pageSize}}
	for len(comments) < forge.MaxComments {
		page, resp, err := r.rest.PullRequests.ListComments(ctx, r.owner, r.name, number, options)
		if err != nil {
			return nil, r.failed(ctx, what, err)
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
