package hooks

import (
	"cmp"
	"context"
	"encoding/json"
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

// RunStart asks the hooks whether the run may begin. added is their context for the agent. If a hook refuses, err ends
// the run.
func (h *Hooks) RunStart(ctx context.Context, s Start) (added string, err error) {
	defer h.CloseSandbox()
	atStart, err := h.askEvent(ctx, job.OnSessionStart, question{eventInput: map[string]any{"source": "startup", "task": s}}, "the run did not begin")
	if err != nil {
		return "", err
	}
	atPrompt, err := h.askEvent(ctx, job.OnUserPrompt, question{eventInput: map[string]any{"prompt": strings.TrimSpace(s.Title + "\n\n" + s.Text)}}, "the run did not begin")
	return strings.Join(append(atStart, atPrompt...), "\n\n"), err
}

// askEvent asks the hooks of an event. added is their context for the agent. If a hook refuses, err ends the run. Its
// message contains consequence, a phrase such as "nothing was published".
func (h *Hooks) askEvent(ctx context.Context, event string, q question, consequence string) (added []string, err error) {
	return h.askUntilRefused(ctx, event, q, func(hook Hook, r reply) error { return hook.stop(r, consequence) })
}

// askUntilRefused asks the hooks of an event until one refuses, and returns the error of refuse for it. added is the
// hooks' context for the agent if none refuses.
func (h *Hooks) askUntilRefused(ctx context.Context, event string, q question, refuse func(Hook, reply) error) (added []string, err error) {
	for _, hook := range h.forEvent(event) {
		r, err := h.ask(ctx, hook, q)
		if err != nil {
			return nil, err
		}
		if r.refuses() {
			return nil, refuse(hook, r)
		}
		if r.Context != "" {
			added = append(added, fmt.Sprintf("The hook %s of this run says:\n%s", hook.Name, r.Context))
		}
	}
	return added, nil
}

// toolDefinition is the part of a tool's definition that hooks see.
type toolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// Descriptions asks the hooks about the tools' definitions, and returns the descriptions that they set, by the tools'
// names. If a hook refuses, the error ends the run.
func (h *Hooks) Descriptions(ctx context.Context, specs []tools.Spec) (map[string]string, error) {
	descriptions := map[string]string{}
	for _, hook := range h.forEvent(job.OnToolDefinition) {
		var asked []toolDefinition
		before := map[string]string{}
		for _, s := range specs {
			if s.Builtin != "" || !job.FitsTools(hook.Tools, dialect.Of(s.Name).Matched()...) {
				continue
			}
			if text, isSet := descriptions[s.Name]; isSet {
				s.Description = text
			}
			asked = append(asked, toolDefinition{s.Name, s.Description, s.Parameters})
			before[s.Name] = s.Description
		}
		if len(asked) == 0 {
			continue
		}
		encodedBefore, err := encodeJSON(before)
		if err != nil {
			return nil, err
		}
		r, err := h.ask(ctx, hook, question{eventInput: map[string]any{"tools": asked}, replaceable: encodedBefore, checkText: func(name, _ string) error {
			if _, wasAsked := before[name]; !wasAsked {
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
		maps.Copy(descriptions, r.namedTexts)
	}
	return descriptions, nil
}

// Env asks the hooks for environment variables of the agent's commands, and returns these. maySet returns an error for
// a variable that hooks may not set.
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

// BeforeCompaction asks the hooks whether the conversation may be compacted. If a hook refuses, it returns an error
// that ends the run.
func (h *Hooks) BeforeCompaction(ctx context.Context, reason string) error {
	_, err := h.askEvent(ctx, job.OnPreCompact, question{eventInput: map[string]any{"trigger": "auto", "custom_instructions": "", "reason": reason}}, "the conversation, which is too long, can't go on")
	return err
}

// maxStopRounds is how often in a run stop hooks may demand more work.
const maxStopRounds = 3

// PendingStop returns what the stop hooks decided about the end of a resumed run's agent. asked is false if they were
// not asked yet. more is their demand for more work that the model has not got yet, or "".
func (h *Hooks) PendingStop() (asked bool, more string) {
	if len(h.forEvent(job.OnStop)) == 0 {
		return true, ""
	}
	return h.Answers.stopHooksRan, h.Answers.PendingRequest
}

// Stop asks the hooks whether the agent may end with its last message. more is a hook's demand for more work, or ""
// if the agent may end. Without a turn left, a demand only gives a warning.
func (h *Hooks) Stop(ctx context.Context, lastMessage string, hasTurnLeft bool) (more string, err error) {
	for _, hook := range h.forEvent(job.OnStop) {
		rounds := h.Answers.StopRounds
		r, err := h.ask(ctx, hook, question{eventInput: map[string]any{"stop_hook_active": rounds > 0, "last_assistant_message": lastMessage}})
		switch {
		case err != nil:
			return "", err
		case r.refuses():
			return "", hook.stop(r, "the work is not taken")
		case r.Decision != transcript.HookMore:
			continue
		case rounds >= maxStopRounds:
			h.Record.Warn("hook_rounds", "The hook %s asked for more work after %d rounds and did not get it: %s", hook.Name, maxStopRounds, sentence(r.Reason))
			continue
		case !hasTurnLeft:
			h.Record.Warn("hook_rounds", "The hook %s asked for more work, for which the agent has no turn left: %s", hook.Name, sentence(r.Reason))
			continue
		}
		h.Answers.StopRounds++
		return fmt.Sprintf("The hook %s does not let you end yet: %s", hook.Name, sentence(r.Reason)), nil
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

// BeforePublish asks the hooks whether a change may be published. It returns an error that ends the run if a hook
// refuses, if a mandatory hook did not answer, or if a hook demanded the end of the run.
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

// ReviewEnd reports the end of a run to every hook, and returns the end after their answers: if a hook refuses or
// fails, or a mandatory hook did not answer, a successful run becomes a failed one. A change already published stays
// published.
func (h *Hooks) ReviewEnd(ctx context.Context, stop *outcome.Stop, end End) *outcome.Stop {
	defer h.CloseSandbox()
	end.Outcome, end.Reason, end.Message, end.ExitCode = string(stop.Outcome), stop.Reason, stop.Message, stop.ExitCode()
	var firstErr error
	for _, hook := range h.forEvent(job.OnSessionEnd) {
		err := h.askAtEnd(ctx, hook, end) // also after an error: every hook is told
		firstErr = cmp.Or(firstErr, err)
	}
	firstErr = cmp.Or(firstErr, h.requireAnswered(job.OnSessionEnd))
	if firstErr == nil {
		return stop
	}
	hookStop := *outcome.ForError(ctx, firstErr)
	if stop.ExitCode() != 0 {
		h.Record.Warn("hook_run_end", "%s", hookStop.Message)
		return stop
	}
	hookStop.Message = h.Record.Redact(hookStop.Message + " " + stop.Message)
	return &hookStop
}

// askAtEnd reports the end of a run to a hook. It returns an error if the hook refuses or fails.
func (h *Hooks) askAtEnd(ctx context.Context, hook Hook, end End) error {
	q := question{eventInput: map[string]any{"reason": "other", "end": end}}
	r, err := h.ask(ctx, hook, q)
	if err != nil && ctx.Err() != nil {
		r = failedReply("the run was stopped before it answered")
		err = h.recordReply(hook, q, r)
	}
	if err != nil {
		return err
	}
	if r.refuses() {
		return hook.stop(r, "the run does not count as done")
	}
	return nil
}

// RequireAnswered returns an error if a mandatory hook never answered. Call it when the agent's work is done.
func (h *Hooks) RequireAnswered() error { return h.requireAnswered("") }

// requireAnswered returns an error if a mandatory hook on event never gave a valid answer. The event "" means all
// events except publishing and the end of the run.
func (h *Hooks) requireAnswered(event string) error {
	if h == nil {
		return nil
	}
	for _, hook := range h.All {
		isLate := hook.Event == job.OnPrePublish || hook.Event == job.OnSessionEnd
		isDue := hook.Event == event || event == "" && !isLate
		if !hook.MustFire || !isDue {
			continue
		}
		if use := h.Record.HookUse(hook.Name); use.Calls <= use.Errors { // it never gave a valid answer
			return outcome.Stopf(outcome.PolicyViolation, "hook_never_ran",
				"The hook %s on %s must fire (must_fire) and never gave a valid answer: it was asked %s. Check its tools and argv, its answers, and whether its event happens in this job.", hook.Name, hook.Event, transcript.CountNoun(use.Calls, "time"))
		}
	}
	return nil
}

// HasPatchHooks reports whether a hook may be asked about patches.
func (h *Hooks) HasPatchHooks() bool {
	if len(h.forEvent(job.OnPrePatch)) > 0 {
		return true
	}
	return slices.ContainsFunc(slices.Concat(h.forEvent(job.OnPreToolUse), h.forEvent(job.OnPostToolUse)), func(hook Hook) bool {
		return len(hook.Argv) == 0 && job.FitsTools(hook.Tools, dialect.Of(dialect.ApplyPatch).Matched()...)
	})
}

// HasOutputHooks reports whether a hook may be asked about results of calls.
func (h *Hooks) HasOutputHooks() bool { return len(h.forEvent(job.OnPostToolUse)) > 0 }
