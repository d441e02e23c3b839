package intake

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/intake/clean"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// readIssue reads an issue that can be worked on, and what who counts wrote below
// it.
func (s *Source) readIssue(ctx context.Context, ref job.Issue, askedAt time.Time) (input, error) {
	issue, err := issueAt(ctx, s.Forge, ref)
	if err != nil {
		return input{}, err
	}
	switch {
	case issue.PullRequest:
		return input{}, outcome.Stopf(outcome.InvalidInput, "not_an_issue", "%s is a pull request; give the number of an issue.", ref)
	case issue.State != "open":
		return input{}, outcome.Stopf(outcome.Skipped, "issue_closed", "The issue %s is closed; reopen it to have it worked on: %s.", ref, issue.URL)
	}
	return s.issueInput(ctx, ref, issue, askedAt)
}

// issueAt reads an issue, or a pull request as one.
func issueAt(ctx context.Context, on forge.Forge, ref job.Issue) (*forge.Issue, error) {
	issue, err := on.Repository(ref.Repository).Issue(ctx, ref.Number)
	if forge.KindOf(err) == forge.NotFound {
		return nil, outcome.Stopf(outcome.InvalidInput, "issue_not_found",
			"The issue %s is not there, or the token may not read it; check the number, and that GITHUB_TOKEN has the permission issues: read.", ref).Because(err)
	}
	return issue, ForgeFailure(fmt.Sprintf("The issue %s cannot be read", ref), err)
}

// issueInput is an issue as it was when it was asked for, with the comments that
// were there then and count.
func (s *Source) issueInput(ctx context.Context, ref job.Issue, issue *forge.Issue, askedAt time.Time) (input, error) {
	title, body := issue.Title, issue.Body
	if then := s.asItWas(ref); then != nil {
		if title, body = then.Title, then.Body; title != issue.Title || body != issue.Body {
			s.Record.Warn("edited_after_trigger", "%s was edited after it was asked for; what stood there then was used.", ref)
		}
	}
	comments, err := s.commentsThatCount(ctx, ref, issue, askedAt)
	return input{
		title: title, ref: ref, issue: issue, progress: comments.progress,
		parts: append([]clean.Part{{Kind: "issue", Author: issue.Author.Login, Text: body}}, comments.parts...),
	}, err
}

// asItWas is an issue as the event has it that started the workflow; nil when the
// event is about something else. That the job names the issue itself changes
// nothing: somebody's label or comment asked for it.
func (s *Source) asItWas(ref job.Issue) *actions.Issue {
	switch q, e := s.Request, s.Event; {
	case q != nil && q.OnPull:
		return nil
	case q != nil:
		return q.Issue
	case e.Event == nil || e.Issue == nil || !e.InActions:
		return nil
	case e.Issue.Number != ref.Number || !strings.EqualFold(ref.Repository, e.Repository):
		return nil
	default:
		return e.Issue
	}
}
