package github

import (
	"context"
	"fmt"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

const readPulls = "pull-requests: read"

// PullRequestFiles reads the files that a pull request changes.
func (r *repository) PullRequestFiles(ctx context.Context, number int) ([]forge.PullFile, error) {
	call := apiCall{action: fmt.Sprintf("read what the pull request %s#%d changes", r.fullName, number), permission: readPulls}
	return listUpTo(ctx, forge.MaxPullFiles, r, call, pullFileFrom, func(page gh.ListOptions) ([]*gh.CommitFile, *gh.Response, error) {
		return r.rest.PullRequests.ListFiles(ctx, r.owner, r.name, number, &page)
	})
}

// pullFileFrom converts a changed file of go-github.
func pullFileFrom(file *gh.CommitFile) forge.PullFile {
	return forge.PullFile{Path: file.GetFilename(), From: file.GetPreviousFilename(), Status: file.GetStatus(), Patch: file.GetPatch()}
}

// Reviews reads the reviews of a pull request.
func (r *repository) Reviews(ctx context.Context, number int) ([]forge.Comment, error) {
	call := apiCall{action: fmt.Sprintf("read the reviews of %s#%d", r.fullName, number), permission: readPulls}
	return listUpTo(ctx, forge.MaxComments, r, call, reviewFrom, func(page gh.ListOptions) ([]*gh.PullRequestReview, *gh.Response, error) {
		return r.rest.PullRequests.ListReviews(ctx, r.owner, r.name, number, &page)
	})
}

// CreateReview creates a review and retries failed attempts. Before a retry it checks whether the attempt did
// create the review.
func (r *repository) CreateReview(ctx context.Context, number int, review forge.NewReview) (*forge.Comment, error) {
	send := func() (*forge.Comment, error) { return r.createReviewOnce(ctx, number, review) }
	return create(ctx, r, send, func() (*forge.Comment, error) {
		all, err := r.Reviews(ctx, number)
		for _, each := range all {
			if forge.SameText(each.Body, review.Body) {
				return &each, nil
			}
		}
		return nil, err
	})
}

// rightSide is GitHub's name for the new side of a diff.
const rightSide = "RIGHT"

// createReviewOnce sends one attempt of CreateReview.
func (r *repository) createReviewOnce(ctx context.Context, number int, review forge.NewReview) (*forge.Comment, error) {
	call := apiCall{action: fmt.Sprintf("review %s#%d", r.fullName, number), permission: writePulls}
	event := "COMMENT"
	draft := &gh.PullRequestReviewRequest{CommitID: &review.CommitSHA, Body: &review.Body, Event: &event}
	for _, c := range review.Comments {
		side := rightSide
		comment := &gh.DraftReviewComment{Path: &c.Path, Body: &c.Body, Line: &c.Line, Side: &side}
		if c.From > 0 && c.From < c.Line {
			comment.StartLine, comment.StartSide = &c.From, &side
		}
		draft.Comments = append(draft.Comments, comment)
	}
	created, err := request(ctx, r, call, func() (*gh.PullRequestReview, *gh.Response, error) {
		return r.rest.PullRequests.CreateReview(ctx, r.owner, r.name, number, draft)
	})
	if err != nil {
		return nil, err
	}
	made := reviewFrom(created)
	return &made, nil
}

// reviewFrom converts a review of go-github.
func reviewFrom(review *gh.PullRequestReview) forge.Comment {
	return forge.Comment{ID: review.GetID(), Author: userFrom(review.GetUser()), Body: review.GetBody(), URL: review.GetHTMLURL()}
}
