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
	what := call{action: fmt.Sprintf("comment on %s#%d", r.fullName, number), permission: writeIssues}
	written, err := ask(ctx, r, what, func() (*gh.IssueComment, *gh.Response, error) {
		return r.rest.Issues.CreateComment(ctx, r.owner, r.name, number, &gh.IssueComment{Body: &body})
	})
	if err != nil {
		return nil, err
	}
	comment := commentFrom(written)
	return &comment, nil
}

func (r *repository) EditComment(ctx context.Context, id int64, body string) error {
	what := call{action: fmt.Sprintf("edit the comment %d in %s", id, r.fullName), permission: writeIssues}
	return r.run(ctx, what, func() error {
		_, _, err := r.rest.Issues.EditComment(ctx, r.owner, r.name, id, &gh.IssueComment{Body: &body})
		return err
	})
}

// DeleteComment deletes a comment. A missing comment is no error.
func (r *repository) DeleteComment(ctx context.Context, id int64) error {
	what := call{action: fmt.Sprintf("delete the comment %d in %s", id, r.fullName), permission: writeIssues}
	err := r.run(ctx, what, func() error {
		_, err := r.rest.Issues.DeleteComment(ctx, r.owner, r.name, id)
		return err
	})
	if forge.KindOf(err) == forge.NotFound {
		return nil
	}
	return err
}

func (r *repository) Comments(ctx context.Context, number int) ([]forge.Comment, error) {
	what := call{action: fmt.Sprintf("read the comments of %s#%d", r.fullName, number), permission: "issues: read"}
	return r.comments(ctx, what, number)
}

func (r *repository) comments(ctx context.Context, what call, number int) ([]forge.Comment, error) {
	return pages(ctx, r, what, commentFrom, func(page gh.ListOptions) ([]*gh.IssueComment, *gh.Response, error) {
		return r.rest.Issues.ListComments(ctx, r.owner, r.name, number, &gh.IssueListCommentsOptions{ListOptions: page})
	})
}

func (r *repository) ReviewComments(ctx context.Context, number int) ([]forge.ReviewComment, error) {
	what := call{action: fmt.Sprintf("read the review comments of %s#%d", r.fullName, number), permission: "pull-requests: read"}
	return pages(ctx, r, what, reviewCommentFrom, func(page gh.ListOptions) ([]*gh.PullRequestComment, *gh.Response, error) {
		return r.rest.PullRequests.ListComments(ctx, r.owner, r.name, number, &gh.PullRequestListCommentsOptions{ListOptions: page})
	})
}

// pages returns the elements of a list, up to forge.MaxComments. from converts each element.
func pages[T, C any](ctx context.Context, r *repository, what call, from func(T) C, list func(gh.ListOptions) ([]T, *gh.Response, error)) ([]C, error) {
	return pagesUpTo(ctx, forge.MaxComments, r, what, from, list)
}

// pagesUpTo returns the elements of a list, up to most. list returns one page, from converts each
// element.
func pagesUpTo[T, C any](ctx context.Context, most int, r *repository, what call, from func(T) C, list func(gh.ListOptions) ([]T, *gh.Response, error)) ([]C, error) {
	var all []C
	at := gh.ListOptions{Page: 1, PerPage: pageSize}
	err := r.run(ctx, what, func() error {
		for len(all) < most {
			page, resp, err := list(at)
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
	return all[:min(len(all), most)], nil
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

func reviewCommentFrom(comment *gh.PullRequestComment) forge.ReviewComment {
	return forge.ReviewComment{
		ID: comment.GetID(), ReviewID: comment.GetPullRequestReviewID(), Author: userFrom(comment.GetUser()),
		Path: comment.GetPath(), Line: comment.GetLine(), DiffHunk: comment.GetDiffHunk(), Body: comment.GetBody(),
		CreatedAt: comment.GetCreatedAt().Time, UpdatedAt: comment.GetUpdatedAt().Time,
	}
}
