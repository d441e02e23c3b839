package extensions

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// A script that runs again may make its calls in another order: each gets what it got before.
func TestAnswersScriptCallsInAnyOrder(t *testing.T) {
	r := Recorded{Answers: map[transcript.CallRef]transcript.ToolFinished{{Number: 1}: {Output: "of the model"}}}
	for i, input := range []string{"a", "b", "b"} {
		began := transcript.ToolStarted{Number: i + 1, Caller: 7, Tool: "look", Input: input}
		r.Nested.Add(began)
		r.Answers[began.Ref()] = transcript.ToolFinished{Output: input + " " + began.Ref().String()}
	}
	for _, test := range []struct {
		number, caller int
		input, want    string
	}{
		{1, 7, "b", "b 7.2"},
		{2, 7, "b", "b 7.3"},
		{3, 7, "a", "a 7.1"},
		{2, 7, "other", "b 7.2"},
		{4, 7, "other", "The record has no answer to call 7.4."},
		{1, 0, "b", "of the model"},
	} {
		call := tools.Call{Name: "look", Number: test.number, Caller: test.caller, Input: test.input}
		must.Same(t, test.want, must.Get(r.Run(tools.WithCall(t.Context(), call), call))(t).Output, test.caller, test.number, test.input)
	}
}
