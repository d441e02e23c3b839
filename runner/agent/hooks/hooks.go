package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Hooks holds a run's hooks. Set the exported fields before the first question only. Nil has no
// hooks. Methods are safe for concurrent use.
type Hooks struct {
	All       []Hook // from Combine, in the order of asking
	Record    *record.Record
	Facts     Facts
	Sandboxes SandboxProvider
	// Answers replaces questions by recorded answers; the zero value has none.
	Answers Answers

	mu      sync.Mutex
	agent   *sandbox.Sandbox // beside which they run
	current *hookSandbox     // nil until one is needed
	uses    []transcript.HookUse
	// patched holds patches applied by calls without a result yet.
	patched map[transcript.CallRef][]claudeCall
	halted  *outcome.Stop // why the run can't go on
}

// Facts describe the run to each hook.
type Facts struct {
	RunID      string
	Model      string
	WorkDir    string // the agent's
	Path       string // of WorkDir below the repository's root, slash-separated
	Transcript string // of the run, for who runs outside of the sandbox
}

// question is a question to a hook.
type question struct {
	call transcript.CallRef // the call; the zero value for none
	// input is the question's own part of the hook's input.
	input map[string]any
	// replaceable is the text replaceable by an answer.
	replaceable string
	// rewrite returns the answer's replacement for before.
	rewrite func(raw json.RawMessage) (string, error)
	// maySet returns an error for a text that a hook may not set under a name.
	maySet func(name, text string) error
}

// reply is a hook's answer, or the reason for none.
type reply struct {
	answer
	replacement string // for the text in question
	failure     string // why there is no valid answer; "" if there is one
	continued   bool   // the run continued without an answer
	duration    time.Duration
}

// refuses reports whether the hook forbids the action.
func (r reply) refuses() bool {
	return r.failure != "" && !r.continued || r.decision == decisionDeny || r.decision == decisionAsk
}

// ask asks one hook and records the answer. Only ctx and the record cause errors.
func (h *Hooks) ask(ctx context.Context, one Hook, q question) (reply, error) {
	if past, ok := h.recordedAnswer(one, q); ok {
		r := one.repeat(past)
		if h.Answers.Replace {
			return r, h.recordReply(one, q, r)
		}
		return r, nil
	}
	began := time.Now()
	defer h.Record.BeginStep("", "hook "+one.Name+" on "+one.On)()
	r, err := h.askClean(ctx, one, q)
	if ctx.Err() != nil {
		return reply{}, ctx.Err()
	}
	if err != nil {
		r = reply{failure: err.Error()}
	}
	r.duration = time.Since(began)
	r.continued = r.failure != "" && one.OnError == "continue"
	return r.redacted(h.Record.Redact), h.recordReply(one, q, r.redacted(h.Record.Redact))
}

func (h *Hooks) recordedAnswer(one Hook, q question) (transcript.Hook, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Answers.takeAnswer(one.Name, one.On, q.call)
}

// askClean runs a hook and returns its answer. An error says why there is no valid one.
func (h *Hooks) askClean(ctx context.Context, one Hook, q question) (r reply, err error) {
	document, err := h.document(one, q)
	if err != nil {
		return r, err
	}
	s, err := h.run(ctx, one, document)
	if err != nil {
		return r, err
	}
	if r.answer, err = one.parseAnswer(s); err != nil {
		return r, err
	}
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		if err := q.maySet(name, r.texts[name]); err != nil {
			return r, fmt.Errorf("it sets %q, which %w", shorten(name), err)
		}
	}
	switch {
	case r.refuses():
	case r.input != nil && q.rewrite == nil:
		return r, errors.New("it gives another input, which a patch has no place for")
	case r.input != nil:
		r.replacement, err = q.rewrite(r.input)
	case r.output != nil:
		r.replacement = *r.output
	case r.texts != nil:
		r.replacement, err = encode(r.texts)
	}
	return r, err
}

// redacted returns the reply with secrets redacted.
func (r reply) redacted(redact func(string) string) reply {
	r.reason, r.context, r.message, r.failure = redact(r.reason), redact(r.context), redact(r.message), redact(r.failure)
	if r.output != nil {
		text := redact(*r.output)
		r.output, r.replacement = &text, text
	}
	return r
}

// decisionName returns the decision as the record names it.
func (r reply) decisionName() string {
	switch {
	case r.failure != "":
		return transcript.HookFailed
	case r.decision == decisionDeny || r.decision == decisionAsk:
		return transcript.HookDeny
	case r.decision == decisionMore:
		return transcript.HookMore
	case r.output != nil:
		return transcript.HookReplace
	case r.input != nil || r.texts != nil:
		return transcript.HookRewrite
	}
	return transcript.HookPass
}

