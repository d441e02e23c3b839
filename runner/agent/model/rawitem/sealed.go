package rawitem

import (
	"bytes"
	"encoding/json"
)

// IsBareReasoning reports whether an item is only the id of reasoning that the provider did not keep.
func IsBareReasoning(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte(`"reasoning"`)) {
		return false
	}
	item := FieldsOf(raw)
	return item.Type == "reasoning" && item.Sealed == "" && len(item.Content) == 0
}

// WithoutBareReasoning returns the items sent to an endpoint: without reasoning given by its id only, since the
// endpoint stores nothing.
func WithoutBareReasoning(items []json.RawMessage) []json.RawMessage {
	for i, raw := range items {
		if !IsBareReasoning(raw) {
			continue
		}
		kept := append(make([]json.RawMessage, 0, len(items)), items[:i]...)
		for _, raw := range items[i+1:] {
			if !IsBareReasoning(raw) {
				kept = append(kept, raw)
			}
		}
		return kept
	}
	return items
}

// noSignature is accepted by Gemini in place of a signature of thoughts.
const noSignature = "skip_thought_signature_validator"

// WithoutSeals returns the items of a conversation without ties to their provider: signatures, and the
// ids linking calls and messages to reasoning. left are the indexes of reasoning to omit. changed
// is false if there were no ties.
func WithoutSeals(items []json.RawMessage) (open []json.RawMessage, left []int, changed bool, err error) {
	for place, raw := range items {
		item, fixed := FieldsOf(raw), raw
		switch {
		case item.Type == "reasoning" && (item.Sealed != "" || len(item.Content) == 0):
			left = append(left, place)
		case bytes.Contains(item.Extra, []byte("signature")) && !bytes.Contains(item.Extra, []byte(noSignature)):
			fixed, err = With(raw, map[string]any{"extra_content": map[string]any{"google": map[string]string{"thought_signature": noSignature}}})
		case item.ID != "" && (item.Type == "message" && item.Role == "assistant" || item.Type == "function_call" || item.Type == "custom_tool_call"):
			fixed, err = With(raw, nil, "id")
		}
		if err != nil {
			return nil, nil, false, err
		}
		changed = changed || !bytes.Equal(fixed, raw)
		open = append(open, fixed)
	}
	return open, left, changed || len(left) > 0, nil
}
