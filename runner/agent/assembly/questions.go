package assembly

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/tools/question"
)

// Maximum lengths of the parts of a question in a comment, in UTF-16 code units.
const (
	maxQuestionText = 2_000
	maxOptionText   = 200 // of an option's label, and of its description
	maxOptions      = 10
)

// IssuePeople asks people questions in one comment on the task's issue.
type IssuePeople struct {
	Forge  forge.Forge
	Issue  form.Issue
	Redact func(string) string

	comment int64 // ID of the comment with the questions; 0 before there is one
}

// Ask posts all questions of the run in one comment on the issue. It edits an earlier comment with questions of this
// run, or of an earlier run that nobody answered. If there is none, it adds a comment.
func (p *IssuePeople) Ask(ctx context.Context, all []question.Question) error {
	if err := p.write(ctx, p.Redact(questionsComment(all))); err != nil {
		return fmt.Errorf("comment on %s: %w", p.Issue, err)
	}
	return nil
}

// write writes text to the comment with the questions, or to a new comment.
func (p *IssuePeople) write(ctx context.Context, text string) error {
	repository := p.Forge.Repository(p.Issue.Repository)
	if p.comment == 0 {
		p.comment = p.unansweredComment(ctx, repository)
	}
	if p.comment != 0 && repository.EditComment(ctx, p.comment, text) == nil {
		return nil
	}
	comment, err := repository.CreateComment(ctx, p.Issue.Number, text)
	if err != nil {
		return err
	}
	p.comment = comment.ID
	return nil
}

// unansweredComment returns the ID of the issue's last comment if that contains an earlier run's questions, and 0
// otherwise. It ignores progress comments.
func (p *IssuePeople) unansweredComment(ctx context.Context, repository forge.Repository) int64 {
	comments, err := repository.Comments(ctx, p.Issue.Number)
	if err != nil {
		return 0
	}
	isOwn := intake.ByAppOrTokenAccount(ctx, p.Forge)
	for _, c := range slices.Backward(comments) {
		switch {
		case strings.HasPrefix(c.Body, intake.QuestionsMark) && isOwn(c):
			return c.ID
		case !intake.IsProgress(c):
			return 0
		}
	}
	return 0
}

// StopForAnswers returns the error that ends a run because it asked questions on the issue, or nil if it asked none.
func (w Work) StopForAnswers(issue *form.Issue) error {
	if len(w.Questions) == 0 {
		return nil
	}
	return outcome.Stopf(outcome.NeedsInput, "questions",
		"The agent asked %d questions on %s; answer there, and run again.", len(w.Questions), issue)
}

// questionsComment returns the text of the comment with the questions.
func questionsComment(questions []question.Question) string {
	rows := make([]string, 0, len(questions))
	for i, q := range questions {
		var s strings.Builder
		fmt.Fprintf(&s, "\n%d. %s\n", i+1, markdown.Text(markdown.Cut(q.Question, maxQuestionText)))
		for _, option := range q.Options[:min(len(q.Options), maxOptions)] {
			fmt.Fprintf(&s, "   - %s: %s\n", markdown.Text(markdown.Cut(option.Label, maxOptionText)), markdown.Text(markdown.Cut(option.Description, maxOptionText)))
		}
		rows = append(rows, s.String())
	}
	return body.List(intake.QuestionsMark+"The agent cannot go on without an answer. Reply below, then ask for the task again.\n", rows, "question", body.DefaultLimit)
}
