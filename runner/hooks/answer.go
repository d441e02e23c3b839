package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/job"
)

// answer is what a hook decided, whatever form it answered in.
type answer struct {
	decision     string // "", allow, deny, ask, more
	reason       string
	context      string            // for the model
	message      string            // for people
	stop         bool              // the run is to end
	feedback     bool              // the reason goes to the model, and the output stays
	input        json.RawMessage   // that replaces a call's; a string where that is text
	output       *string           // that replaces what a call gave
	env          map[string]string // variables for commands
	descriptions map[string]string // of tools, by their names
}

// What a hook may decide.
const (
	allows = "allow"
	denies = "deny"
	asks   = "ask"
	wants  = "more"
)

// exitBlocks is the exit status by which a hook refuses, its reason on standard error.
const exitBlocks = 2

// read is the answer of a hook that ended by itself.
func (h Hook) read(s said) (answer, error) {
	switch {
	case s.status == exitBlocks:
		return h.blocked(strings.TrimSpace(string(s.errors))), nil
	case s.status != 0:
		return answer{}, fmt.Errorf("it ended with exit status %d%s", s.status, lastWords(s.errors))
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(s.output), []byte("\ufeff"))) // PowerShell writes that mark
	switch {
	case len(text) == 0:
		return answer{}, nil
	case h.Compat == "":
		return readOwn(text)
	case text[0] != '{':
		return h.plainText(string(text))
	}
	return h.readCompat(text)
}

// blocked is a refusal by the exit status.
func (h Hook) blocked(reason string) answer {
	if h.On == job.OnStop {
		if reason == "" && h.Compat != "" { // which the others take as well
			reason = "It gives no reason. Look whether the task is done."
		}
		return answer{decision: wants, reason: reason}
	}
	return answer{decision: denies, reason: reason, feedback: h.Compat != "" && h.On == job.OnPostTool}
}

// plainText is an answer that is no JSON, which is context where a run starts and nothing
// anywhere else: the others let hooks print what they like. What may hold a decision all the same,
// such as an object behind a line of a log, is no clean answer.
func (h Hook) plainText(text string) (answer, error) {
	begins := func(line string) bool { return strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") }
	suspect := strings.Contains(text, "{") || begins(text)
	if h.On == job.OnRunStart { // where text is context, which may have code in it
		suspect = slices.ContainsFunc(strings.Split(text, "\n"), begins)
	}
	switch {
	case suspect:
		return answer{}, errors.New("it prints text with what may be JSON in it; print one JSON object and nothing else, or write to standard error")
	case h.On == job.OnRunStart:
		return answer{context: text}, nil
	}
	return answer{}, nil
}

// lastWords are the end of what a hook that failed wrote, for the end of a sentence.
func lastWords(text []byte) string {
	const shown = 300
	words := strings.TrimSpace(string(text))
	if words == "" {
		return ""
	}
	if len(words) > shown {
		words = "…" + words[len(words)-shown:]
	}
	return ": " + strings.ToValidUTF8(words, "�")
}

// ownAnswer is agent-ci's own form.
type ownAnswer struct {
	Decision     string            `json:"decision"`
	Reason       string            `json:"reason"`
	Context      string            `json:"context"`
	Message      string            `json:"message"`
	Input        json.RawMessage   `json:"input"`
	Output       *string           `json:"output"`
	Env          map[string]string `json:"env"`
	Descriptions map[string]string `json:"descriptions"`
}

var ownKeys = []string{"decision", "reason", "context", "message", "input", "output", "env", "descriptions"}

// readOwn reads an answer in agent-ci's own form, which has no other keys: a mistyped one would
// let through what was to be refused.
func readOwn(text []byte) (answer, error) {
	var a ownAnswer
	if _, err := decode(text, &a, ownKeys); err != nil {
		return answer{}, err
	}
	switch a.Decision {
	case "", allows, denies, asks, wants:
	default:
		return answer{}, fmt.Errorf("its decision %q is none of allow, deny, ask and more", a.Decision)
	}
	return answer{
		decision: a.Decision, reason: a.Reason, context: a.Context, message: a.Message, input: given(a.Input), output: a.Output,
		env: a.Env, descriptions: a.Descriptions,
	}, nil
}

// given is a value that is not null.
func given(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// decode reads one JSON object and nothing behind it, and gives its keys. None may come twice, in
// whatever case, and where keys are given there may be no others.
func decode(text []byte, into any, known []string) (keys []string, err error) {
	if keys, err = keysOf(text); err != nil {
		return nil, err
	}
	for _, key := range keys {
		if known != nil && !slices.Contains(known, key) {
			return nil, fmt.Errorf("its answer has %q, which is none of %s", key, strings.Join(known, ", "))
		}
	}
	if err := json.Unmarshal(text, into); err != nil {
		return nil, fmt.Errorf("its answer is no JSON that is understood (%w)", err)
	}
	return keys, nil
}

// keysOf are the keys of a JSON object that is the whole text.
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

// fits says what of an answer does not belong to the event that the hook was asked about.
func (a answer) fits(on string) error {
	for _, part := range []struct {
		there bool
		what  string
		on    []string
	}{
		{a.input != nil, "an input", []string{job.OnPreTool}},
		{a.output != nil, "an output", []string{job.OnPostTool}},
		{a.env != nil, "variables", []string{job.OnShellEnv}},
		{a.descriptions != nil, "descriptions", []string{job.OnToolDefinition}},
		{a.decision == wants, "a wish for more work", []string{job.OnStop}},
		{a.context != "", "context", []string{job.OnRunStart, job.OnPreTool, job.OnPostTool, job.OnSubagentStart}},
	} {
		if part.there && !slices.Contains(part.on, on) {
			return fmt.Errorf("its answer has %s, which %s has no place for", part.what, on)
		}
	}
	if a.decision == wants && strings.TrimSpace(a.reason) == "" {
		return errors.New("it wants more work and does not say which")
	}
	return nil
}
