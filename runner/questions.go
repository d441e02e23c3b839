package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/body"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/question"
)

// questionTool is the name of the tool by which a model asks a person.
const questionTool = "request_user_input"

// asksPeople says that questions go to the people of the task's issue.
func (r *run) asksPeople() bool {
	if recorded := r.replayed(); recorded != nil {
		return recorded.asks
	}
	return r.job.Task.Questions == "ask" && r.task.issue != nil && r.env.Token() != ""
}

// questionTools is request_user_input, as task.questions has it.
func (r *run) questionTools() tools.Tool {
	if r.asksPeople() {
		return question.New(r.askPeople)
	}
	if r.job.Task.Questions == "ask" {
		r.rec.Warn(nobodyToAsk, "task.questions is ask, but there is no issue, or no token, to ask with; the agent has to assume.")
	}
	return question.New(nil)
}

// nobodyToAsk is the warning of a run whose questions go to nobody.
const nobodyToAsk = "nobody_to_ask"

// askedPeople says that the run had people to put its questions to.
func (h *history) askedPeople() bool {
	return h.job.Task.Questions == "ask" && !slices.ContainsFunc(h.Warnings, func(w transcript.Warning) bool { return w.Code == nobodyToAsk })
}

// How much of each part of a question is shown, in UTF-16 code units.
const (
	mostOfQuestion = 2_000
	mostOfOption   = 200 // of its label, and of its description
	mostOptions    = 10
)

// askPeople puts the agent's questions on the task's issue, in one comment. The
// run ends as needs_input when the agent has ended. In a replay they were asked
// already, and nobody is asked again.
func (r *run) askPeople(ctx context.Context, questions []question.Question) error {
	all := slices.Concat(r.asked, questions)
	if r.replayed() != nil {
		r.asked = all
		return nil
	}
	body := r.rec.Redact(questionsComment(all))
	if err := r.writeQuestions(ctx, body); err != nil {
		return fmt.Errorf("comment on %s: %w", r.task.issue, err)
	}
	r.asked = all
	return nil
}

// writeQuestions edits the comment of this run, or of an earlier one to which
// nobody has said anything; else there is a new one.
func (r *run) writeQuestions(ctx context.Context, body string) error {
	repository := r.forge.Repository(r.task.issue.Repository)
	if r.askedIn == 0 {
		r.askedIn = r.unanswered(ctx)
	}
	if r.askedIn != 0 && repository.EditComment(ctx, r.askedIn, body) == nil {
		return nil
	}
	comment, err := repository.CreateComment(ctx, r.task.issue.Number, body)
	if err != nil {
		return err
	}
	r.askedIn = comment.ID
	return nil
}

// unanswered is the last comment on the issue, where it holds the questions of an
// earlier run; 0 for none.
func (r *run) unanswered(ctx context.Context) int64 {
	comments, err := r.forge.Repository(r.task.issue.Repository).Comments(ctx, r.task.issue.Number)
	if err != nil {
		return 0
	}
	for _, c := range slices.Backward(comments) {
		switch {
		case strings.HasPrefix(c.Body, questionsMark) && r.ownsComments(ctx)(c):
			return c.ID
		case !isProgress(c):
			return 0
		}
	}
	return 0
}

// questionsComment is what stands on the issue.
func questionsComment(questions []question.Question) string {
	rows := make([]string, 0, len(questions))
	for i, q := range questions {
		var s strings.Builder
		fmt.Fprintf(&s, "\n%d. %s\n", i+1, markdown.Text(markdown.Cut(q.Question, mostOfQuestion)))
		for _, option := range q.Options[:min(len(q.Options), mostOptions)] {
			fmt.Fprintf(&s, "   - %s: %s\n", markdown.Text(markdown.Cut(option.Label, mostOfOption)), markdown.Text(markdown.Cut(option.Description, mostOfOption)))
		}
		rows = append(rows, s.String())
	}
	return body.List(questionsMark+"The agent cannot go on without an answer. Reply below, then ask for the task again.\n", rows, "question", body.DefaultLimit)
}

// waitsForAnswers ends a run whose agent has asked.
func (r *run) waitsForAnswers() error {
	if len(r.asked) == 0 {
		return nil
	}
	return outcome.Stopf(outcome.NeedsInput, "questions",
		"The agent asked %d questions on %s; answer there, and run again.", len(r.asked), r.task.issue)
}

// offeredBesides are the tools that the job has the model told of.
func (r *run) offeredBesides() []string {
	if !r.asksPeople() {
		return r.job.Tools.Allow
	}
	return append([]string{questionTool}, r.job.Tools.Allow...)
}
