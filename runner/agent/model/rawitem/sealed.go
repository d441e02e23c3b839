package rawitem

import (
	"bytes"
	"encoding/json"
)

// Lost reports whether an item is only the id of reasoning the provider did not keep.
func Lost(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte(`"reasoning"`)) {
		return false
	}
	item := Of(raw)
	return item.Type == "reasoning" && item.Sealed == "" && len(item.Content) == 0
}

// Findable returns the items sent to an endpoint. It omits reasoning given by id only: the endpoint
// stores nothing.
func Findable(items []json.RawMessage) []json.RawMessage {
	for i, raw := range items {
		if !Lost(raw) {
			continue
		}
		kept := append(make([]json.RawMessage, 0, len(items)), items[:i]...)
		for _, raw := range items[i+1:] {
			if !Lost(raw) {
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
		item, fixed := Of(raw), raw
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
