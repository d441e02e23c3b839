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
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Hooks are the hooks of a run. Set the exported fields before the first question only. A nil *Hooks has no
// hooks. Its methods are safe for concurrent use.
type Hooks struct {
	All       []Hook // from Combine, in the order of asking
	Record    *record.Record
	Facts     Facts
	Sandboxes SandboxProvider
	// Answers replaces questions by recorded answers; the zero value has none.
	Answers Answers

	running sync.WaitGroup // hooks that run in the sandboxes

	mu        sync.Mutex
	agent     *sandbox.Sandbox          // the agent's sandbox; hooks run beside it
	sandboxes map[bool]*sandbox.Sandbox // those of hooks that are open, by whether they are for trusted hooks
	// patchesByCall holds the patches of calls that have no result yet.
	patchesByCall map[transcript.CallRef][]claudeCall
	requestedStop error // the first stop that a hook demanded, or nil
}

// Facts describe the run to each hook.
type Facts struct {
	Model   string
	WorkDir string // the agent's working directory
	Path    string // WorkDir relative to the repository's root, slash-separated
}

// question is what a hook is asked at an event.
type question struct {
	call transcript.CallRef // the call it is about; zero for none
	// eventInput holds the parts of the hook's input that depend on the event.
	eventInput map[string]any
	// replaceable is the text that the answer may replace, for the record.
	replaceable string
	// rewrite returns the new input of a call, given the one in the answer. Nil means that the answer must not
	// change the input.
	rewrite func(raw json.RawMessage) (string, error)
	// checkText returns an error if the hook may not set this text under this name.
	checkText func(name, text string) error
}

// reply is a hook's answer in the form in which it is recorded. A hook that failed has the failure as its reason.
type reply struct {
	transcript.HookAnswer
	input      json.RawMessage   // replacement for a call's input, as the hook gave it
	output     *string           // replacement for a call's output
	namedTexts map[string]string // environment variables, or descriptions of tools, by name
}

// refuses reports whether the hook forbids the action.
func (r reply) refuses() bool { return r.failed() && !r.Continued || r.Decision == transcript.HookDeny }

// failed reports whether the hook gave no valid answer.
func (r reply) failed() bool { return r.Decision == transcript.HookFailed }

// withholds reports whether a reply about a result keeps the output from the model. Any other refusal is a comment on
// the output, because the call has already run.
func (r reply) withholds() bool { return r.refuses() && (r.failed() || r.Stop) }

// ask asks one hook, or uses its recorded answer, and records the reply. A hook that fails gives a reply, too. An error
// means that ctx has ended, or that the record cannot be written.
func (h *Hooks) ask(ctx context.Context, hook Hook, q question) (reply, error) {
	h.mu.Lock()
	past, isRecorded := h.Answers.takeAnswer(hook.Name, hook.Event, q.call)
	h.mu.Unlock()
	if isRecorded {
		r := hook.recordedReply(past)
		if h.Answers.ReplaceQuestions { // a replay records its own run
			return r, h.recordReply(hook, q, r)
		}
		return r, nil
	}
	startedAt := time.Now()
	defer h.Record.BeginStep("", "hook "+hook.Name+" on "+hook.Event)()
	r, err := h.runAndCheck(ctx, hook, q)
	if ctx.Err() != nil {
		return reply{}, ctx.Err()
	}
	if err != nil {
		r = failedReply(h.Record.Redact(err.Error()))
		r.Continued = hook.OnError == job.OnErrorContinue
	}
	r.Seconds = time.Since(startedAt).Seconds()
	return r, h.recordReply(hook, q, r)
}

// failedReply returns the reply of a hook that gave no valid answer for this reason.
func failedReply(reason string) reply {
	return reply{HookAnswer: transcript.HookAnswer{Decision: transcript.HookFailed, Reason: reason}}
}

// runAndCheck runs a hook and returns its checked answer. It returns an error if there is no valid answer.
func (h *Hooks) runAndCheck(ctx context.Context, hook Hook, q question) (r reply, err error) {
	document, err := h.inputDocument(hook, q)
	if err != nil {
		return r, err
	}
	out, err := h.run(ctx, hook, document)
	if err != nil {
		return r, err
	}
	if r, err = hook.parseAnswer(out); err != nil {
		return r, err
	}
	for _, name := range slices.Sorted(maps.Keys(r.namedTexts)) {
		if err := q.checkText(name, r.namedTexts[name]); err != nil {
			return r, fmt.Errorf("it sets %q, which %w", shorten(name), err)
		}
	}
	r.redact(h.Record.Redact)
	switch {
	case r.Decision == decisionAsk:
		r.Decision, r.Reason = transcript.HookDeny, strings.TrimSpace("It asks for a person's approval, and nobody is there to give it. "+r.Reason)
	case r.Decision != "": // a refusal replaces nothing
	case r.input != nil && q.rewrite == nil:
		return r, errors.New("it gives another input, which a patch has no place for")
	case r.input != nil:
		r.Decision = transcript.HookRewrite
		r.After, err = q.rewrite(r.input)
	case r.output != nil:
		r.Decision, r.After = transcript.HookReplace, *r.output
	case r.namedTexts != nil:
		r.Decision = transcript.HookRewrite
		r.After, err = encodeJSON(r.namedTexts)
	default:
		r.Decision = transcript.HookPass
	}
	return r, err
}

