package hooks

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
)

// rewriteRounds is how often all hooks are asked about one call while they keep rewriting it.
const rewriteRounds = 4

// callReview is a call that hooks are asked about.
type callReview struct {
	hooks        *Hooks
	tool         string
	call         tools.Call
	accepts      tools.ConvertInput
	agreedInputs map[string]string // the last input that each hook agreed to, by the hook's name
	notes        []string          // text for the model
}

// Before asks the hooks about a call before it runs. A hook sees the input as earlier hooks changed it, and
// is asked again if a later hook rewrites the input. fit converts a rewritten input and reports whether
// it is valid. A nil fit accepts every input. ReviewPatch asks about patches.
func (h *Hooks) Before(ctx context.Context, tool string, call tools.Call, fit tools.ConvertInput) tools.Verdict {
	j := callReview{hooks: h, tool: tool, call: call, accepts: fit, agreedInputs: map[string]string{}}
	return tools.Verdict{Refusal: j.askAll(ctx), TextBefore: strings.Join(j.notes, "\n")}
}

// askAll asks the hooks until all agree to the same input. It returns why the call is refused, or "".
func (j *callReview) askAll(ctx context.Context) (refusal string) {
	for range rewriteRounds {
		rewritten := false
		for _, one := range j.hooks.forEvent(job.OnPreToolUse) {
			was := canonical(j.call.Input)
			if input, asked := j.agreedInputs[one.Name]; asked && input == was || !one.matches(j.tool, j.call) {
				continue
			}
			refusal, goesOn := j.ask(ctx, one)
			if refusal != "" || !goesOn {
				return refusal
			}
			j.agreedInputs[one.Name] = canonical(j.call.Input)
			rewritten = rewritten || canonical(j.call.Input) != was
		}
		if !rewritten {
			return ""
		}
	}
	return "Not run: the hooks of this run rewrite each other's input of this call without end. That is a fault of the hooks, not of the call; go on without it, and say so in your last message if the task needs it."
}

// ask asks one hook. goesOn is false if the call is refused, or if its rewritten input is invalid. The
// dispatcher reports the latter.
func (j *callReview) ask(ctx context.Context, one Hook) (refusal string, goesOn bool) {
	shown := j.hooks.toClaudeCall(j.tool, j.call)
	r, err := j.hooks.ask(ctx, one, question{
		call: refOf(j.call), input: shown.claudeInput(j.call), replaceable: j.call.Input,
		rewrite: func(by json.RawMessage) (string, error) { return rewrite(j.tool, j.call, shown, by) },
	})
	switch {
	case err != nil:
		return one.failureText(err), false
	case r.refuses():
		return one.refusal(r), false
	case r.input != nil && canonical(r.replacement) != canonical(j.call.Input):
		if !j.rewrite(r.replacement) {
			return "", false
		}
		j.notes = append(j.notes, "The hook "+one.Name+" rewrote the input of this call: "+shorten(j.call.Input))
	}
	if words := one.addedContext(r); r.context != "" && !slices.Contains(j.notes, words) {
		j.notes = append(j.notes, words)
	}
	return "", true
}

// rewrite sets the call's input, and reports whether the tool accepts it.
func (j *callReview) rewrite(input string) (fits bool) {
	if j.accepts == nil {
		j.call.Input = input
		return true
	}
	j.call, fits = j.accepts(input)
	return fits
}

// canonical returns the same text for inputs that differ only in JSON formatting.
func canonical(input string) string {
	if text, err := json.Marshal(parseObject([]byte(input))); err == nil && string(text) != "null" {
		return string(text)
	}
	return input
}
