package hooks

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
)

// rewriteRounds is how often hooks are asked about one call when they rewrite it.
const rewriteRounds = 4

// judging is a call under review by hooks.
type judging struct {
	hooks  *Hooks
	tool   string
	call   tools.Call
	fit    tools.Fit
	agreed map[string]string // inputs that hooks agreed to, by hook
	aside  []string
}

// Before asks the hooks about a call. Each sees the input changed by earlier hooks, and is asked
// again after a later rewrite. Patching handles patches. A nil fit accepts every input.
func (h *Hooks) Before(ctx context.Context, tool string, call tools.Call, fit tools.Fit) tools.Verdict {
	j := judging{hooks: h, tool: tool, call: call, fit: fit, agreed: map[string]string{}}
	return tools.Verdict{Refusal: j.askAll(ctx), Aside: strings.Join(j.aside, "\n")}
}

// askAll asks until all hooks agree to the same input. It returns why the call is refused.
func (j *judging) askAll(ctx context.Context) (refusal string) {
	for range rewriteRounds {
		rewritten := false
		for _, one := range j.hooks.on(job.OnPreToolUse) {
			was := canonical(j.call.Input)
			if input, asked := j.agreed[one.Name]; asked && input == was || !one.concerns(j.tool, j.call) {
				continue
			}
			refusal, goesOn := j.ask(ctx, one)
			if refusal != "" || !goesOn {
				return refusal
			}
			j.agreed[one.Name] = canonical(j.call.Input)
			rewritten = rewritten || canonical(j.call.Input) != was
		}
		if !rewritten {
			return ""
		}
	}
	return "Not run: the hooks of this run rewrite each other's input of this call without end. That is a fault of the hooks, not of the call; go on without it, and say so in your last message if the task needs it."
}

// ask asks one hook. goesOn is false if the dispatcher refuses the rewritten call.
func (j *judging) ask(ctx context.Context, one Hook) (refusal string, goesOn bool) {
	shown := j.hooks.shape(j.tool, j.call)
	r, err := j.hooks.ask(ctx, one, question{
		of: refOf(j.call), about: shown.about(j.call), before: j.call.Input,
		rewrite: func(by json.RawMessage) (string, error) { return rewrite(j.tool, j.call, shown, by) },
	})
	switch {
	case err != nil:
		return one.unasked(err), false
	case r.refuses():
		return one.refusal(r), false
	case r.input != nil && canonical(r.after) != canonical(j.call.Input):
		if !j.rewrite(r.after) {
			return "", false
		}
		j.aside = append(j.aside, "The hook "+one.Name+" rewrote the input of this call: "+cut(j.call.Input))
	}
	if words := one.adds(r); r.context != "" && !slices.Contains(j.aside, words) {
		j.aside = append(j.aside, words)
	}
	return "", true
}

func (j *judging) rewrite(input string) (fits bool) {
	if j.fit == nil {
		j.call.Input = input
		return true
	}
	j.call, fits = j.fit(input)
	return fits
}

// canonical returns one form for equivalent inputs.
func canonical(input string) string {
	if text, err := json.Marshal(object([]byte(input))); err == nil && string(text) != "null" {
		return string(text)
	}
	return input
}
