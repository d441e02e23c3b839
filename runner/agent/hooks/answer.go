package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// answer is a hook's decision.
type answer struct {
	decision string // "", deny, ask, more
	reason   string
	context  string            // for the model
	message  string            // for people
	stop     bool              // the run is to end
	feedback bool              // the reason goes to the model, and the output stays
	input    json.RawMessage   // replaces a call's
	output   *string           // replaces a result's
	texts    map[string]string // variables of commands, or descriptions of tools
}

// What a hook may decide.
const (
	decisionDeny = "deny"
	decisionAsk  = "ask"
	decisionMore = "more"
)

// exitBlocks is the exit status for a refusal, with its reason on standard error.
const exitBlocks = 2

// parseAnswer returns the answer of an exited hook.
func (h Hook) parseAnswer(s hookOutput) (answer, error) {
	switch {
	case s.status == exitBlocks:
		a := answer{reason: strings.TrimSpace(string(s.errors))}
		h.applyRefusal(&a)
		return a, nil
	case s.status != 0:
		return answer{}, fmt.Errorf("it ended with exit status %d%s", s.status, lastWords(s.errors))
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(s.output), []byte("\ufeff"))) // PowerShell writes that mark
	switch {
	case len(text) == 0:
		return answer{}, nil
	case text[0] != '{':
		return h.plainText(string(text))
	}
	return h.readJSON(text)
}

// applyRefusal turns an answer into a refusal. At Stop that asks for more work; at PostToolUse it is feedback
// for the model.
func (h Hook) applyRefusal(a *answer) {
	if a.decision = decisionDeny; h.On != job.OnStop {
		a.feedback = h.On == job.OnPostToolUse
		return
	}
	if a.decision = decisionMore; a.reason == "" {
		a.reason = "It gives no reason. Look whether the task is done."
	}
}

// plainTextEvents lists the events with plain text as context.
var plainTextEvents = []string{job.OnSessionStart, job.OnUserPrompt}

