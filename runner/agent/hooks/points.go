package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Start describes the task and the base of a run to hooks.
type Start struct {
	Source string `json:"source"`
	Title  string `json:"title"`
	Text   string `json:"text"`
	URL    string `json:"url,omitempty"`
	Base   string `json:"base"`
	SHA    string `json:"base_sha"`
	Branch string `json:"branch"`
}

// RunStart asks the hooks whether the run may begin. It returns their context for the agent, or a stop if one
// refuses.
func (h *Hooks) RunStart(ctx context.Context, s Start) (added string, err error) {
	defer h.CloseSandbox()
	all, err := h.askEvent(ctx, job.OnSessionStart, question{eventInput: map[string]any{"source": "startup", "task": s}}, "the run did not begin")
	if err != nil {
		return "", err
	}
	more, err := h.askEvent(ctx, job.OnUserPrompt, question{eventInput: map[string]any{"prompt": strings.TrimSpace(s.Title + "\n\n" + s.Text)}}, "the run did not begin")
	return strings.Join(append(all, more...), "\n\n"), err
}

// askEvent asks the hooks of an event. If one refuses, it returns a stop whose message names the
// consequence. added is the hooks' context for the agent.
func (h *Hooks) askEvent(ctx context.Context, on string, q question, consequence string) (added []string, err error) {
	refusing, r, added, err := h.askUntilRefused(ctx, on, q)
	if refusing != nil {
		return nil, refusing.stop(r, consequence)
	}
	return added, err
}

// askUntilRefused asks the hooks of an event. If one refuses, it returns that hook and its reply, and asks no
// further hook. added is the hooks' context for the agent.
func (h *Hooks) askUntilRefused(ctx context.Context, on string, q question) (refusing *Hook, r reply, added []string, err error) {
	for _, hook := range h.forEvent(on) {
		if r, err = h.ask(ctx, hook, q); err != nil {
			return nil, r, nil, err
		}
		if r.refuses() {
			return &hook, r, nil, nil
		}
		if r.context != "" {
			added = append(added, fmt.Sprintf("The hook %s of this run says:\n%s", hook.Name, r.context))
		}
	}
	return nil, r, added, nil
}

// toolDefinition is the part of a tool's definition that hooks see and may change.
type toolDefinition struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Parameters  any    `json:"parameters,omitempty"`
}

// definitionsToAsk returns the definitions that the hook is asked about.
func (h Hook) definitionsToAsk(specs []tools.Spec) []toolDefinition {
	var all []toolDefinition
	for _, s := range specs {
		if s.Builtin != "" || !h.AppliesTo(dialect.Of(s.Name).Matched()...) {
			continue
		}
		d := toolDefinition{Name: s.Name, Description: s.Description}
		if s.Parameters != nil {
			d.Parameters = s.Parameters
		}
		all = append(all, d)
	}
	return all
}

// Definitions returns the tools with the descriptions that hooks gave them. A refusing hook stops the run.
func (h *Hooks) Definitions(ctx context.Context, specs []tools.Spec) ([]tools.Spec, error) {
	specs = slices.Clone(specs)
	for _, hook := range h.forEvent(job.OnToolDefinition) {
		asked := hook.definitionsToAsk(specs)
		if len(asked) == 0 {
			continue
		}
		before := map[string]string{}
		for _, definition := range asked {
			before[definition.Name] = definition.Description
		}
		encodedBefore, err := encodeJSON(before)
		if err != nil {
			return nil, err
		}
		r, err := h.ask(ctx, hook, question{eventInput: map[string]any{"tools": asked}, replaceable: encodedBefore, checkText: func(name, _ string) error {
			if _, may := before[name]; !may {
				return errors.New("is no tool that it was asked about")
			}
			return nil
		}})
		if err != nil {
			return nil, err
		}
		if r.refuses() {
			return nil, hook.stop(r, "the agent was given no tools")
		}
		for i, s := range specs {
			if text, changed := r.namedTexts[s.Name]; changed {
				specs[i].Description = text
			}
		}
	}
	return specs, nil
}

