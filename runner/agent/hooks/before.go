package hooks

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
)

// rewriteRounds is how often all hooks are asked about one call while they keep rewriting it.
const rewriteRounds = 4

// Before asks the hooks whether a call may run, except about patches (see ReviewPatch). A hook sees the input as
// earlier hooks changed it, and is asked again if a later hook rewrites it. convert returns the call with a rewritten
// input, and false if the tool does not accept it.
func (h *Hooks) Before(ctx context.Context, tool string, call tools.Call, convert tools.ConvertInput) tools.Verdict {
	refusal, notes := h.askUntilAgreed(ctx, tool, call, convert)
	return tools.Verdict{Refusal: refusal, TextBefore: strings.Join(notes, "\n")}
}

// askUntilAgreed asks the hooks in turn until all agree to the same input of a call. It returns the refusal of the
// call, or "", and text for the model. It stops if the tool does not accept a rewritten input; the dispatcher reports
// that.
func (h *Hooks) askUntilAgreed(ctx context.Context, tool string, call tools.Call, convert tools.ConvertInput) (refusal string, notesForModel []string) {
	hooks := h.forEvent(job.OnPreToolUse)
	agreed := 0 // how many hooks in a row agree to the input
	for turn := 0; agreed < len(hooks); turn++ {
		if turn == rewriteRounds*len(hooks) {
			return "Not run: the hooks of this run rewrite each other's input of this call without end. That is a fault of the hooks, not of the call; go on without it, and say so in your last message if the task needs it.", notesForModel
		}
		hook := hooks[turn%len(hooks)]
		agreed++
		if !hook.matches(tool, call) {
			continue
		}
		shown := h.toClaudeCall(tool, call)
		r, err := h.ask(ctx, hook, question{
			call: refOf(call), eventInput: shown.questionInput(call), replaceable: call.Input,
			rewrite: func(newInput json.RawMessage) (string, error) { return rewrite(tool, call, shown, newInput) },
		})
		switch {
		case err != nil:
			return hook.failureText(err), notesForModel
		case r.refuses():
			return hook.refusalText(r), notesForModel
		case r.Decision == transcript.HookRewrite && canonicalInput(r.After) != canonicalInput(call.Input):
			before, fits := canonicalInput(call.Input), false
			if call, fits = convert(r.After); !fits {
				return "", notesForModel
			}
			if canonicalInput(call.Input) != before { // the tool may ignore what the hook added
				agreed = 1
			}
			notesForModel = append(notesForModel, "The hook "+hook.Name+" rewrote the input of this call: "+shorten(call.Input))
		}
		if added := hook.addedContext(r); r.Context != "" && !slices.Contains(notesForModel, added) {
			notesForModel = append(notesForModel, added)
		}
	}
	return "", notesForModel
}

// canonicalInput returns the input with its JSON in one format, so that equal inputs can be compared. It returns an
// input that is no JSON object unchanged.
func canonicalInput(input string) string {
	object := parseObject([]byte(input))
	text, err := json.Marshal(object)
	if object == nil || err != nil {
		return input
	}
	return string(text)
}
