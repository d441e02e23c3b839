package intake

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// RequireBaseBranch returns an error if the task's pull request goes to another base than branch, the branch
// of the checkout. name is the branch's name in the message.
func (t Task) RequireBaseBranch(branch, name string) error {
	pull := t.PullRequest()
	if pull == nil || pull.Base == branch {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "base",
		"Pull request #%d has the base %s, and the checkout is on %s; check out %s.", pull.Number, pull.Base, name, pull.Base)
}

// CheckNotDone returns the outcome skipped if an event's work exists already. The work exists in three cases:
//
//   - A comment says that this input led to no change on this base.
//   - A pull request for the task is open, and nobody asks for more in words.
//   - A pull request was made from the same input.
//
// A pull request that a killed run left unfinished does not count.
func (s *Source) CheckNotDone(ctx context.Context, t Task, base, baseSHA string) error {
	makesChange := t.Subject == nil && t.Repair == nil
	byEvent := s.Request != nil || !t.AskedAt.IsZero()
	canAskForge := s.Target.Name() != "" && s.Event.HasToken
	if !makesChange || !byEvent || !canAskForge {
		return nil
	}
	if err := s.checkInputNotTried(ctx, t, baseSHA); err != nil {
		return err
	}
	pull, err := FindPullRequest(ctx, s.Target, t.Branch, base)
	if err != nil || pull == nil {
		return err
	}
	commit, err := LookUpBranch(ctx, s.Target, t.Branch)
	if err != nil {
		return err
	}
	hasSameInput := commit != nil && t.InputDigest != "" && commit.Trailer(InputTrailer) == t.InputDigest
	switch {
	case leftUnfinished(pull, commit):
		return nil
	case pull.State == "open" && !s.askedInWords():
		return outcome.Stopf(outcome.Skipped, "open_pull_request",
			"Pull request #%d is open for this task already: %s; %s", pull.Number, pull.URL, s.continueHint(pull))
	case hasSameInput:
		return outcome.Stopf(outcome.Skipped, "same_input",
			"Pull request #%d was made from the same input: %s; %s", pull.Number, pull.URL, s.continueHint(pull))
	}
	return nil
}

// checkInputNotTried returns the outcome skipped if the last progress comment reports that the same input
// led to no change on the same base.
func (s *Source) checkInputNotTried(ctx context.Context, t Task, baseSHA string) error {
	if t.Pull != nil || t.InputDigest == "" || len(t.ProgressLike) == 0 {
		return nil
	}
	last, mark := OwnProgress(ctx, s.Forge, t.ProgressLike), strings.TrimSpace(FruitlessMark(t.InputDigest, baseSHA))
	wasTried := last != nil && strings.HasSuffix(strings.TrimSpace(last.Body), mark)
	if !wasTried {
		return nil
	}
	return outcome.Stopf(outcome.Skipped, "same_input", "The same input led to no change last time: %s; %s", last.URL, s.continueHint(nil))
}

// IsExplicitRequest reports whether a person asked for this very run, so that results of earlier runs do
// not stop it: in words, by hand, or on their own machine.
func (s *Source) IsExplicitRequest() bool {
	e := s.Event
	if !e.InActions || e.EventName == "workflow_dispatch" || e.EventName == "repository_dispatch" {
		return true
	}
	byEvent := s.Request != nil || e.Event != nil
	return byEvent && s.askedInWords()
}

// askedInWords reports whether somebody asked for this run in a comment or review, which may ask for more than
// earlier runs did.
func (s *Source) askedInWords() bool {
	if s.Request == nil {
		return s.Event.Comment != nil
	}
	return s.Request.Commanded
}

// continueHint returns the end of a message: how to ask for more. pull is the pull request of an earlier
// run, or nil. A comment on an open pull request extends it; a comment on the issue starts afresh.
func (s *Source) continueHint(pull *forge.PullRequest) string {
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

// leftUnfinished reports whether a killed run left its pull request undescribed, with its own commit as head.
func leftUnfinished(pull *forge.PullRequest, commit *forge.Commit) bool {
	return pull.State == "open" && commit != nil && commit.MadeByRun() &&
		!IsFinished(pull.Body, commit.SHA) && !strings.Contains(pull.Body, strings.TrimSpace(UncommentedMark))
}
