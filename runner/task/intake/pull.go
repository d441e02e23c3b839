package intake

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake/clean"
)

// readPull returns the task from the texts on a pull request, in this order: the issue of a run's pull request
// or the description of a person's, trusted comments, the request, and failed checks. For a run's pull request,
// the task's RequestText has the request alone.
func (s *Source) readPull(ctx context.Context, pull *forge.PullRequest) (Task, error) {
	t := s.taskOfRequest()
	t.Name, t.URL = fmt.Sprintf("pull request #%d", pull.Number), pull.URL
	readTexts := s.continueInput
	if ModeOf(pull) == Join {
		readTexts = s.joinInput
	}
	texts, err := readTexts(ctx, pull)
	if err != nil {
		return t, err
	}
	comments, progress, err := s.pullComments(ctx, pull)
	if err != nil {
		return t, err
	}
	request, err := s.pullRequestParts(ctx)
	if err != nil {
		return t, err
	}
	if ModeOf(pull) == Continue {
		t.RequestText = requestTexts(request)
	}
	texts.parts, texts.progress = slices.Concat(texts.parts, comments, request, s.FailedChecks), progress
	return s.addInput(t, texts, fmt.Sprintf("Pull request #%d", pull.Number))
}

// requestTexts returns the cleaned texts of the parts of kind request, with blank lines between them.
func requestTexts(parts []clean.Part) string {
	var all []string
	for _, p := range parts {
		if p.Kind == "request" {
			text, _ := clean.VisibleText(p.Text)
			all = append(all, strings.TrimSpace(text))
		}
	}
	return strings.Join(all, "\n\n")
}

// continueInput returns the input for continuing a run's pull request: the issue of its branch, if it has one,
// and a note about the change in the checkout. The title is the pull request's.
func (s *Source) continueInput(ctx context.Context, pull *forge.PullRequest) (taskInput, error) {
	var texts taskInput
	if number := IssueOfBranch(pull.Head); number != 0 {
		var err error
		if texts, err = s.issueOfRunBranch(ctx, number); err != nil {
			return taskInput{}, err
		}
	}
	texts.title, _ = s.pullTextsInEvent(pull)
	texts.parts = append(texts.parts, clean.Part{Kind: "pull_request", Author: "agent-ci", Text: fmt.Sprintf(
		"The checkout holds the change of pull request #%d already, uncommitted. Go on from there: what is asked for below is to be added to it.", pull.Number)})
	return texts, nil
}

// joinInput returns the input for joining a person's pull request, as of the time of the request.
// The title is the first line of the request, because it becomes the commit's title. The pull
// request keeps its own.
func (s *Source) joinInput(_ context.Context, pull *forge.PullRequest) (taskInput, error) {
	title, described := s.pullTextsInEvent(pull)
	described = title + "\n\n" + described
	if asked, _, _ := strings.Cut(s.Request.Words, "\n"); strings.TrimSpace(asked) != "" {
		title = asked
	}
	return taskInput{title: title, parts: []clean.Part{
		{Kind: "pull_request", Author: pull.Author.Login, Text: described},
		{Kind: "note", Author: "agent-ci", Text: fmt.Sprintf(
			"The checkout holds the branch of this pull request with its commits; it goes to %s. Your change becomes one commit on top of them. Add what is asked for below, and leave the rest as its author made it.", pull.Base)},
	}}, nil
}

// pullTextsInEvent returns title and body of the pull request as of the time of the request.
func (s *Source) pullTextsInEvent(pull *forge.PullRequest) (title, body string) {
	switch q := s.Request; {
	case q.Pull != nil:
		return q.Pull.Title, q.Pull.Body
	case q.Issue != nil:
		return q.Issue.Title, q.Issue.Body
	}
	return pull.Title, pull.Body
}

// pullComments returns the trusted comments below the pull request, as parts of the task and as the forge has them.
func (s *Source) pullComments(ctx context.Context, pull *forge.PullRequest) (parts []clean.Part, comments []forge.Comment, err error) {
	ref := form.Issue{Repository: s.Event.Repository, Number: pull.Number}
	issue, err := s.forgeIssue(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	return s.trustedComments(ctx, ref, issue, s.Request.RequestedAt)
}

// issueOfRunBranch reads the issue of a run's branch. It returns the zero value if the issue was deleted or is a
// pull request. A closed issue is read like an open one. The event does not contain the issue's earlier text. So
// if the issue was edited after the request, the result has the issue without its texts.
func (s *Source) issueOfRunBranch(ctx context.Context, number int) (taskInput, error) {
	ref := form.Issue{Repository: s.Event.Repository, Number: number}
	issue, err := s.forgeIssue(ctx, ref)
	switch {
	case forge.KindOf(err) == forge.NotFound:
		return taskInput{}, nil
	case err != nil:
		return taskInput{}, err
	case issue.PullRequest:
		return taskInput{}, nil
	}
	askedAt := s.Request.RequestedAt
	if s.Request.Repair { // a run's own comment on the issue is later than its commit
		why, err := s.DistrustReason(ctx, s.eventRepository(), issue.Author)
		if err != nil {
			return taskInput{}, err
		}
		if why == "" {
			askedAt = time.Time{}
		}
	}
	if isAfter(askedAt, issue.UpdatedAt) {
		s.Record.Warn("edited_after_trigger", "%s was changed after the request on the pull request; its text was not read.", ref)
		return taskInput{ref: ref, issue: issue}, nil
	}
	return s.issueInput(ctx, ref, issue, askedAt)
}

// pullRequestParts returns the request's own words, after earlier trusted comments on lines of the diff,
// and before the line comments of the requesting review.
func (s *Source) pullRequestParts(ctx context.Context) ([]clean.Part, error) {
	q := s.Request
	comments, err := s.eventRepository().ReviewComments(ctx, q.Number)
	if err != nil {
		return nil, ForgeFailure(fmt.Sprintf("The comments on the diff of pull request #%d cannot be read", q.Number), err)
	}
	var earlier, reviewParts []clean.Part
	for _, c := range comments {
		isOfReview := s.Event.Review != nil && c.ReviewID == q.WordsID && strings.EqualFold(c.Author.Login, q.Actor.Login)
		isEarlier := c.ID != q.WordsID && !isAfter(q.RequestedAt, c.CreatedAt, c.UpdatedAt)
		switch {
		case isOfReview:
			reviewParts = append(reviewParts, partOfLineComment("request", c))
		case isEarlier:
			trusted, err := s.isTrustedComment(ctx, s.eventRepository(), forge.Comment{Author: c.Author})
			if err != nil {
				return nil, err
			}
			if trusted {
				earlier = append(earlier, partOfLineComment("comment", c))
			}
		}
	}
	words := q.Words
	if comment := q.LineComment; comment != nil {
		words = fmt.Sprintf("On line %d of %s:\n\n%s\n\n%s", comment.Line, markdown.FileName(comment.Path), comment.DiffHunk, words)
	}
	if strings.TrimSpace(words) != "" {
		earlier = append(earlier, clean.Part{Kind: "request", Author: q.Actor.Login, Text: words})
	}
	return append(earlier, reviewParts...), nil
}

// partOfLineComment formats a comment on a line of the diff. It omits the line number: the number changes
// with the branch, and the same input would get another digest.
func partOfLineComment(kind string, c forge.ReviewComment) clean.Part {
	return clean.Part{Kind: kind, Author: c.Author.Login, Text: fmt.Sprintf(
		"On the last of these lines of %s:\n\n%s\n\n%s", markdown.FileName(c.Path), c.DiffHunk, c.Body)}
}
