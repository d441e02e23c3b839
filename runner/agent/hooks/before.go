package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// rewriteRounds is how often hooks are asked of one call where they rewrite it.
const rewriteRounds = 4

// judging is a call that hooks are asked about.
type judging struct {
	hooks  *Hooks
	tool   string
	call   tools.Call
	line   string // that was typed into the session of the call before
	fit    tools.Fit
	agreed map[string]string // inputs that hooks were content with, by their names
	aside  []string
}

// Before asks the hooks on calls. Each sees what those before it made of the call, and is asked
// again where another one made something else of it later. A fit that is nil takes all.
func (h *Hooks) Before(ctx context.Context, tool string, call tools.Call, fit tools.Fit) tools.Verdict {
	j := judging{hooks: h, tool: tool, call: call, line: h.typedLine(tool, call), fit: fit, agreed: map[string]string{}}
	refusal := j.askAll(ctx)
	if refusal == "" {
		h.noteTyped(tool, j.call)
	}
	return tools.Verdict{Refusal: refusal, Aside: strings.Join(j.aside, "\n")}
}

// askAll asks until all hooks are content with the same input, and says why the call is refused.
func (j *judging) askAll(ctx context.Context) (refusal string) {
	for range rewriteRounds {
		rewritten := false
		for _, one := range j.hooks.on(job.OnPreToolUse) {
			was := j.call.Input
			if input, asked := j.agreed[one.Name]; asked && input == canonical(was) {
				continue
			}
			refusal, goesOn := j.ask(ctx, one)
			if refusal != "" || !goesOn {
				return refusal
			}
			j.agreed[one.Name] = canonical(j.call.Input)
			rewritten = rewritten || canonical(j.call.Input) != canonical(was)
		}
		if !rewritten {
			return ""
		}
	}
	return "Not run: the hooks of this run rewrite each other's input of this call without end. That is a fault of the hooks, not of the call; go on without it, and say so in your last message if the task needs it."
}

// ask asks one hook. It goes on where the call is still one that can be made.
func (j *judging) ask(ctx context.Context, one Hook) (refusal string, goesOn bool) {
	for _, a := range j.hooks.aspects(one, j.tool, j.call) {
		r, err := j.hooks.ask(ctx, one, j.question(a))
		switch {
		case err != nil:
			return "Not run: the hook " + one.Name + " could not be asked: " + err.Error(), false
		case r.refuses():
			return one.refusal(r), false
		case r.input != nil && canonical(r.after) != canonical(j.call.Input):
			if !j.rewrite(r.after) {
				return "", false
			}
			j.aside = append(j.aside, "The hook "+one.Name+" rewrote the input of this call: "+cut(j.call.Input))
		}
		if words := "The hook " + one.Name + " adds: " + r.context; r.context != "" && !slices.Contains(j.aside, words) {
			j.aside = append(j.aside, words)
		}
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

// question returns what a hook is asked of an aspect of the call.
func (j *judging) question(a aspect) question {
	if j.line != "" { // a line is run as a whole, however it was typed
		a.as.Input["command"] = j.line + commandText(j.tool, j.call)
	}
	q := question{of: refOf(j.call), about: a.as.about(j.call), before: j.call.Input}
	if a.rewritable {
		q.rewrite = func(by json.RawMessage) (string, error) {
			if j.line != "" {
				return "", errors.New("the input that it gives instead can't be typed: the line has begun before")
			}
			return rewrite(j.tool, j.call, a.as, by)
		}
	}
	return q
}

// aspect is one way to look at a call: as what it is, or as the patch that its command applies.
type aspect struct {
	as         shaped
	rewritable bool
}

// aspects returns those of a call that a hook is asked about. Hooks that are asked by file are asked of
// patches once these are known to fit.
func (h *Hooks) aspects(one Hook, tool string, call tools.Call) (all []aspect) {
	if one.ofPatch() {
		for _, text := range h.patchesIn(tool, call) {
			all = append(all, aspect{as: shaped{dialect.ApplyPatch, map[string]any{"command": text}}})
		}
	}
	switch {
	case tool != dialect.ApplyPatch && one.concerns(tool, call):
		all = append(all, aspect{h.shape(tool, call), true})
	case tool == dialect.ApplyPatch && one.ofPatch():
		as := h.shape(tool, call)
		as.Input["command"] = h.fromWorkDir("", patchText(call))
		all = append(all, aspect{as, true})
	}
	return all
}

// canonical returns an input in one form, of those that mean the same.
func canonical(input string) string {
	if text, err := json.Marshal(object([]byte(input))); err == nil && string(text) != "null" {
		return string(text)
	}
	return input
}

// longestLine is how much of a line that is typed in pieces is remembered.
const longestLine = 64 << 10

// typedInput are the arguments of text that is typed.
type typedInput struct {
	Session float64 `json:"session_id"`
	Chars   string  `json:"chars"`
}

func typing(tool string, call tools.Call) (in typedInput, is bool) {
	is = tool == dialect.WriteStdin && json.Unmarshal([]byte(call.Input), &in) == nil && in.Chars != ""
	return in, is
}

// typedLine is the line that a call which types goes on with.
func (h *Hooks) typedLine(tool string, call tools.Call) string {
	in, is := typing(tool, call)
	if !is {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.typed[in.Session]
}

// noteTyped remembers the line that a call which types leaves without an end.
func (h *Hooks) noteTyped(tool string, call tools.Call) {
	in, is := typing(tool, call)
	if !is {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.typed == nil {
		h.typed = map[float64]string{}
	}
	line := h.typed[in.Session] + in.Chars
	line = line[strings.LastIndexAny(line, "\r\n\x03")+1:]
	h.typed[in.Session] = line[max(0, len(line)-longestLine):]
}
