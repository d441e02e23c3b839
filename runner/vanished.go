package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// closedMark begins the body of a pull request that a run closed, so that it
// does not count as one that a person closed.
const closedMark = "<!-- agent-ci: closed "

func closedMarkOf(pull *forge.PullRequest) string { return closedMark + pull.HeadSHA + " -->" }

// closedByRun says whether a run closed the pull request, at the commit that it
// has. The mark stays when a person opens it again: who closed it last counts too.
func (r *run) closedByRun(ctx context.Context, pull *forge.PullRequest) (bool, error) {
	if !strings.HasPrefix(pull.Body, closedMarkOf(pull)) {
		return false, nil
	}
	issue, err := r.repo.Issue(ctx, pull.Number)
	if err != nil {
		return false, forgeFailure(fmt.Sprintf("Who closed pull request #%d cannot be asked for", pull.Number), err)
	}
	return r.ownsComments(ctx)(forge.Comment{Author: issue.ClosedBy}), nil
}

// openedAgain takes the mark away from a pull request that a person opened
// again: closed another time, it is closed by a person, whose token the run may
// have.
func (r *run) openedAgain(ctx context.Context, pull *forge.PullRequest) error {
	if !strings.HasPrefix(pull.Body, closedMark) {
		return nil
	}
	_, body, _ := strings.Cut(pull.Body, "-->")
	body = strings.TrimLeft(body, "\r\n")
	if _, err := r.repo.UpdatePullRequest(ctx, pull.Number, forge.PullRequestUpdate{Body: &body}); err != nil {
		return forgeFailure(fmt.Sprintf("Pull request #%d, which was opened again, cannot be updated", pull.Number), err)
	}
	return nil
}

// closeVanished closes the open pull request of a task that a later run found
// nothing to change for. One that holds a person's commit is left alone.
func (r *run) closeVanished(ctx context.Context) error {
	if r.publishMode() != publishGitHub || r.job.Task.Expects == "answer" || r.overBudget != nil || r.branch == "" || r.joins() {
		return nil
	}
	pull, err := r.findPullRequest(ctx)
	if err != nil || pull == nil || pull.State != "open" {
		return err
	}
	if pull.Base != r.base.Branch { // it was given another while the work was done
		return r.otherBase(pull)
	}
	before, err := r.publishedTip(ctx)
	if err != nil {
		return err
	}
	if before == nil || !before.ours {
		r.rec.Warn("pull_request_kept", "Pull request #%d stays open although there is nothing left to change: its branch %s does not end in a commit of a run.", pull.Number, r.branch)
		return nil
	}
	if err := r.tellWhyClosed(ctx, pull); err != nil {
		return err
	}
	state, body := "closed", closedMarkOf(pull)+"\n"+pull.Body
	closed, err := r.repo.UpdatePullRequest(ctx, pull.Number, forge.PullRequestUpdate{State: &state, Body: &body})
	if err != nil {
		return forgeFailure(fmt.Sprintf("Pull request #%d cannot be closed", pull.Number), err)
	}
	r.published.pull, r.published.operation = closed, "closed"
	return r.rec.Append(transcript.TypePublish, transcript.Publish{
		Step: "pull_request", Branch: r.branch, HeadSHA: before.sha, Number: closed.Number, URL: closed.URL, Operation: "closed",
	})
}

// tellWhyClosed comments on the pull request, unless a run that was killed did
// so already.
func (r *run) tellWhyClosed(ctx context.Context, pull *forge.PullRequest) error {
	issue, err := r.repo.Issue(ctx, pull.Number)
	if err != nil {
		return forgeFailure(fmt.Sprintf("The comments of pull request #%d cannot be read", pull.Number), err)
	}
	mark := closedMarkOf(pull)
	for _, comment := range issue.Comments {
		if strings.HasPrefix(comment.Body, mark) {
			return nil
		}
	}
	why := "ended without a change"
	if r.inBase() {
		why = "ended with a change that the base has already"
	}
	text := fmt.Sprintf("%s\nClosed: a later run of this task (`%s`) %s on `%s` at %s, so that nothing is left to merge. The branch stays; when there is a change again, a new pull request is opened.",
		mark, r.rec.ID, why, r.base.Branch, gitops.Short(r.base.SHA))
	if _, err := r.repo.CreateComment(ctx, pull.Number, text); err != nil {
		r.rec.Warn("pull_request_comment", "Why pull request #%d was closed could not be said there: %v", pull.Number, err)
	}
	return nil
}

// inBase says that there was a change, and the new base has all of it.
func (r *run) inBase() bool { return r.drift.inCheckout != nil && r.changes.Empty() }

// withoutChange is the end of a run that has nothing to publish.
func (r *run) withoutChange() *outcome.Stop {
	stop := outcome.Stopf(outcome.NoChanges, "nothing_to_do", "The agent ended without a change; its last message says why.")
	switch {
	case r.inBase():
		stop = outcome.Stopf(outcome.NoChanges, "already_in_base", "The change is one that %s has already, since %s.", r.base.Branch, gitops.Short(r.base.SHA))
	case len(r.dropped) > 0:
		stop = outcome.Stopf(outcome.NoChanges, "only_protected",
			"The agent changed protected files alone (%s), which policy.on_protected leaves out; if they are to change, take them out of policy.protect.", some(r.dropped))
	case r.job.Task.Expects == "answer":
		return outcome.Stopf(outcome.NoChanges, "answered", "The agent answered and changed nothing; its answer is the summary.")
	}
	if p := r.published; p.pull != nil && p.operation == "closed" {
		stop.Message += fmt.Sprintf(" Pull request #%d, which nothing is left of, was closed: %s.", p.pull.Number, p.pull.URL)
	}
	return stop
}
