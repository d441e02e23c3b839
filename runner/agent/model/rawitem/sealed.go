package rawitem

import (
	"bytes"
	"encoding/json"
	"slices"
)

// isBareReasoning reports whether an item is reasoning without content: only the ID of something that the provider
// did not store.
func isBareReasoning(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte(`"reasoning"`)) {
		return false
	}
	_, encrypted, _ := bytes.Cut(raw, []byte(`"encrypted_content":"`))
	isSealed := len(encrypted) > 0 && encrypted[0] != '"'
	if isSealed { // parsing it for each request takes long
		return false
	}
	item := FieldsOf(raw)
	return item.Type == "reasoning" && item.Encrypted == "" && len(item.Content) == 0
}

// WithoutBareReasoning returns the items without bare reasoning, because the endpoint could not find it by its ID.
func WithoutBareReasoning(items []json.RawMessage) []json.RawMessage {
	return slices.DeleteFunc(slices.Clone(items), isBareReasoning)
}

// noSignature replaces a signature of reasoning. Gemini accepts it.
const noSignature = "skip_thought_signature_validator"

// WithoutProviderTies returns the items without the data that only their provider understands: signatures, and the
// IDs that link calls and messages to reasoning. They still include encrypted reasoning, whose indexes are dropped: the
// caller must remove it. changed is false if the items have neither such data nor encrypted reasoning.
func WithoutProviderTies(items []json.RawMessage) (unsealed []json.RawMessage, dropped []int, changed bool, err error) {
	for index, raw := range items {
		item, fixed := FieldsOf(raw), raw
		isUnreadable := item.Type == "reasoning" && (item.Encrypted != "" || len(item.Content) == 0)
		isSigned := bytes.Contains(item.Extra, []byte("signature")) && !bytes.Contains(item.Extra, []byte(noSignature))
		mayBeLinked := item.Type == "message" && item.Role == "assistant" || item.Type == "function_call" || item.Type == "custom_tool_call" // to reasoning
		switch {
		case isUnreadable:
			dropped = append(dropped, index)
		case isSigned:
			fixed, err = WithFields(raw, map[string]any{"extra_content": map[string]any{"google": map[string]string{"thought_signature": noSignature}}})
		case item.ID != "" && mayBeLinked:
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
