package hooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// decisionAsk is a hook's decision to ask a person, which counts as a refusal.
const decisionAsk = "ask"

// exitRefuses is the exit status of a hook that refuses. Its reason is on standard error.
const exitRefuses = 2

// parseAnswer returns the answer in the exit status and output of a hook.
func (h Hook) parseAnswer(out hookOutput) (reply, error) {
	switch {
	case out.exitStatus == exitRefuses:
		var r reply
		r.Reason = strings.TrimSpace(string(out.stderr))
		h.applyRefusal(&r)
		return r, nil
	case out.exitStatus != 0:
		return reply{}, fmt.Errorf("it ended with exit status %d%s", out.exitStatus, lastWords(out.stderr))
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(out.stdout), []byte("\ufeff"))) // PowerShell writes a byte order mark
	switch {
	case len(text) == 0:
		return reply{}, nil
	case text[0] != '{':
		return h.plainText(string(text))
	}
	return h.readJSON(text)
}

// applyRefusal turns a reply into a refusal. For the event Stop, that means a demand for more work.
func (h Hook) applyRefusal(r *reply) {
	r.Decision = transcript.HookDeny
	if h.Event == job.OnStop {
		r.Decision, r.Reason = transcript.HookMore, cmp.Or(r.Reason, "It gives no reason. Look whether the task is done.")
	}
}

