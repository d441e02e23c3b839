package intake

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// FitsBase makes sure that the base of the task's pull request configures the run.
// branch is the one that the checkout is on, name the same for a person.
func (t Task) FitsBase(branch, name string) error {
	pull := t.OnPull()
	if pull == nil || pull.Base == branch {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "base",
		"Pull request #%d goes to %s and the checkout is on %s; check %s out.", pull.Number, pull.Base, name, pull.Base)
}

// NotDone ends a run that an event asked for when its work is there: an open pull
// request for the same task, unless somebody asks for more in words, one that was
// made of the same input, or the word that it came to nothing on this base.
func (s *Source) NotDone(ctx context.Context, t Task, base, baseSHA string) error {
	if t.Subject != nil || t.Repair != nil || s.Request == nil && t.AskedAt.IsZero() || s.To.Name() == "" || !s.Event.HasToken {
		return nil
	}
	if err := s.notFruitless(ctx, t, baseSHA); err != nil {
		return err
	}
	pull, err := FindPullRequest(ctx, s.To, t.Branch, base)
	if err != nil || pull == nil {
		return err
	}
	commit, err := LookUpBranch(ctx, s.To, t.Branch)
	switch {
	case err != nil:
		return err
	case leftUndone(pull, commit):
		return nil
	case pull.State == "open" && !s.commanded():
		return outcome.Stopf(outcome.Skipped, "open_pull_request",
			"Pull request #%d is open for this task already: %s; %s", pull.Number, pull.URL, s.howToGoOn(pull))
	case commit == nil || t.Snapshot == "" || commit.Trailer(InputTrailer) != t.Snapshot:
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "same_input",
		"Pull request #%d was made from the same input: %s; %s", pull.Number, pull.URL, s.howToGoOn(pull))
}

// notFruitless ends a run whose like came to nothing, as the comment that showed
// its progress says.
func (s *Source) notFruitless(ctx context.Context, t Task, baseSHA string) error {
	if t.Pull != nil || t.Snapshot == "" || len(t.ProgressLike) == 0 {
		return nil
	}
	last := OwnProgress(ctx, s.Forge, t.ProgressLike)
	if last == nil || !strings.HasSuffix(strings.TrimSpace(last.Body), strings.TrimSpace(FruitlessMark(t.Snapshot, baseSHA))) {
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "same_input", "The same input led to no change last time: %s; %s", last.URL, s.howToGoOn(nil))
}

// Commanded says that a person asked for the run itself, whatever was done before: in
// words, by hand, or on a machine of their own.
func (s *Source) Commanded() bool {
	e := s.Event
	byHand := e.EventName == "workflow_dispatch" || e.EventName == "repository_dispatch"
	return !e.InActions || byHand || (s.Request != nil || e.Event != nil) && s.commanded()
}

// commanded says that somebody asked in words, which may ask for more.
func (s *Source) commanded() bool {
	if s.Request == nil {
		return s.Event.Comment != nil
	}
	return s.Request.Commanded
}

// howToGoOn tells how to get more done. pull is what an earlier run came to, nil for nothing:
// words on an open pull request ask for more of it, words on the issue for a fresh start.
func (s *Source) howToGoOn(pull *forge.PullRequest) string {
	open := pull != nil && pull.State == "open"
	switch command := s.Job.Trigger.Command; {
	case command == "" && open:
		return fmt.Sprintf("change the issue, or merge or close pull request #%d first.", pull.Number)
	case command == "":
		return "change the issue first."
	case open:
		return fmt.Sprintf("comment on pull request #%d what more is to be done, after %s.", pull.Number, command)
	default:
		return fmt.Sprintf("change the issue, or comment on it what more is to be done, after %s.", command)
	}
}

// leftUndone says whether a run was killed before it had finished the pull
// request, whose branch is still a run's.
func leftUndone(pull *forge.PullRequest, commit *forge.Commit) bool {
	return pull.State == "open" && commit != nil && commit.Ours() &&
		!IsFinished(pull.Body, commit.SHA) && !strings.Contains(pull.Body, strings.TrimSpace(UncommentedMark))
}
