package github

import (
	"context"
	"fmt"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const writeIssues = "issues: write"

// CreateComment comments on an issue or pull request.
func (r *repository) CreateComment(ctx context.Context, number int, body string) (*forge.Comment, error) {
	call := apiCall{action: fmt.Sprintf("comment on %s#%d", r.fullName, number), permission: writeIssues}
	written, err := request(ctx, r, call, func() (*gh.IssueComment, *gh.Response, error) {
		return r.rest.Issues.CreateComment(ctx, r.owner, r.name, number, &gh.IssueComment{Body: &body})
	})
	if err != nil {
		return nil, err
	}
	comment := commentFrom(written)
	return &comment, nil
}

// EditComment replaces the text of a comment.
func (r *repository) EditComment(ctx context.Context, id int64, body string) error {
	call := apiCall{action: fmt.Sprintf("edit the comment %d in %s", id, r.fullName), permission: writeIssues}
	return r.runCall(ctx, call, func() error {
		_, _, err := r.rest.Issues.EditComment(ctx, r.owner, r.name, id, &gh.IssueComment{Body: &body})
		return err
	})
}

// DeleteComment deletes a comment. A missing comment is no error.
func (r *repository) DeleteComment(ctx context.Context, id int64) error {
	call := apiCall{action: fmt.Sprintf("delete the comment %d in %s", id, r.fullName), permission: writeIssues}
	err := r.runCall(ctx, call, func() error {
		_, err := r.rest.Issues.DeleteComment(ctx, r.owner, r.name, id)
		return err
	})
	if forge.KindOf(err) == forge.NotFound {
		return nil
	}
	return err
}

// Comments reads the comments of an issue or pull request.
func (r *repository) Comments(ctx context.Context, number int) ([]forge.Comment, error) {
	call := apiCall{action: fmt.Sprintf("read the comments of %s#%d", r.fullName, number), permission: "issues: read"}
	return r.listComments(ctx, call, number)
}

// listComments reads the comments of an issue or pull request. call describes the call that needs them.
func (r *repository) listComments(ctx context.Context, call apiCall, number int) ([]forge.Comment, error) {
	return listUpTo(ctx, forge.MaxComments, r, call, commentFrom, func(page gh.ListOptions) ([]*gh.IssueComment, *gh.Response, error) {
		return r.rest.Issues.ListComments(ctx, r.owner, r.name, number, &gh.IssueListCommentsOptions{ListOptions: page})
	})
}

// ReviewComments reads the comments on the diff of a pull request.
func (r *repository) ReviewComments(ctx context.Context, number int) ([]forge.ReviewComment, error) {
	call := apiCall{action: fmt.Sprintf("read the review comments of %s#%d", r.fullName, number), permission: "pull-requests: read"}
	return listUpTo(ctx, forge.MaxComments, r, call, reviewCommentFrom, func(page gh.ListOptions) ([]*gh.PullRequestComment, *gh.Response, error) {
		return r.rest.PullRequests.ListComments(ctx, r.owner, r.name, number, &gh.PullRequestListCommentsOptions{ListOptions: page})
	})
}

// listUpTo returns up to maxItems elements of a list. list returns one page, from converts each element.
func listUpTo[T, C any](ctx context.Context, maxItems int, r *repository, call apiCall, from func(T) C, list func(gh.ListOptions) ([]T, *gh.Response, error)) ([]C, error) {
	var all []C
	at := gh.ListOptions{Page: 1, PerPage: pageSize}
	err := r.runCall(ctx, call, func() error {
		for len(all) < maxItems {
			page, resp, err := list(at)
			if err == nil && page == nil {
				err = errUnidentified
			}
			if err != nil {
				return err
			}
			for _, each := range page {
				all = append(all, from(each))
			}
			if resp.NextPage <= at.Page {
				break
			}
			at.Page = resp.NextPage
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all[:min(len(all), maxItems)], nil
}

// commentFrom converts a comment of go-github.
func commentFrom(comment *gh.IssueComment) forge.Comment {
	return forge.Comment{
		ID:          comment.GetID(),
		Author:      userFrom(comment.GetUser()),
		Association: comment.GetAuthorAssociation(),
		Body:        comment.GetBody(),
		URL:         comment.GetHTMLURL(),
		CreatedAt:   comment.GetCreatedAt().Time,
		UpdatedAt:   comment.GetUpdatedAt().Time,
	}
}

// reviewCommentFrom converts a review comment of go-github.
func reviewCommentFrom(comment *gh.PullRequestComment) forge.ReviewComment {
	return forge.ReviewComment{
		ID: comment.GetID(), ReviewID: comment.GetPullRequestReviewID(), Author: userFrom(comment.GetUser()),
		Path: comment.GetPath(), DiffHunk: comment.GetDiffHunk(), Body: comment.GetBody(),
		CreatedAt: comment.GetCreatedAt().Time, UpdatedAt: comment.GetUpdatedAt().Time,
	}
}
