package model

import (
	"bytes"
	"encoding/json"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// sealedWords matches errors about unreadable or missing earlier items: reasoning of another
// account, region or key, unstored items, thought signatures.
var sealedWords = lazyregexp.New(`(?i)encrypted[_ ]content|could not be decrypted|item with id \S+ not found|items are not persisted|` +
	`provided without its required|thought[_ ]?signature|invalid .?signature.? in .?thinking`)

// RefusesSealed reports whether the endpoint can't read data sealed or stored by a provider.
func (f *Failure) RefusesSealed() bool {
	return (f.Kind == InvalidRequest || f.Kind == ServerError) && (f.Code == sealedCode || sealedWords().MatchString(f.Message))
}

const sealedCode = "invalid_encrypted_content"

// thinkingItem has an item's provider-specific fields.
type thinkingItem struct {
	Type    string            `json:"type"`
	Role    string            `json:"role"`
	ID      string            `json:"id"`
	Status  string            `json:"status"`
	Sealed  string            `json:"encrypted_content"`
	Content []json.RawMessage `json:"content"`
	Extra   json.RawMessage   `json:"extra_content"`
}

func thinkingOf(raw json.RawMessage) thinkingItem {
	var item thinkingItem
	_ = json.Unmarshal(raw, &item) // an item without a type is of no kind
	return item
}

// lost reports whether an item is only the id of reasoning the provider did not keep.
func lost(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte(`"reasoning"`)) {
		return false
	}
	item := thinkingOf(raw)
	return item.Type == "reasoning" && item.Sealed == "" && len(item.Content) == 0
}

// findable returns the items sent to an endpoint. It omits reasoning given by id only: the endpoint
// stores nothing.
func findable(items []json.RawMessage) []json.RawMessage {
	for i, raw := range items {
		if !lost(raw) {
			continue
		}
		kept := append(make([]json.RawMessage, 0, len(items)), items[:i]...)
		for _, raw := range items[i+1:] {
			if !lost(raw) {
				kept = append(kept, raw)
			}
		}
		return kept
	}
	return items
}

// noSignature is accepted by Gemini in place of a signature of thoughts.
const noSignature = "skip_thought_signature_validator"

// Unsealed returns the items of a conversation without ties to their provider: signatures, and the
// ids linking calls and messages to reasoning. left are the indexes of reasoning to omit. changed
// is false if there were no ties.
func Unsealed(items []json.RawMessage) (open []json.RawMessage, left []int, changed bool, err error) {
	for place, raw := range items {
		item, fixed := thinkingOf(raw), raw
		switch {
		case item.Type == "reasoning" && (item.Sealed != "" || len(item.Content) == 0):
			left = append(left, place)
		case bytes.Contains(item.Extra, []byte("signature")) && !bytes.Contains(item.Extra, []byte(noSignature)):
			fixed, err = withFields(raw, map[string]any{"extra_content": map[string]any{"google": map[string]string{"thought_signature": noSignature}}})
		case item.ID != "" && (item.Type == "message" && item.Role == "assistant" || item.Type == "function_call" || item.Type == "custom_tool_call"):
			fixed, err = withFields(raw, nil, "id")
		}
		if err != nil {
			return nil, nil, false, err
		}
		changed = changed || !bytes.Equal(fixed, raw)
		open = append(open, fixed)
	}
	return open, left, changed || len(left) > 0, nil
}
