package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/intake/clean"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// mayJoin ends a run that would push where more than a pull request hangs on
// it, or that leaves the push to another one, which knows of no person's branch.
func (r *run) mayJoin(ctx context.Context) error {
	pull := r.pull
	stop := func(why string) error {
		return outcome.Stopf(outcome.Skipped, "foreign_branch", "Pull request #%d is a person's, and %s: %s.", pull.Number, why, pull.URL)
	}
	if r.options.Publish == publishNone {
		return stop("only a run that publishes its change itself goes on with one")
	}
	branch, err := defaultBranch(ctx, r.eventRepository())
	switch {
	case err != nil:
		return err
	case branch == pull.Head:
		return stop("its branch is the default branch, to which no run pushes")
	}
	return nil
}

// readJoinTask takes the task from a person's pull request, as it was when more
// was asked for, and what was said there by who counts.
func (r *run) readJoinTask(ctx context.Context) (input, error) {
	pull, q := r.pull, r.request
	described := pull.Body
	switch {
	case q.Pull != nil:
		described = q.Pull.Body
	case q.Issue != nil:
		described = q.Issue.Body
	}
	title, _, _ := strings.Cut(q.Words, "\n") // of the commit: the pull request has one
	if strings.TrimSpace(title) == "" {
		title = r.pullTitle()
	}
	described = r.pullTitle() + "\n\n" + described
	in := input{title: title, parts: []clean.Part{
		{Kind: "pull_request", Author: pull.Author.Login, Text: described},
		{Kind: "note", Author: "agent-ci", Text: fmt.Sprintf(
			"The checkout holds the branch of this pull request with its commits; it goes to %s. Your change becomes one commit on top of them. Add what is asked for below, and leave the rest as its author made it.", pull.Base)},
	}}
	said, err := r.saidOnPull(ctx)
	in.parts = append(in.parts, said...)
	return in, err
}

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
	if err := r.readGuides(); err != nil {
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