// Env returns the environment variables that hooks set for the agent's commands. maySet returns an error for a
// variable that a hook may not set.
func (h *Hooks) Env(ctx context.Context, maySet func(name, value string) error) (map[string]string, error) {
	env := map[string]string{}
	for _, hook := range h.forEvent(job.OnShellEnv) {
		r, err := h.ask(ctx, hook, question{eventInput: map[string]any{"env": maps.Clone(env)}, checkText: maySet})
		if err != nil {
			return nil, err
		}
		if r.refuses() {
			return nil, hook.stop(r, "the agent was given no commands")
		}
		maps.Copy(env, r.namedTexts)
	}
	return env, nil
}

// BeforeCompaction asks the hooks whether the conversation may be compacted. If one refuses, it returns a stop.
func (h *Hooks) BeforeCompaction(ctx context.Context, reason string) error {
	_, err := h.askEvent(ctx, job.OnPreCompact, question{eventInput: map[string]any{"trigger": "auto", "custom_instructions": "", "reason": reason}}, "the conversation, which is too long, can't go on")
	return err
}

// maxStopRounds is how often in a run stop hooks may demand more work.
const maxStopRounds = 3

// PendingStop is for resuming a run whose agent had ended. It reports whether the stop hooks were asked about
// that end, and returns their demand for more work if the model did not get it yet.
func (h *Hooks) PendingStop() (asked bool, more string) {
	if h == nil || len(h.forEvent(job.OnStop)) == 0 {
		return true, ""
	}
	return h.Answers.stopHooksRan, h.Answers.PendingRequest
}

// Stop asks the hooks whether the agent may end with these last words. more is a hook's demand for more work,
// or "" if the agent may end. If mayGoOn is false the agent has no turn left, and demands are only warned about.
func (h *Hooks) Stop(ctx context.Context, lastMessage string, mayGoOn bool) (more string, err error) {
	for _, hook := range h.forEvent(job.OnStop) {
		h.mu.Lock()
		rounds := h.Answers.StopRounds
		h.mu.Unlock()
		r, err := h.ask(ctx, hook, question{eventInput: map[string]any{"stop_hook_active": rounds > 0, "last_assistant_message": lastMessage}})
		switch {
		case err != nil:
			return "", err
		case r.decision != decisionMore && r.refuses():
			return "", hook.stop(r, "the work is not taken")
		case r.decision != decisionMore:
			continue
		case rounds >= maxStopRounds:
			h.Record.Warn("hook_rounds", "The hook %s asked for more work after %d rounds and did not get it: %s", hook.Name, maxStopRounds, sentence(r.reason))
			continue
		case !mayGoOn:
			h.Record.Warn("hook_rounds", "The hook %s asked for more work, for which the agent has no turn left: %s", hook.Name, sentence(r.reason))
			continue
		}
		h.mu.Lock()
		h.Answers.StopRounds++
		h.mu.Unlock()
		return fmt.Sprintf("The hook %s does not let you end yet: %s", hook.Name, sentence(r.reason)), nil
	}
	return "", nil
}

// Draft describes a change to hooks, before it is published.
type Draft struct {
	Base    string   `json:"base"`
	BaseSHA string   `json:"base_sha"`
	Branch  string   `json:"branch"`
	To      string   `json:"to"` // github, local
	As      string   `json:"as"` // as publish.as has it: pull_request, review, …
	Title   string   `json:"title"`
	Body    string   `json:"body"`
	Labels  []string `json:"labels"`
	Draft   bool     `json:"draft"`
	Files   []string `json:"files"`
	Diff    string   `json:"diff"`
}