// maxRecordedText limits replaced text in a recorded answer, in bytes.
const maxRecordedText = 256 << 10

// recordReply records and counts an answer, and warns people if needed.
func (h *Hooks) recordReply(one Hook, q question, r reply) error {
	event := transcript.Hook{
		Name: one.Name, On: one.On, SHA256: one.SHA256, Number: q.call.Number, Caller: q.call.Caller, Agent: q.call.Agent, Trusted: one.trusted, Decision: r.decisionName(),
		Reason: r.words(), Context: r.context, Message: r.message, Stop: r.stop, Seconds: r.duration.Seconds(), WentOn: r.continued,
	}
	replaces := event.Decision == transcript.HookRewrite || event.Decision == transcript.HookReplace
	if replaces {
		event.After = r.replacement
	}
	if replaces || one.On == job.OnPostToolUse && r.refuses() && !r.feedback {
		event.Before = q.replaceable[:min(len(q.replaceable), maxRecordedText)]
	}
	h.count(event)
	if r.continued {
		h.Record.Warn("hook_failed", "The hook %s on %s failed, and the run continued (on_error: continue): %s.", one.Name, one.On, r.failure)
	}
	if r.message != "" {
		h.Record.Warn("hook_message", "The hook %s says: %s", one.Name, shorten(r.message))
	}
	if r.stop {
		h.halt(outcome.Stopf(outcome.PolicyViolation, "hook_denied", "The hook %s on %s ended the run: %s", one.Name, one.On, sentence(r.reason)))
	}
	return h.Record.AppendBy(q.call.Agent, transcript.TypeHook, event)
}

// words returns the reason of an answer, or why there is none.
func (r reply) words() string {
	switch {
	case r.failure != "":
		return r.failure
	case r.decision == decisionAsk:
		return strings.TrimSpace("It asks for a person's approval, and nobody is there to give it. " + r.reason)
	}
	return r.reason
}

func (h *Hooks) count(event transcript.Hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin()
	for i := range h.uses {
		if h.uses[i].Name == event.Name {
			h.uses[i].Count(event)
		}
	}
}

func (h *Hooks) begin() {
	if h.uses == nil {
		h.uses = transcript.NewHookUses(ForTranscript(h.All).Hooks, h.Answers.Uses)
	}
}

// usesSoFar returns the use of each hook so far.
func (h *Hooks) usesSoFar() []transcript.HookUse {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin()
	return append([]transcript.HookUse(nil), h.uses...)
}

func (h *Hooks) halt(stop *outcome.Stop) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.halted == nil {
		h.halted = stop
	}
}

// StopReason returns the stop requested by a hook, or nil.
func (h *Hooks) StopReason() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.halted == nil {
		return nil
	}
	return h.halted
}

// maxQuotedWords bounds a hook's words in messages for people or the model, in bytes.
const maxQuotedWords = 2000

func shorten(words string) string {
	return clip.Bytes(strings.TrimSpace(strings.ToValidUTF8(words, "�")), maxQuotedWords)
}

// sentence returns a hook's words, to end a sentence.
func sentence(words string) string {
	words = shorten(words)
	switch {
	case words == "":
		return "it gave no reason."
	case strings.ContainsAny(words[len(words)-1:], ".!?"):
		return words
	}
	return words + "."
}

// stop returns the stop of a run refused by a hook.
func (h Hook) stop(r reply, what string) *outcome.Stop {
	if r.failure != "" {
		return outcome.Stopf(outcome.PolicyViolation, "hook_failed",
			"The hook %s on %s gave no valid answer, and so %s: %s. Fix the hook, or set on_error: continue.", h.Name, h.On, what, shorten(r.failure))
	}
	return outcome.Stopf(outcome.PolicyViolation, "hook_denied", "The hook %s on %s refused, and so %s: %s", h.Name, h.On, what, sentence(r.words()))
}

// failureText tells the model about a hook that failed to run.
func (h Hook) failureText(err error) string {
	return "The hook " + h.Name + ", which has to agree, could not be asked: " + err.Error()
}

// addedContext returns a hook's added context for the model.
func (h Hook) addedContext(r reply) string { return "The hook " + h.Name + " adds: " + r.context }

// refusal tells the model why a call is not done.
func (h Hook) refusal(r reply) string {
	if r.failure != "" {
		return fmt.Sprintf("Not run: the hook %s, which has to agree, did not answer cleanly: %s. That is a fault of the hook, not of the call; go on without it, and say so in your last message if the task needs it.", h.Name, shorten(r.failure))
	}
	return fmt.Sprintf("Not run: the hook %s refuses this: %s", h.Name, sentence(r.words()))
}
