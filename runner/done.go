package runner

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/outcome"
)

// notDoneAlready ends a run that an event asked for when its work is there: an
// open pull request for the same task, unless somebody asks for more in words,
// or one that was made of the same input.
func (r *run) notDoneAlready(ctx context.Context) error {
	if err := r.onPullBase(); err != nil {
		return err
	}
	if r.request == nil && r.askedAt.IsZero() || !r.repo.known() || r.env.first(tokenNames...) == "" {
		return nil
	}
	pull, err := r.findPullRequest(ctx)
	if err != nil {
		return err
	}
	if pull == nil {
		return nil
	}
	if pull.State == "open" && !r.commanded() {
		return outcome.Stopf(outcome.Skipped, "open_pull_request",
			"Pull request #%d is open for this task already: %s; %s", pull.Number, pull.URL, r.howToGoOn())
	}
	same, err := r.sameInput(ctx)
	if err != nil || !same {
		return err
	}
	return outcome.Stopf(outcome.Skipped, "same_input",
		"Pull request #%d was made of the same input: %s; %s", pull.Number, pull.URL, r.howToGoOn())
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

// sameInput compares with what the commit on the task's branch was made of.
func (r *run) sameInput(ctx context.Context) (bool, error) {
	commit, err := r.forge.Branch(ctx, r.repo.owner, r.repo.name, r.branch)
	if err != nil {
		return false, forgeFailure("The branch "+r.branch+" cannot be looked up", err)
	}
	if commit == nil || r.task.snapshot == "" {
		return false, nil
	}
	return infoOf(commit).Trailer(trailerInput) == r.task.snapshot, nil
}
