package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/job"
)

// otherNames are the names that Codex and Claude Code have for events.
var otherNames = map[string]string{
	job.OnRunStart: "SessionStart", job.OnPreTool: "PreToolUse", job.OnPostTool: "PostToolUse", job.OnPreCompact: "PreCompact",
	job.OnSubagentStart: "SubagentStart", job.OnSubagentStop: "SubagentStop", job.OnStop: "Stop", job.OnRunEnd: "SessionEnd",
}

// compatAnswer is the form of Codex and Claude Code. Keys that are not known are skipped beside
// those that are: there are more with each version of theirs.
type compatAnswer struct {
	Continue      *bool  `json:"continue"`
	StopReason    string `json:"stopReason"`
	SystemMessage string `json:"systemMessage"`
	Decision      string `json:"decision"`
	Reason        string `json:"reason"`
	Specific      struct {
		Event      string          `json:"hookEventName"`
		Permission string          `json:"permissionDecision"`
		Reason     string          `json:"permissionDecisionReason"`
		Input      json.RawMessage `json:"updatedInput"`
		Context    string          `json:"additionalContext"`
		Output     json.RawMessage `json:"updatedToolOutput"`
		MCPOutput  json.RawMessage `json:"updatedMCPToolOutput"`
	} `json:"hookSpecificOutput"`
}

// readCompat reads an answer in the form of Codex and Claude Code.
func (h Hook) readCompat(text []byte) (answer, error) {
	var c compatAnswer
	keys, err := decode(text, &c, nil)
	if err != nil {
		return answer{}, err
	}
	if err := misplaced(keys, compatKeys, specificKeys); err != nil {
		return answer{}, err
	}
	if err := misplacedInside(text); err != nil {
		return answer{}, err
	}
	if own := otherNames[h.On]; c.Specific.Event != "" && c.Specific.Event != own {
		return answer{}, fmt.Errorf("it answers to %q, and was asked about %s", c.Specific.Event, own)
	}
	a := answer{context: c.Specific.Context, message: c.SystemMessage, reason: c.Reason, input: given(c.Specific.Input)}
	switch c.Decision {
	case "", "approve", "allow":
	case "block", denies:
		a = h.blockedWords(a)
	default:
		return answer{}, fmt.Errorf("its decision %q is none that is known", c.Decision)
	}
	switch c.Specific.Permission {
	case "", allows:
	case denies, asks:
		a.decision, a.feedback, a.reason = c.Specific.Permission, false, c.Specific.Reason
	case "defer": // to a person, who would decide later
		a.decision, a.feedback, a.reason = asks, false, c.Specific.Reason
	default:
		return answer{}, fmt.Errorf("its permissionDecision %q is none of allow, deny, ask and defer", c.Specific.Permission)
	}
	if c.Continue != nil && !*c.Continue && h.On == job.OnStop { // which lets the agent end
		return answer{message: c.SystemMessage}, nil
	}
	if c.Continue != nil && !*c.Continue {
		a.decision, a.stop, a.feedback = denies, true, false
		if c.StopReason != "" {
			a.reason = c.StopReason
		}
	}
	if h.On == job.OnStop && a.context != "" { // by which the agent goes on, too
		a.decision, a.reason, a.context = wants, strings.TrimSpace(a.reason+"\n"+a.context), ""
	}
	a.output, err = c.replaced()
	return a, err
}

var (
	compatKeys   = []string{"continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput"}
	specificKeys = []string{
		"hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext", "updatedToolOutput", "updatedMCPToolOutput",
	}
)

// misplaced says which key of an object belongs into the other one, or that none is known: what
// would have refused may not pass.
func misplaced(keys, here, elsewhere []string) error {
	known := len(keys) == 0
	for _, key := range keys {
		switch {
		case slices.Contains(here, key):
			known = true
		case slices.ContainsFunc(slices.Concat(here, elsewhere), func(other string) bool { return strings.EqualFold(other, key) }):
			return fmt.Errorf("its answer has %q where it means nothing", key)
		}
	}
	if !known {
		return fmt.Errorf("its answer has %q and no key that is known", keys[0])
	}
	return nil
}

// misplacedInside is misplaced of what an answer has for its event alone.
func misplacedInside(text []byte) error {
	var outer struct {
		Specific json.RawMessage `json:"hookSpecificOutput"`
	}
	if json.Unmarshal(text, &outer) != nil || given(outer.Specific) == nil {
		return nil
	}
	keys, err := keysOf(outer.Specific)
	if err != nil {
		return err
	}
	return misplaced(keys, specificKeys, compatKeys)
}

// blockedWords is a refusal by "decision".
func (h Hook) blockedWords(a answer) answer {
	blocked := h.blocked(a.reason)
	a.decision, a.feedback = blocked.decision, blocked.feedback
	return a
}

// replaced is the output that stands in for a call's; nil for none.
func (c compatAnswer) replaced() (*string, error) {
	raw := given(c.Specific.Output)
	if raw == nil {
		raw = given(c.Specific.MCPOutput)
	}
	if raw == nil {
		return nil, nil
	}
	text, err := outputText(raw)
	if err != nil {
		return nil, errors.New("the output that it gives instead is neither text nor a list of texts")
	}
	return &text, nil
}

// outputText is the text of an output: text itself, what a command printed, or the parts of what
// a server of tools gives.
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
			raw = printed.Content
		}
	}
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
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
