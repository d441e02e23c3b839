package model

import (
	"bytes"
	"encoding/json"
	"regexp"
	"sync"
)

// sealedWords matches the errors of endpoints that can't read or find what they sent before:
// reasoning from another account, region or key, items that were not stored, thought signatures.
var sealedWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)encrypted[_ ]content|could not be decrypted|item with id \S+ not found|items are not persisted|` +
		`provided without its required|thought[_ ]?signature|invalid .?signature.? in .?thinking`)
})

// RefusesSealed says that the endpoint can't read what a provider sealed or kept for itself.
func (f *Failure) RefusesSealed() bool {
	return (f.Kind == InvalidRequest || f.Kind == ServerError) && (f.Code == sealedCode || sealedWords().MatchString(f.Message))
}

const sealedCode = "invalid_encrypted_content"

// thinkingItem has the fields of an item that are a provider's own.
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

// lost says whether an item is nothing but the name of reasoning that the provider did not keep.
func lost(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte(`"reasoning"`)) {
		return false
	}
	item := thinkingOf(raw)
	return item.Type == "reasoning" && item.Sealed == "" && len(item.Content) == 0
}

// findable are the items of a conversation that an endpoint gets: those without reasoning that it
// gave by name alone, since it stores nothing.
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

// noSignature is what Gemini takes in the place of a signature of thoughts.
const noSignature = "skip_thought_signature_validator"

// Unsealed returns the items of a conversation without what ties them to the provider that gave
// them: signatures, and the ids by which calls and messages belong to reasoning. left are the
// places of reasoning, which is to be left out. changed is false where there was nothing of it.
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
