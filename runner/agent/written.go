package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/callitem"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// WrittenParser returns the calls that a model without tools wrote into its text, in the order to run
// them. They have no IDs yet.
type WrittenParser func(text string) []tools.Call

// callsIn returns the calls written in an answer's text. For a text over tools.MaxInput it returns one refused
// call. A nil parser returns none.
func (w WrittenParser) callsIn(answer callitem.Answer) []tools.Call {
	if w == nil {
		return nil
	}
	text := strings.Join(answer.Words, "\n")
	if len(text) > tools.MaxInput {
		return []tools.Call{{Name: dialect.ApplyPatch, Form: tools.Written, Refused: fmt.Sprintf(
			"Nothing was edited or run: the answer has %d bytes, more than the %d that it may have. Write it in several smaller ones.", len(text), tools.MaxInput)}}
	}
	calls := w(text)
	for i := range calls {
		calls[i].Form = tools.Written
	}
	return calls
}

// withNumber returns a call with its number in the conversation, its turn and its agent. A written
// call gets an ID made from the number, since the API gives it none.
func withNumber(call tools.Call, number, turn int, agent string) tools.Call {
	call.Number, call.Turn, call.Agent = number, turn, agent
	if call.Form == tools.Written {
		call.ID = fmt.Sprintf("written_%d", number)
	}
	return call
}

// addWrittenCalls adds the calls written in the text of a complete answer.
func (a *answerIntake) addWrittenCalls() {
	if a.wordsOnly {
		return
	}
	for _, call := range a.conversation.ParseWritten.callsIn(a.Answer) {
		a.Calls = append(a.Calls, withNumber(call, a.conversation.callNumber+len(a.Calls)+1, a.conversation.spent.Turns, a.conversation.Name))
		a.admitLastCall(a.countNextCall)
	}
}

// failedEditsRefusal answers a command that follows failed edits in the same answer. It would run on files
// without the edits.
const failedEditsRefusal = "Not run: the edits of the same answer were not made. Write the command again with edits that fit."

// runWrittenCalls runs written calls one after the other. It refuses commands after a failed edit. editFailed means
// that an earlier edit of the answer failed.
func (c *Conversation) runWrittenCalls(ctx context.Context, calls []tools.Call, editFailed bool) []tools.Result {
	results := make([]tools.Result, len(calls))
	for i, call := range calls {
		if editFailed && dialect.Is(call.Name, dialect.Commands) {
			call.Refused = failedEditsRefusal
		}
		results[i] = c.Tools.Dispatch(ctx, []tools.Call{call})[0]
		if isEdit(call) && results[i].Failed {
			editFailed = true
		}
	}
	return results
}

// cutAnswerText tells a model without tools that its answer broke off. The history does not contain that
// answer.
const cutAnswerText = "Your last answer was stopped before its end (%s), and nothing of it was done. Write a shorter one: a few edits or one file, and the rest in answers to come."

// isEdit reports whether a call is an edit that a model without tools wrote.
func isEdit(call tools.Call) bool {
	return call.Form == tools.Written && call.Name == dialect.ApplyPatch
}

// maxEditFailures is how many answers in a row may have failing edits. One more ends the run.
const maxEditFailures = 3

// editFailures counts consecutive failed edits. Answers without edits do not reset it.
type editFailures int

// countEdit counts a failed edit, and resets the count after a successful one.
func (t *editFailures) countEdit(call tools.Call, failed bool) {
	switch {
	case !isEdit(call):
	case failed:
		*t++
	default:
		*t = 0
	}
}

// stopIfTooMany returns the error that ends a run with more than maxEditFailures failed edits in a row, or nil.
func (t editFailures) stopIfTooMany() error {
	if t <= maxEditFailures {
		return nil
	}
	return outcome.Stopf(outcome.ModelFailed, "failed_edits",
		"The edits of %d answers in a row did not fit; see the transcript, or set another model.tools for this model.", int(t))
}
