package intake

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/intake/clean"
)

// taskInput holds the texts written for a task, as of the time of the request.
type taskInput struct {
	title    string
	parts    []clean.Part    // as written
	progress []forge.Comment // of runs, as it seems, among the comments
	ref      form.Issue
	issue    *forge.Issue // that the input is about; nil for none
}

// sha256Hex identifies the input: the same texts of the same authors have the same digest.
func (i *taskInput) sha256Hex() (string, error) {
	raw, err := json.Marshal(struct {
		Title string
		Parts []clean.Part
	}{i.title, i.parts})
	if err != nil {
		return "", fmt.Errorf("encode the task's input: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw)), nil
}

// addInput returns the task with the cleaned texts of an input and their digest. It warns about removed
// hidden text; place names the source of the texts in the warning.
func (s *Source) addInput(t Task, texts taskInput, place string) (Task, error) {
	var err error
	if t.InputDigest, err = texts.sha256Hex(); err != nil {
		return t, err
	}
	if texts.issue != nil {
		t.Issue, t.Author = &texts.ref, &texts.issue.Author
	}
	title, removed := clean.VisibleText(texts.title)
	t.Title, t.ProgressLike = strings.Join(strings.Fields(title), " "), texts.progress
	text, removedInParts := clean.MarkParts(withoutOwnMarks(texts.parts))
	t.Text = text
	removed.Add(removedInParts)
	if removed.Any() {
		s.Record.Warn("hidden_text", "%s contained text that its page does not show; it was removed: %s, %s.", place,
			transcript.CountNoun(removed.Characters, "invisible character"), transcript.CountNoun(removed.Comments, "HTML comment"))
	}
	return t, nil
}

// withoutOwnMarks returns the parts without agent-ci's own marks. Parts with Shown keep them.
func withoutOwnMarks(parts []clean.Part) []clean.Part {
	parts = slices.Clone(parts) // the digest covers the original text
	for i, p := range parts {
		if !p.Shown {
			parts[i].Text = ownMarks().ReplaceAllString(p.Text, "")
		}
	}
	return parts
}

// readIssue returns t with the texts of the open issue ref, of trusted comments, and of requestParts.
func (s *Source) readIssue(ctx context.Context, t Task, ref form.Issue, requestParts ...clean.Part) (Task, error) {
	issue, err := s.forgeIssue(ctx, ref)
	switch {
	case err != nil:
		return t, err
	case issue.PullRequest:
		return t, outcome.Stopf(outcome.InvalidInput, "issue", "%s is a pull request; give the number of an issue.", ref)
	case issue.State != "open":
		return t, outcome.Stopf(outcome.Skipped, "issue_closed", "The issue %s is closed; reopen it if you want agent-ci to work on it: %s.", ref, issue.URL)
	}
	texts, err := s.issueInput(ctx, ref, issue, t.AskedAt)
	if err != nil {
		return t, err
	}
	texts.parts = append(texts.parts, requestParts...)
	t.Name, t.URL = "issue "+ref.String(), issue.URL
	return s.addInput(t, texts, ref.String())
}

// forgeIssue reads the issue ref. For the number of a pull request, it reads the pull request as an issue.
func (s *Source) forgeIssue(ctx context.Context, ref form.Issue) (*forge.Issue, error) {
	issue, err := s.Forge.Repository(ref.Repository).Issue(ctx, ref.Number)
	if forge.KindOf(err) != forge.NotFound {
		return issue, ForgeFailure(fmt.Sprintf("The issue %s cannot be read", ref), err)
	}
	failed, _ := errors.AsType[*forge.Error](err)
	if failed.Status == http.StatusNotFound {
		return nil, outcome.Stopf(outcome.InvalidInput, "issue_not_found",
			"The issue %s does not exist, or the token may not read it; check the number, and that GITHUB_TOKEN has the permission issues: read.", ref).Because(err)
	}
	// It was deleted or moved.
	return nil, outcome.Stopf(outcome.InvalidInput, "issue_not_found", "The issue %s cannot be read: %s; %s.", ref, failed.Message, failed.Remedy).Because(err)
}

// issueInput returns an issue and its trusted comments, as of the time of the request.
func (s *Source) issueInput(ctx context.Context, ref form.Issue, issue *forge.Issue, askedAt time.Time) (taskInput, error) {
	title, body := issue.Title, issue.Body
	if earlier := s.issueInEvent(ref); earlier != nil {
		title, body = earlier.Title, earlier.Body
		if title != issue.Title || body != issue.Body {
			s.Record.Warn("edited_after_trigger", "%s was edited after the request; the earlier text was used.", ref)
		}
	}
	comments, progress, err := s.trustedComments(ctx, ref, issue, askedAt)
	return taskInput{
		title: title, ref: ref, issue: issue, progress: progress,
		parts: append([]clean.Part{{Kind: "issue", Author: issue.Author.Login, Text: body}}, comments...),
	}, err
}

// issueInEvent returns the issue as it was when the workflow's event happened, or nil. For a request (a label or a
// comment), it is the issue of the request, even if the job names another one (ref). Without a request, it is the
// issue of the event, if that is ref.
func (s *Source) issueInEvent(ref form.Issue) *actions.Issue {
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