// redact replaces secrets in the reply's texts. It does not change a new input, which the call needs unchanged.
func (r *reply) redact(redact func(string) string) {
	r.Reason, r.Context, r.Message = redact(r.Reason), redact(r.Context), redact(r.Message)
	if r.output != nil {
		*r.output = redact(*r.output)
	}
}

// maxRecordedText is the maximum size of a replaced text in the record, in bytes.
const maxRecordedText = 256 << 10

// recordReply records a hook's reply to a question. It warns if the hook failed and the run continues, with the call or
// without it, or if the reply has a message for people. It keeps the first reply that demands the end of the run, for
// StopReason.
func (h *Hooks) recordReply(hook Hook, q question, r reply) error {
	event := r.HookAnswer
	event.Name, event.Event, event.SHA256, event.Trusted = hook.Name, hook.Event, hook.SHA256, hook.Trusted
	event.Number, event.Caller, event.Agent = q.call.Number, q.call.Caller, q.call.Agent
	replaces := r.Decision == transcript.HookRewrite || r.Decision == transcript.HookReplace
	withholdsOutput := hook.Event == job.OnPostToolUse && r.withholds()
	if replaces || withholdsOutput {
		event.Before = q.replaceable[:min(len(q.replaceable), maxRecordedText)]
	}
	switch {
	case r.Continued:
		h.Record.Warn("hook_failed", "The hook %s on %s failed, and the run continued (on_error: continue): %s.", hook.Name, hook.Event, r.Reason)
	case r.failed() && q.call.Number > 0: // else the run ends because of it
		consequence := "the call was refused"
		if hook.Event == job.OnPostToolUse {
			consequence = "the output was withheld"
		}
		h.Record.Warn("hook_failed", "%s", hook.stop(r, consequence).Message)
	}
	if r.Message != "" {
		h.Record.Warn("hook_message", "The hook %s says: %s", hook.Name, shorten(r.Message))
	}
	if r.Stop {
		h.mu.Lock()
		h.requestedStop = cmp.Or(h.requestedStop, error(outcome.Stopf(outcome.PolicyViolation, "hook_denied", "The hook %s on %s ended the run: %s", hook.Name, hook.Event, sentence(r.Reason))))
		h.mu.Unlock()
	}
	return h.Record.AppendBy(q.call.Agent, event)
}

// StopReason returns the error that ends the run because a hook demanded that, or nil.
func (h *Hooks) StopReason() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requestedStop
}

// maxQuotedWords is the maximum size of a hook's text in a message to people or the model, in bytes.
const maxQuotedWords = 2000

// shorten returns a hook's text as valid UTF-8, cut to maxQuotedWords.
func shorten(text string) string {
	return clip.Bytes(strings.TrimSpace(strings.ToValidUTF8(text, "�")), maxQuotedWords)
}

// sentence returns a hook's text as a sentence with a full stop, cut to maxQuotedWords.
func sentence(text string) string {
	text = shorten(text)
	switch {
	case text == "":
		return "it gave no reason."
	case strings.ContainsAny(text[len(text)-1:], ".!?"):
		return text
	}
	return text + "."
}

// stop returns the error that ends the run because the hook refused or failed. consequence is a phrase such as
// "nothing was published".
func (h Hook) stop(r reply, consequence string) *outcome.Stop {
	if r.failed() {
		return outcome.Stopf(outcome.PolicyViolation, "hook_failed",
			"The hook %s on %s gave no valid answer, and so %s: %s. Fix the hook, or set on_error: continue.", h.Name, h.Event, consequence, shorten(r.Reason))
	}
	return outcome.Stopf(outcome.PolicyViolation, "hook_denied", "The hook %s on %s refused, and so %s: %s", h.Name, h.Event, consequence, sentence(r.Reason))
}

// failureText returns a text that tells the model that the hook could not be asked.
func (h Hook) failureText(err error) string {
	return "The hook " + h.Name + ", which has to agree, could not be asked: " + err.Error()
}

// addedContext returns the context of a reply as a sentence for the model.
func (h Hook) addedContext(r reply) string { return "The hook " + h.Name + " adds: " + r.Context }

// refusalText returns a text that tells the model why the hook does not let a call run.
func (h Hook) refusalText(r reply) string {
	if r.failed() {
		return fmt.Sprintf("Not run: the hook %s, which has to agree, did not answer cleanly: %s. That is a fault of the hook, not of the call; go on without it, and say so in your last message if the task needs it.", h.Name, shorten(r.Reason))
	}
	return fmt.Sprintf("Not run: the hook %s refuses this: %s", h.Name, sentence(r.Reason))
}