// plainText returns the answer of a hook that printed text instead of JSON. At the start of a run, the text is context
// for the model. At other events it is ignored, as in Claude Code. Text that may contain a JSON decision, such as an
// object after a log line, is an error.
func (h Hook) plainText(text string) (reply, error) {
	beginsLikeJSON := func(line string) bool { return strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") }
	mayBeJSON := strings.Contains(text, "{") || beginsLikeJSON(text)
	isContext := h.Event == job.OnSessionStart || h.Event == job.OnUserPrompt
	if isContext { // context may quote code with braces, so only look at the beginnings of lines
		mayBeJSON = slices.ContainsFunc(strings.Split(text, "\n"), beginsLikeJSON)
	}
	switch {
	case mayBeJSON:
		return reply{}, errors.New("it prints text with what may be JSON in it; print one JSON object and nothing else, or write to standard error")
	case isContext:
		return reply{HookAnswer: transcript.HookAnswer{Context: text}}, nil
	}
	return reply{}, nil
}

// lastWords returns ": " and the end of a failed hook's output, or "" if the output is empty.
func lastWords(output []byte) string {
	const maxBytes = 300
	words := strings.TrimSpace(string(output))
	if words == "" {
		return ""
	}
	if len(words) > maxBytes {
		words = clip.Mark + clip.End(words, maxBytes)
	}
	return ": " + strings.ToValidUTF8(words, "�")
}

// specificOutput is hookSpecificOutput: the part of an answer that depends on the event.
type specificOutput struct {
	Event        string            `json:"hookEventName"`
	Permission   string            `json:"permissionDecision"`
	Reason       string            `json:"permissionDecisionReason"`
	Input        json.RawMessage   `json:"updatedInput"`
	Context      string            `json:"additionalContext"`
	Output       json.RawMessage   `json:"updatedToolOutput"`
	MCPOutput    json.RawMessage   `json:"updatedMCPToolOutput"`
	Env          map[string]string `json:"env"`
	Descriptions map[string]string `json:"descriptions"`
}

// answerKey describes a key of an answer.
type answerKey struct {
	isSpecific bool     // it is a key of hookSpecificOutput
	events     []string // the events that allow it; nil means all
}

// answerKeys describes all keys that an answer may have.
var answerKeys = map[string]answerKey{
	"continue": {}, "stopReason": {}, "suppressOutput": {}, "systemMessage": {}, "decision": {}, "reason": {}, "hookSpecificOutput": {},
	"hookEventName":            {isSpecific: true},
	"permissionDecision":       {true, []string{job.OnPreToolUse}},
	"permissionDecisionReason": {true, []string{job.OnPreToolUse}},
	"updatedInput":             {true, []string{job.OnPreToolUse}},
	"additionalContext":        {true, []string{job.OnSessionStart, job.OnUserPrompt, job.OnPreToolUse, job.OnPostToolUse, job.OnSubagentStart, job.OnStop}},
	"updatedToolOutput":        {true, []string{job.OnPostToolUse}},
	"updatedMCPToolOutput":     {true, []string{job.OnPostToolUse}},
	"env":                      {true, []string{job.OnShellEnv}},
	"descriptions":             {true, []string{job.OnToolDefinition}},
}

// readJSON returns the answer in a JSON object in Claude Code's format.
func (h Hook) readJSON(text []byte) (reply, error) {
	var outer struct {
		Continue      *bool           `json:"continue"`
		StopReason    string          `json:"stopReason"`
		SystemMessage string          `json:"systemMessage"`
		Decision      string          `json:"decision"`
		Reason        string          `json:"reason"`
		Specific      json.RawMessage `json:"hookSpecificOutput"`
	}
	var specific specificOutput
	if err := h.decode(text, &outer, false); err != nil {
		return reply{}, err
	}
	if nonNull(outer.Specific) != nil {
		if err := h.decode(outer.Specific, &specific, true); err != nil {
			return reply{}, err
		}
	}
	if specific.Event != "" && specific.Event != h.Event {
		return reply{}, fmt.Errorf("it answers to %q, and was asked about %s", specific.Event, h.Event)
	}
	r := reply{
		HookAnswer: transcript.HookAnswer{Context: specific.Context, Message: outer.SystemMessage, Reason: outer.Reason},
		input:      nonNull(specific.Input), namedTexts: specific.Env,
	}
	if h.Event == job.OnToolDefinition {
		r.namedTexts = specific.Descriptions
	}
	switch outer.Decision {
	case "", "approve", "allow":
	case "block", "deny":
		h.applyRefusal(&r)
	default:
		return reply{}, fmt.Errorf("its decision %q is none that is known", outer.Decision)
	}
	if err := r.setPermission(specific); err != nil {
		return reply{}, err
	}
	if h.Event == job.OnStop && r.Context != "" { // as in Claude Code, context at Stop demands more work
		r.Decision, r.Reason, r.Context = transcript.HookMore, strings.TrimSpace(r.Reason+"\n"+r.Context), ""
	}
	endsRun := outer.Continue != nil && !*outer.Continue
	if !endsRun {
		return r, r.setOutput(specific)
	}
	if h.Event == job.OnStop { // continue: false at Stop means that the agent may end
		return reply{HookAnswer: transcript.HookAnswer{Message: outer.SystemMessage}}, nil
	}
	r.Decision, r.Stop, r.Reason = transcript.HookDeny, true, cmp.Or(outer.StopReason, r.Reason)
	return r, r.setOutput(specific)
}

// setPermission applies the key permissionDecision to r. A refusal replaces r's decision and reason. "allow", or no
// value, leaves them, so that a refusal by the key decision still counts. Other values are an error.
func (r *reply) setPermission(specific specificOutput) error {
	switch specific.Permission {
	case "", "allow":
	case "deny":
		r.Decision, r.Reason = transcript.HookDeny, specific.Reason
	case decisionAsk, "defer": // both leave the decision to a person
		r.Decision, r.Reason = decisionAsk, specific.Reason
	default:
		return fmt.Errorf("its permissionDecision %q is none of allow, deny, ask and defer", specific.Permission)
	}
	return nil
}

// setOutput sets the replacement for a call's output, if the hook gives one.
func (r *reply) setOutput(specific specificOutput) error {
	raw := nonNull(specific.Output)
	if raw == nil {
		raw = nonNull(specific.MCPOutput)
	}
	if raw == nil {
		return nil
	}
	text, err := outputText(raw)
	if err != nil {
		return errors.New("the output that it gives instead is neither text nor a list of texts")
	}
	r.output = &text
	return nil
}

// nonNull returns raw, or nil if it is empty or null.
func nonNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// decode parses a JSON object of an answer into the struct that into points to. isSpecific is true for
// hookSpecificOutput. decode returns an error for misplaced, duplicate or wrongly capitalised keys, and if no key is
// known, because each could be a refusal. It ignores other unknown keys, which new versions of Claude Code may add. At
// agent-ci's own events these are an error, too.
func (h Hook) decode(text []byte, into any, isSpecific bool) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("its answer is no JSON that is understood (%w)", plainjson.Explain(err))
	}
	if len(bytes.TrimSpace(text[decoder.InputOffset():])) > 0 {
		return errors.New("its answer is more than one JSON object")
	}
	keys := keysOf(text)
	hasKnownKey := len(keys) == 0 // an empty object is valid
	for i, key := range keys {
		isSame := func(other string) bool { return strings.EqualFold(other, key) }
		known, isKnown := answerKeys[key]
		isInPlace := isKnown && known.isSpecific == isSpecific
		switch {
		case slices.ContainsFunc(keys[:i], isSame):
			return fmt.Errorf("its answer has %q more than once", key)
		case isInPlace && (known.events == nil || slices.Contains(known.events, h.Event)):
			hasKnownKey = true
		case isInPlace:
			return fmt.Errorf("its answer has %q, which %s has no place for", key, h.Event)
		case slices.ContainsFunc(slices.Collect(maps.Keys(answerKeys)), isSame):
			return fmt.Errorf("its answer has %q where it means nothing", key)
		case slices.Contains(job.OwnPoints, h.Event):
			return fmt.Errorf("its answer has %q, which is no key of %s", key, h.Event)
		}
	}
	if !hasKnownKey {
		return fmt.Errorf("its answer has %q and no key that is known", keys[0])
	}
	return nil
}

// keysOf returns the keys of a valid JSON object.
func keysOf(object []byte) (keys []string) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	_, _ = decoder.Token() // the opening brace
	for decoder.More() {
		key, _ := decoder.Token()
		keys = append(keys, fmt.Sprint(key))
		_ = decoder.Decode(new(json.RawMessage))
	}
	return keys
}

// outputText returns the text of a tool's output in JSON: a string, a list of texts, or an object with stdout and
// stderr or with content.
func outputText(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var printed struct {
		Stdout  *string         `json:"stdout"`
		Stderr  string          `json:"stderr"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &printed) == nil {
		switch {
		case printed.Stdout != nil:
			return *printed.Stdout + printed.Stderr, nil
		case printed.Content != nil:
			return outputText(printed.Content)
		}
	}
	var parts []struct {
		Text *string `json:"text"`
	}
	if err := plainjson.Unmarshal(raw, &parts); err != nil {
		return "", err
	}
	var all []string
	for _, part := range parts {
		if part.Text == nil {
			return "", errors.New("a part is no text")
		}
		all = append(all, *part.Text)
	}
	return strings.Join(all, "\n"), nil
}