// plainText reads a non-JSON answer: context at a run's start, ignored elsewhere, because Claude
// Code lets hooks print anything. Text that may hide a decision, such as an object after a log
// line, is an error.
func (h Hook) plainText(text string) (answer, error) {
	begins := func(line string) bool { return strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") }
	suspect, isContext := strings.Contains(text, "{") || begins(text), slices.Contains(plainTextEvents, h.On)
	if isContext { // a context may quote code with braces
		suspect = slices.ContainsFunc(strings.Split(text, "\n"), begins)
	}
	switch {
	case suspect:
		return answer{}, errors.New("it prints text with what may be JSON in it; print one JSON object and nothing else, or write to standard error")
	case isContext:
		return answer{context: text}, nil
	}
	return answer{}, nil
}

// lastWords returns the end of a failed hook's output, to end a sentence.
func lastWords(text []byte) string {
	const shown = 300
	words := strings.TrimSpace(string(text))
	if words == "" {
		return ""
	}
	if len(words) > shown {
		words = clip.Mark + clip.End(words, shown)
	}
	return ": " + strings.ToValidUTF8(words, "�")
}

// specificOutput is the event's own part of an answer.
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

// outerKeys and specificKeys map keys of an answer and its hookSpecificOutput to their events; nil
// means all events.
var (
	outerKeys = map[string][]string{
		"continue": nil, "stopReason": nil, "suppressOutput": nil, "systemMessage": nil, "decision": nil, "reason": nil, "hookSpecificOutput": nil,
	}
	specificKeys = map[string][]string{
		"hookEventName": nil, "permissionDecision": {job.OnPreToolUse}, "permissionDecisionReason": {job.OnPreToolUse}, "updatedInput": {job.OnPreToolUse},
		"additionalContext": {job.OnSessionStart, job.OnUserPrompt, job.OnPreToolUse, job.OnPostToolUse, job.OnSubagentStart, job.OnStop},
		"updatedToolOutput": {job.OnPostToolUse}, "updatedMCPToolOutput": {job.OnPostToolUse}, "env": {job.OnShellEnv}, "descriptions": {job.OnToolDefinition},
	}
)

// readJSON reads an answer in the form of Claude Code.
func (h Hook) readJSON(text []byte) (answer, error) {
	var c struct {
		Continue      *bool           `json:"continue"`
		StopReason    string          `json:"stopReason"`
		SystemMessage string          `json:"systemMessage"`
		Decision      string          `json:"decision"`
		Reason        string          `json:"reason"`
		Specific      json.RawMessage `json:"hookSpecificOutput"`
	}
	var s specificOutput
	if err := h.decode(text, &c, outerKeys, specificKeys); err != nil {
		return answer{}, err
	}
	if nonNull(c.Specific) != nil {
		if err := h.decode(c.Specific, &s, specificKeys, outerKeys); err != nil {
			return answer{}, err
		}
	}
	if s.Event != "" && s.Event != h.On {
		return answer{}, fmt.Errorf("it answers to %q, and was asked about %s", s.Event, h.On)
	}
	a := answer{context: s.Context, message: c.SystemMessage, reason: c.Reason, input: nonNull(s.Input), texts: s.Env}
	if h.On == job.OnToolDefinition {
		a.texts = s.Descriptions
	}
	switch c.Decision {
	case "", "approve", "allow":
	case "block", decisionDeny:
		h.applyRefusal(&a)
	default:
		return answer{}, fmt.Errorf("its decision %q is none that is known", c.Decision)
	}
	switch s.Permission {
	case "", "allow":
	case decisionDeny:
		a.decision, a.reason = decisionDeny, s.Reason
	case decisionAsk, "defer": // to a person, who would decide later
		a.decision, a.reason = decisionAsk, s.Reason
	default:
		return answer{}, fmt.Errorf("its permissionDecision %q is none of allow, deny, ask and defer", s.Permission)
	}
	if h.On == job.OnStop && a.context != "" { // by which the agent goes on, too
		a.decision, a.reason, a.context = decisionMore, strings.TrimSpace(a.reason+"\n"+a.context), ""
	}
	if c.Continue != nil && !*c.Continue {
		if h.On == job.OnStop { // which lets the agent end
			return answer{message: c.SystemMessage}, nil
		}
		a.decision, a.stop, a.feedback = decisionDeny, true, false
		if c.StopReason != "" {
			a.reason = c.StopReason
		}
	}
	return a, a.setOutput(s)
}

// setOutput sets the answer's replacement for a call's output, if there is one.
func (a *answer) setOutput(s specificOutput) error {
	raw := nonNull(s.Output)
	if raw == nil {
		raw = nonNull(s.MCPOutput)
	}
	if raw == nil {
		return nil
	}
	text, err := outputText(raw)
	if err != nil {
		return errors.New("the output that it gives instead is neither text nor a list of texts")
	}
	a.output = &text
	return nil
}

// nonNull returns raw, or nil for null.
func nonNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// decode parses exactly one JSON object. It needs a known key; misplaced or duplicate keys, in any
// case, are errors, because a refusal must not be missed. Other unknown keys are skipped, since
// Claude Code adds some with each version, but not at agent-ci's own events.
func (h Hook) decode(text []byte, into any, here, elsewhere map[string][]string) error {
	keys, err := keysOf(text)
	if err != nil {
		return err
	}
	known := len(keys) == 0
	for _, key := range keys {
		points, is := here[key]
		switch {
		case is && (points == nil || slices.Contains(points, h.On)):
			known = true
		case is:
			return fmt.Errorf("its answer has %q, which %s has no place for", key, h.On)
		case differsInCase(key, here) || differsInCase(key, elsewhere):
			return fmt.Errorf("its answer has %q where it means nothing", key)
		case slices.Contains(job.OwnPoints, h.On):
			return fmt.Errorf("its answer has %q, which is no key of %s", key, h.On)
		}
	}
	if !known {
		return fmt.Errorf("its answer has %q and no key that is known", keys[0])
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("its answer is no JSON that is understood (%w)", err)
	}
	return nil
}

// differsInCase reports whether a key equals one of among if case is ignored.
func differsInCase(key string, among map[string][]string) bool {
	for other := range among {
		if strings.EqualFold(other, key) {
			return true
		}
	}
	return false
}

// keysOf returns the keys of a JSON object spanning the whole text.
func keysOf(text []byte) (keys []string, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	opening, err := d.Token()
	if err == nil && opening != json.Delim('{') {
		return nil, errors.New("its answer is no JSON object")
	}
	for err == nil && d.More() {
		var key json.Token
		if key, err = d.Token(); err != nil {
			break
		}
		name, _ := key.(string)
		if slices.ContainsFunc(keys, func(other string) bool { return strings.EqualFold(other, name) }) {
			return nil, fmt.Errorf("its answer has %q more than once", name)
		}
		keys = append(keys, name)
		var value json.RawMessage
		err = d.Decode(&value)
	}
	if err == nil {
		_, err = d.Token() // that closes it
	}
	if err != nil {
		return nil, fmt.Errorf("its answer is no JSON that is understood (%w)", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("its answer is more than one JSON object")
	}
	return keys, nil
}

// outputText returns an output's text: a string, a command's output, or the parts of a server's
// result.
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
	if err := json.Unmarshal(raw, &parts); err != nil {
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
