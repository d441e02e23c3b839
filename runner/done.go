package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// notDoneAlready ends a run that an event asked for when its work is there: an
// open pull request for the same task, unless somebody asks for more in words,
// one that was made of the same input, or the word that it came to nothing.
func (r *run) notDoneAlready(ctx context.Context) error {
	if err := r.onPullBase(); err != nil {
		return err
	}
	if r.request == nil && r.askedAt.IsZero() || !r.repo.known() || r.env.Token() == "" {
		return nil
	}
	if err := r.notFruitless(ctx); err != nil {
		return err
	}
	pull, err := r.findPullRequest(ctx)
	if err != nil {
		return err
	}
	if pull == nil {
		return nil
	}
	commit, err := lookUpBranch(ctx, r.repo, r.branch)
	if err != nil {
		return err
	}
	if leftUndone(pull, commit) {
		return nil
	}
	if pull.State == "open" && !r.commanded() {
		return outcome.Stopf(outcome.Skipped, "open_pull_request",
			"Pull request #%d is open for this task already: %s; %s", pull.Number, pull.URL, r.howToGoOn())
	}
	if !r.sameInput(commit) {
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "same_input",
		"Pull request #%d was made of the same input: %s; %s", pull.Number, pull.URL, r.howToGoOn())
}

// notFruitless ends a run whose like came to nothing, as the comment that showed
// its progress says.
func (r *run) notFruitless(ctx context.Context) error {
	if r.pull != nil || r.task.snapshot == "" || len(r.progressLike) == 0 {
		return nil
	}
	last := r.ownProgress(ctx)
	if last == nil || !strings.HasSuffix(strings.TrimSpace(last.Body), strings.TrimSpace(r.trace())) {
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "same_input", "The same input came to no change last time: %s; %s", last.URL, r.howToGoOn())
}

// commanded says that somebody asked in words, which may ask for more.
func (r *run) commanded() bool {
	if r.request == nil {
		return r.event.Comment != nil
	}
	return r.request.Commanded
}

func (r *run) howToGoOn() string {
	if r.job.Trigger.Command == "" {
		return "change the issue, or merge or close the pull request first."
	}
	return fmt.Sprintf("say in a comment what more is to be done, after %s.", r.job.Trigger.Command)
}

// leftUndone says whether a run was killed before it had finished the pull
// request, whose branch is still a run's.
func leftUndone(pull *forge.PullRequest, commit *forge.Commit) bool {
	return pull.State == "open" && commit != nil && infoOf(commit).Ours() &&
		!isFinished(pull.Body, commit.SHA) && !strings.Contains(pull.Body, strings.TrimSpace(aloneMark))
}

// sameInput compares with what the commit on the task's branch was made of.
func (r *run) sameInput(commit *forge.Commit) bool {
	return commit != nil && r.task.snapshot != "" && infoOf(commit).Trailer(trailerInput) == r.task.snapshot
}