// BeforePublish asks the hooks whether a change may be published. It returns a stop if one refuses, if a
// mandatory hook did not answer, or if a hook ended the run.
func (h *Hooks) BeforePublish(ctx context.Context, d Draft) error {
	defer h.CloseSandbox()
	if _, err := h.askEvent(ctx, job.OnPrePublish, question{eventInput: map[string]any{"draft": d}}, "nothing was published"); err != nil {
		return err
	}
	return cmp.Or(h.requireAnswered(job.OnPrePublish), h.StopReason())
}

// End describes the end of a run to hooks.
type End struct {
	Outcome  string `json:"outcome"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	ExitCode int    `json:"exit_code"`
	Branch   string `json:"branch,omitempty"`
	Commit   string `json:"commit,omitempty"`
	URL      string `json:"url,omitempty"` // of the pull request
}

// runEnd asks every hook on the end of a run. It returns the stop of the first that refuses, or of a mandatory
// hook that did not answer.
func (h *Hooks) runEnd(ctx context.Context, e End) error {
	defer h.CloseSandbox()
	var first error
	for _, hook := range h.forEvent(job.OnSessionEnd) {
		q := question{eventInput: map[string]any{"reason": "other", "end": e}}
		r, err := h.ask(ctx, hook, q)
		if err != nil && ctx.Err() != nil {
			r = failedReply("the run was stopped before it answered")
			err = h.recordReply(hook, q, r)
		}
		if err == nil && r.refuses() {
			err = hook.stop(r, "the run does not count as done")
		}
		first = cmp.Or(first, err)
	}
	return cmp.Or(first, h.requireAnswered(job.OnSessionEnd))
}

// ReviewEnd reports the end of a run to hooks, and returns the end after their answers. If a hook refuses or fails, a
// success becomes a failure. A change already published stays published.
func (h *Hooks) ReviewEnd(ctx context.Context, stop *outcome.Stop, end End) *outcome.Stop {
	end.Outcome, end.Reason, end.Message, end.ExitCode = string(stop.Outcome), stop.Reason, stop.Message, stop.ExitCode()
	err := h.runEnd(ctx, end)
	if err == nil {
		return stop
	}
	hookStop := *outcome.ForError(ctx, err)
	if stop.ExitCode() != 0 {
		h.Record.Warn("hook_run_end", "%s", hookStop.Message)
		return stop
	}
	hookStop.Message = h.Record.Redact(hookStop.Message + " " + stop.Message)
	return &hookStop
}

// RequireAnswered returns an error if a mandatory hook never answered. Call it when the agent's work is done.
func (h *Hooks) RequireAnswered() error { return h.requireAnswered("") }

// requireAnswered returns an error if a mandatory hook on event never gave a valid answer. The event "" means
// all but publishing and the end of the run.
func (h *Hooks) requireAnswered(event string) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, use := range h.usesSoFar() {
		isDue := use.Event == event || event == "" && use.Event != job.OnPrePublish && use.Event != job.OnSessionEnd
		neverAnswered := use.Calls <= use.Errors
		if use.MustFire && isDue && neverAnswered {
			return outcome.Stopf(outcome.PolicyViolation, "hook_never_ran",
				"The hook %s on %s must fire (must_fire) and never gave a valid answer: it was asked %s. Check its tools and argv, its answers, and whether its event happens in this job.", use.Name, use.Event, transcript.CountNoun(use.Calls, "time"))
		}
	}
	return nil
}

// HasPatchHooks reports whether a hook may be asked about patches.
func (h *Hooks) HasPatchHooks() bool {
	if len(h.forEvent(job.OnPrePatch)) > 0 {
		return true
	}
	for _, hook := range slices.Concat(h.forEvent(job.OnPreToolUse), h.forEvent(job.OnPostToolUse)) {
		if slices.ContainsFunc([]string{"Edit", "Write", dialect.ApplyPatch}, func(tool string) bool { return hook.matchesPatch(claudeCall{tool: tool}) }) {
			return true
		}
	}
	return false
}

// HasOutputHooks reports whether a hook may be asked about results of calls.
func (h *Hooks) HasOutputHooks() bool { return len(h.forEvent(job.OnPostToolUse)) > 0 }
