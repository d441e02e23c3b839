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

// WrittenParser parses the text of a model without tools to calls, in running order. They have no IDs
// yet.
type WrittenParser func(text string) []tools.Call

// callsIn returns the calls in an answer's words.
func (w WrittenParser) callsIn(said callitem.Answer) []tools.Call {
	if w == nil {
		return nil
	}
	text := strings.Join(said.Words, "\n")
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

// withNumber returns a call with its number in the conversation. Written calls get an ID from it.
func withNumber(call tools.Call, n, turn int, by string) tools.Call {
	call.Number, call.Turn, call.Agent = n, turn, by
	if call.Form == tools.Written {
		call.ID = fmt.Sprintf("written_%d", n)
	}
	return call
}

// addWrittenCalls adds the calls in a complete answer's words.
func (t *answerIntake) addWrittenCalls() {
	if t.wordsOnly {
		return
	}
	for _, call := range t.c.ParseWritten.callsIn(t.Answer) {
		t.Calls = append(t.Calls, withNumber(call, t.c.callNumber+len(t.Calls)+1, t.c.spent.Turns, t.c.Name))
		t.sortLast(t.mayCall)
	}
}

// uneditedWords answer commands after failed edits in the same answer: their files would be wrong.
const uneditedWords = "Not run: the edits of the same answer were not made. Write the command again with edits that fit."

// runWrittenCalls runs written calls in sequence. failed means earlier edits of the answer have failed.
func (c *Conversation) runWrittenCalls(ctx context.Context, calls []tools.Call, failed bool) []tools.Result {
	results := make([]tools.Result, len(calls))
	for i, call := range calls {
		if failed && dialect.Is(call.Name, dialect.Commands) {
			call.Refused = uneditedWords
		}
		results[i] = c.Tools.Dispatch(ctx, []tools.Call{call})[0]
		failed = failed || isEdit(call) && results[i].Failed
	}
	return results
}

// writtenCutWords tell a model without tools about its interrupted answer, absent from requests.
const writtenCutWords = "Your last answer was stopped before its end (%s), and nothing of it was done. Write a shorter one: a few edits or one file, and the rest in answers to come."

// isEdit reports whether a call is a model's written edits.
func isEdit(call tools.Call) bool {
	return call.Form == tools.Written && call.Name == dialect.ApplyPatch
}

// maxEditFailures is the number of messages in a row about failed edits, before the run ends.
const maxEditFailures = 3

// editFailures counts answers in a row with failed edits. Answers without edits do not reset it.
type editFailures int

func (t *editFailures) count(call tools.Call, failed bool) {
	switch {
	case !isEdit(call):
	case failed:
		*t++
	default:
		*t = 0
	}
}

// stopAfterTooMany returns the stop of a run after too many failed edits.
func (t editFailures) stopAfterTooMany() error {
	if t <= maxEditFailures {
		return nil
	}
	return outcome.Stopf(outcome.ModelFailed, "failed_edits",
		"The edits of %d answers in a row did not fit; see the transcript, or set another model.tools for this model.", int(t))
}
