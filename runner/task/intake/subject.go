package intake

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake/clean"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Subject is the issue or pull request that a run gives feedback on.
type Subject struct {
	transcript.Subject
	// PullRequest and Files are the pull request and its changed files at HeadSHA, as read from the forge.
	// They are nil for an issue and for a resumed run.
	PullRequest *forge.PullRequest
	Files       []forge.PullFile
}

// Name is the subject for a person.
func (s Subject) Name() string {
	if s.Pull {
		return fmt.Sprintf("Pull request #%d", s.Number)
	}
	return fmt.Sprintf("Issue #%d", s.Number)
}

// PullRequest returns the pull request to continue or to give feedback on, or nil for other tasks.
func (t Task) PullRequest() *forge.PullRequest {
	if t.Pull == nil && t.Subject != nil {
		return t.Subject.PullRequest
	}
	return t.Pull
}

// WorksOnHead reports whether the agent works on the head of a pull request.
func (t Task) WorksOnHead() bool {
	return t.Mode() == Join || t.Subject != nil && t.Subject.Pull
}

// readSubject returns a feedback task: the job's instructions, and the texts on the subject as data.
func (s *Source) readSubject(ctx context.Context) (Task, error) {
	ref, err := s.subjectRef()
	if err != nil {
		return Task{}, err
	}
	t, instructions, err := s.promptTask(ctx)
	if err != nil {
		return t, err
	}
	issue, err := s.forgeIssue(ctx, ref)
	if err != nil {
		return t, err
	}
	t.Subject = &Subject{Subject: transcript.Subject{Repository: ref.Repository, Number: ref.Number, URL: issue.URL, Pull: issue.PullRequest}}
	t.URL = issue.URL
	if issue.State != "open" {
		reason := "issue_closed"
		if issue.PullRequest {
			reason = "pull_request_closed"
		}
		return t, &outcome.Stop{Outcome: outcome.Skipped, Reason: reason, Message: fmt.Sprintf("%s is closed; reopen it to have something said on it: %s.", t.Subject.Name(), issue.URL)}
	}
	readTexts := s.issueSubjectInput
	if issue.PullRequest {
		readTexts = s.pullSubjectInput
	}
	texts, err := readTexts(ctx, &t, ref, issue)
	if err != nil {
		return t, err
	}
	return s.addSubjectInput(ctx, t, instructions, texts)
}

// addSubjectInput returns the task with the job's instructions, followed by the texts on the subject
// between marks. The instructions are outside all marks, because the model must follow only them.
func (s *Source) addSubjectInput(ctx context.Context, t Task, instructions string, texts taskInput) (Task, error) {
	words, err := s.requesterParts(ctx, t.Subject)
	if err != nil {
		return t, err
	}
	note := clean.Part{Kind: "note", Author: "agent-ci", Text: s.feedbackInstructions(t.Subject)}
	texts.parts = slices.Concat([]clean.Part{note}, texts.parts, words)
	texts.title = ""
	if t, err = s.addInput(t, texts, t.Subject.Name()); err != nil {
		return t, err
	}
	withInstructions := texts
	withInstructions.parts = append([]clean.Part{{Kind: "job", Text: instructions}}, texts.parts...)
	if t.InputDigest, err = withInstructions.sha256Hex(); err != nil {
		return t, err
	}
	t.Title, t.ProgressLike, t.Text = s.feedbackTitle(t.Subject), nil, strings.TrimSpace(instructions+"\n\n"+t.Text)
	return t, nil
}

// subjectRef returns the issue or pull request to give feedback on.
func (s *Source) subjectRef() (form.Issue, error) {
	number := 0
	switch e := s.Event; {
	case s.Job.Task.Issue != "":
		return s.namedIssue()
	case s.Request != nil:
		number = s.Request.Number
	case e.InActions && e.Event != nil:
		var err error
		if number, err = e.SubjectNumber(); err != nil {
			return form.Issue{}, err
		}
	}
	if number == 0 {
		return form.Issue{}, outcome.Stopf(outcome.InvalidInput, "issue",
			"publish.as is %s, but no issue or pull request is named: start the job by an event of one, by workflow_dispatch with the input issue, or set task.issue.", s.Job.Publish.As)
	}
	return form.Issue{Repository: s.Event.Repository, Number: number}, s.Event.requireRepository()
}

// subjectRequestTime returns the time of the request on the subject. The zero time means now.
func (s *Source) subjectRequestTime(ref form.Issue) time.Time {
	switch {
	case s.Request != nil:
		return s.Request.RequestedAt
	case s.issueInEvent(ref) != nil:
		return s.Event.TimeOnIssue()
	}
	return time.Time{}
}

// issueSubjectInput returns an issue and its trusted comments.
func (s *Source) issueSubjectInput(ctx context.Context, _ *Task, ref form.Issue, issue *forge.Issue) (taskInput, error) {
	if s.Job.Publish.As == job.AsReview {
		return taskInput{}, outcome.Stopf(outcome.InvalidInput, "issue", "publish.as is review, and %s is an issue; give the number of a pull request.", ref)
	}
	texts, err := s.issueInput(ctx, ref, issue, s.subjectRequestTime(ref))
	if err != nil {
		return texts, err
	}
	texts.parts[0].Text = texts.title + "\n\n" + texts.parts[0].Text
	return texts, nil
}

