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

// callReview is a call that hooks are asked about.
type callReview struct {
	hooks         *Hooks
	tool          string
	call          tools.Call
	convert       tools.ConvertInput
	agreedInputs  map[string]string // the last input that each hook agreed to, by the hook's name
	notesForModel []string          // text for the model
}

// Before asks the hooks whether a call may run, except about patches (see ReviewPatch). A hook sees the input as
// earlier hooks changed it, and is asked again if a later hook rewrites it. convert returns the call with a rewritten
// input, and false if the tool does not accept it. A nil convert accepts every input.
func (h *Hooks) Before(ctx context.Context, tool string, call tools.Call, convert tools.ConvertInput) tools.Verdict {
	review := callReview{hooks: h, tool: tool, call: call, convert: convert, agreedInputs: map[string]string{}}
	return tools.Verdict{Refusal: review.askAll(ctx), TextBefore: strings.Join(review.notesForModel, "\n")}
}

// askAll asks the hooks until all agree to the same input. It returns the refusal of the call, or "".
func (review *callReview) askAll(ctx context.Context) (refusal string) {
	for range rewriteRounds {
		rewritten := false
		for _, hook := range review.hooks.forEvent(job.OnPreToolUse) {
			before := canonicalInput(review.call.Input)
			agreed, wasAsked := review.agreedInputs[hook.Name]
			hasAgreed := wasAsked && agreed == before
			if hasAgreed || !hook.matches(review.tool, review.call) {
				continue
			}
			refusal, proceed := review.ask(ctx, hook)
			if refusal != "" || !proceed {
				return refusal
			}
			after := canonicalInput(review.call.Input)
			review.agreedInputs[hook.Name] = after
			if after != before {
				rewritten = true
			}
		}
		if !rewritten {
			return ""
		}
	}
	return "Not run: the hooks of this run rewrite each other's input of this call without end. That is a fault of the hooks, not of the call; go on without it, and say so in your last message if the task needs it."
}

// ask asks one hook. proceed is false if no further hook must be asked: the call is refused, or its rewritten input is
// invalid, which the dispatcher reports.
func (review *callReview) ask(ctx context.Context, hook Hook) (refusal string, proceed bool) {
	shown := review.hooks.toClaudeCall(review.tool, review.call)
	r, err := review.hooks.ask(ctx, hook, question{
		call: refOf(review.call), eventInput: shown.questionInput(review.call), replaceable: review.call.Input,
		rewrite: func(newInput json.RawMessage) (string, error) {
			return rewrite(review.tool, review.call, shown, newInput)
		},
	})
	switch {
	case err != nil:
		return hook.failureText(err), false
	case r.refuses():
		return hook.refusal(r), false
	case r.Decision == transcript.HookRewrite && canonicalInput(r.After) != canonicalInput(review.call.Input):
		if !review.rewrite(r.After) {
			return "", false
		}
		review.notesForModel = append(review.notesForModel, "The hook "+hook.Name+" rewrote the input of this call: "+shorten(review.call.Input))
	}
	if added := hook.addedContext(r); r.Context != "" && !slices.Contains(review.notesForModel, added) {
		review.notesForModel = append(review.notesForModel, added)
	}
	return "", true
}

// rewrite replaces the call's input. fits is false if the tool does not accept it.
func (review *callReview) rewrite(input string) (fits bool) {
	if review.convert == nil {
		review.call.Input = input
		return true
	}
	review.call, fits = review.convert(input)
	return fits
}

// canonicalInput returns the input with its JSON in one format, so that equal inputs can be compared. It returns an
// input that is no JSON object unchanged.
func canonicalInput(input string) string {
	if text, err := json.Marshal(parseObject([]byte(input))); err == nil && string(text) != "null" {
		return string(text)
	}
	return input
}
