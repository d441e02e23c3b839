package rawitem

import (
	"bytes"
	"encoding/json"
	"slices"
)

// IsBareReasoning reports whether an item is only the id of reasoning that the provider did not keep.
func IsBareReasoning(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte(`"reasoning"`)) {
		return false
	}
	item := FieldsOf(raw)
	return item.Type == "reasoning" && item.Encrypted == "" && len(item.Content) == 0
}

// WithoutBareReasoning returns the items sent to an endpoint: without reasoning given by its id only, since the
// endpoint stores nothing.
func WithoutBareReasoning(items []json.RawMessage) []json.RawMessage {
	return slices.DeleteFunc(slices.Clone(items), IsBareReasoning)
}

// mayLinkReasoning reports whether the provider may link an item to reasoning by the item's id.
func (f Fields) mayLinkReasoning() bool {
	switch f.Type {
	case "message":
		return f.Role == "assistant"
	case "function_call", "custom_tool_call":
		return true
	}
	return false
}

// noSignature is accepted by Gemini in place of a signature of thoughts.
const noSignature = "skip_thought_signature_validator"

// WithoutProviderTies returns the items of a conversation without ties to their provider: signatures, and the
// ids linking calls and messages to reasoning. dropped are the indexes of reasoning to omit. changed
// is false if there were no ties.
func WithoutProviderTies(items []json.RawMessage) (unsealed []json.RawMessage, dropped []int, changed bool, err error) {
	for index, raw := range items {
		item, fixed := FieldsOf(raw), raw
		isUnreadable := item.Type == "reasoning" && (item.Encrypted != "" || len(item.Content) == 0)
		isSigned := bytes.Contains(item.Extra, []byte("signature")) && !bytes.Contains(item.Extra, []byte(noSignature))
		switch {
		case isUnreadable:
			dropped = append(dropped, index)
		case isSigned:
			fixed, err = WithFields(raw, map[string]any{"extra_content": map[string]any{"google": map[string]string{"thought_signature": noSignature}}})
		case item.ID != "" && item.mayLinkReasoning():
			fixed, err = WithFields(raw, nil, "id")
		}
		if err != nil {
			return nil, nil, false, err
		}
		changed = changed || !bytes.Equal(fixed, raw)
		unsealed = append(unsealed, fixed)
	}
	return unsealed, dropped, changed || len(dropped) > 0, nil
}
