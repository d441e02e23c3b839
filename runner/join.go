package runner

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// joinBranch puts the checkout on the end of the person's branch. What
// configures the run was read from the base by now, and the guides are here.
func (r *run) joinBranch(ctx context.Context) error {
	if !r.joins() {
		return nil
	}
	tip, err := lookUpBranch(ctx, r.eventRepository(), r.pull.Head)
	switch {
	case err != nil:
		return err
	case tip == nil:
		return outcome.Stopf(outcome.Skipped, "foreign_branch", "The branch %s of pull request #%d is gone: %s.", r.pull.Head, r.pull.Number, r.pull.URL)
	}
	if r.guides, err = agent.ReadGuides(r.job.Repository.Path, r.readGuide); err != nil {
		return err
	}
	err = r.standOn(ctx, tip.SHA)
	var unknown *gitops.UnknownBaseError
	if errors.As(err, &unknown) && !r.cloned { // a workflow's checkout mostly has one commit
		if err := r.clone(ctx); err != nil {
			return err
		}
		err = r.standOn(ctx, tip.SHA)
	}
	if err != nil {
		return checkoutFailure(err)
	}
	r.branch, r.job.PullRequest.Branch = r.pull.Head, r.pull.Head
	// A person's branch gets what is done and passes, and nothing else.
	r.job.OnVerifyFailed, r.job.Limits.OnBudget = "none", "keep"
	return r.findWorkDir()
}

func (r *run) standOn(ctx context.Context, sha string) error {
	base, err := r.checkout.SetBase(ctx, gitops.BaseSpec{Branch: r.pull.Base, SHA: sha})
	if err == nil {
		r.base = base
	}
	return err
}

// joinPullRequest tells of the commit in a comment: title, text and state of the
// pull request are its author's.
func (r *run) joinPullRequest(ctx context.Context, body string) error {
	if _, err := r.eventRepository().CreateComment(ctx, r.pull.Number, joinMark+strings.TrimPrefix(body, draftMark)); err != nil {
		r.rec.Warn("pull_request_comment", "The change is pushed, but the comment that tells of it could not be written: %v", err)
	}
	r.published.pull, r.published.operation = r.pull, "updated"
	return r.rec.Append(transcript.TypePublish, transcript.Publish{
		Step: "pull_request", Branch: r.branch, HeadSHA: r.published.commit,
		Number: r.pull.Number, URL: r.pull.URL, Operation: r.published.operation,
	})
}