// pullSubjectInput returns a pull request with its diff and its trusted comments. It rejects every
// fork, because the fork's content would be in the agent's checkout.
func (s *Source) pullSubjectInput(ctx context.Context, t *Task, ref form.Issue, issue *forge.Issue) (taskInput, error) {
	if err := requireJobRepository(s.Job, ref.Repository); err != nil {
		return taskInput{}, err
	}
	to := s.Forge.Repository(ref.Repository)
	pull, files, err := ReadDiff(ctx, to, ref.Number)
	if err != nil {
		return taskInput{}, err
	}
	if !strings.EqualFold(pull.HeadRepository, ref.Repository) {
		return taskInput{}, outcome.Stopf(outcome.Skipped, "fork",
			"Pull request #%d comes from a fork, and agent-ci reads nothing of forks: %s.", pull.Number, pull.URL)
	}
	t.Subject.PullRequest, t.Subject.Files, t.Subject.HeadSHA = pull, files, pull.HeadSHA
	comments, _, err := s.trustedComments(ctx, ref, issue, s.subjectRequestTime(ref))
	if err != nil {
		return taskInput{}, err
	}
	onLines, err := s.lineComments(ctx, to, ref.Number)
	if err != nil {
		return taskInput{}, err
	}
	parts := []clean.Part{{Kind: "pull_request", Author: pull.Author.Login, Text: pull.Title + "\n\n" + pull.Body}, partOfDiff(pull, files)}
	return taskInput{ref: ref, parts: slices.Concat(parts, comments, onLines)}, nil
}

// lineComments returns the comments on lines of the diff by trusted authors, and the findings of earlier
// runs with a note that the agent must not repeat them.
func (s *Source) lineComments(ctx context.Context, to forge.Repository, number int) ([]clean.Part, error) {
	if !s.Event.HasToken || s.Job.Trust.Comments == "none" {
		return nil, nil
	}
	comments, err := to.ReviewComments(ctx, number)
	if err != nil {
		return nil, ForgeFailure(fmt.Sprintf("The comments on the diff of pull request #%d cannot be read", number), err)
	}
	isOwn := ByTokenAccount(ctx, s.Forge)
	var parts []clean.Part
	for _, c := range comments {
		comment := forge.Comment{Author: c.Author}
		if strings.HasPrefix(c.Body, FindingMark) && isOwn(comment) {
			c.Body = strings.TrimPrefix(c.Body, FindingMark)
			found := partOfLineComment("comment", c)
			found.Text = "Found by an earlier run, and said there already: do not say it again.\n\n" + found.Text
			parts = append(parts, found)
			continue
		}
		trusted, err := s.isTrustedComment(ctx, to, comment)
		if err != nil {
			return nil, err
		}
		if trusted {
			parts = append(parts, partOfLineComment("comment", c))
		}
	}
	return parts, nil
}

// requesterParts returns the words of the account that asked for the run, without the command.
func (s *Source) requesterParts(ctx context.Context, subject *Subject) ([]clean.Part, error) {
	switch q := s.Request; {
	case q == nil:
		return nil, nil
	case subject.Pull && q.LineComment != nil:
		return s.pullRequestParts(ctx)
	case q.Words != "":
		return []clean.Part{{Kind: "request", Author: q.Actor.Login, Text: q.Words}}, nil
	}
	return nil, nil
}

// feedbackTitle returns a title without texts of the subject, which must stay between marks.
func (s *Source) feedbackTitle(subject *Subject) string {
	to := map[string]string{job.AsReview: "Review of", job.AsLabels: "Labels for", job.AsComment: "Comment on"}[s.Job.Publish.As]
	name := subject.Name()
	return to + " " + strings.ToLower(name[:1]) + name[1:]
}

// feedbackInstructions explains to the agent how its work is published.
func (s *Source) feedbackInstructions(subject *Subject) string {
	words := "Change no file: the runner publishes no change of this task, and refuses one. "
	if subject.Pull {
		words += fmt.Sprintf("The checkout holds the head of the pull request, commit %s; its diff is below, with the numbers of the new lines. ", subject.HeadSHA)
	}
	name := subject.Name()
	switch s.Job.Publish.As {
	case job.AsReview:
		return words + "Review the pull request. When you are done you are asked for the review as a JSON object, which the runner publishes: a summary, and findings, each on lines of the new side of the diff. " +
			"A finding says what is wrong, or what a reader has to know, and why; leave out what is fine and what is a matter of taste. No finding is a good answer, too."
	case job.AsLabels:
		return words + fmt.Sprintf("Choose labels for %s. When you are done you are asked for a JSON object with those of these labels that fit, none if none does: %s.", name, strings.Join(s.Job.Publish.Labels, ", "))
	}
	return words + fmt.Sprintf("When you are done you are asked for a JSON object with a comment in Markdown, which the runner writes on %s.", name)
}
