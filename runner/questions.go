package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/question"
)

// questionTool is the name of the tool by which a model asks a person.
const questionTool = "request_user_input"

// asksPeople says that questions go to the people of the task's issue.
func (r *run) asksPeople() bool {
	return r.job.Task.Questions == "ask" && r.task.issue != nil && r.env.first(tokenNames...) != ""
}

// questionTools is request_user_input, as task.questions has it.
func (r *run) questionTools() tools.Tool {
	if r.asksPeople() {
		return question.New(r.askPeople)
	}
	if r.job.Task.Questions == "ask" {
		r.warn("nobody_to_ask", "task.questions is ask, but there is no issue, or no token, to ask with; the agent has to assume.")
	}
	return question.New(nil)
}

// askPeople puts the agent's questions on the task's issue. The run ends as
// needs_input when the agent has ended.
func (r *run) askPeople(ctx context.Context, questions []question.Question) error {
	owner, name, _ := strings.Cut(r.task.issue.Repository, "/")
	body := r.redactor.Redact(questionsComment(questions))
	if _, err := r.forge.CreateComment(ctx, owner, name, r.task.issue.Number, body); err != nil {
		return fmt.Errorf("comment on %s: %w", r.task.issue, err)
	}
	r.asked += len(questions)
	return nil
}

// questionsComment is what stands on the issue.
func questionsComment(questions []question.Question) string {
	var s strings.Builder
	s.WriteString("The agent cannot go on without an answer. Reply below, then ask for the task again.\n")
	for i, q := range questions {
		fmt.Fprintf(&s, "\n%d. %s\n", i+1, transcript.Plain(q.Question))
		for _, option := range q.Options {
			fmt.Fprintf(&s, "   - %s: %s\n", transcript.Plain(option.Label), transcript.Plain(option.Description))
		}
	}
	return s.String()
}

// waitsForAnswers ends a run whose agent has asked.
func (r *run) waitsForAnswers() error {
	if r.asked == 0 {
		return nil
	}
	return outcome.Stopf(outcome.NeedsInput, "questions",
		"The agent asked %d questions on %s; answer there, and run again.", r.asked, r.task.issue)
}

// offeredBesides are the tools that the job has the model told of.
func (r *run) offeredBesides() []string {
	if !r.asksPeople() {
		return r.job.Tools.Allow
	}
	return append([]string{questionTool}, r.job.Tools.Allow...)
}
