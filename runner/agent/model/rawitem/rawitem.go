// Package rawitem reads, makes and changes the items of a conversation in the API's raw JSON. It knows which
// fields link items, and which items only their own provider can read.
package rawitem

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/plainjson"
)

// Fields are the parsed fields of an item: its type and content, the IDs that link it to other items, and the data
// that only its provider understands.
type Fields struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Status    string          `json:"status"`
	Encrypted string          `json:"encrypted_content"`
	Content   Parts           `json:"content"`
	Extra     json.RawMessage `json:"extra_content"` // data of the provider, such as signatures
}

// Part is a part of an item's content.
type Part struct {
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
	Image   string `json:"image_url"`
}

// Parts are an item's content.
type Parts []Part

// Text returns the joined texts of all parts, including a refusal.
func (p Parts) Text() string {
	var text strings.Builder
	for _, part := range p {
		text.WriteString(part.Text + part.Refusal)
	}
	return text.String()
}

// FieldsOf returns the fields of an item. They are zero if the item cannot be parsed.
func FieldsOf(raw json.RawMessage) Fields {
	var item Fields
	_ = json.Unmarshal(raw, &item)
	return item
}

// IsCall reports whether an item is a call with a call ID.
func (f Fields) IsCall() bool { return f.CallID != "" && strings.HasSuffix(f.Type, "_call") }

// IsOutput reports whether an item is the output of a call with a call ID.
func (f Fields) IsOutput() bool {
	return f.CallID != "" && (strings.HasSuffix(f.Type, "_call_output") || f.Type == SearchOutputType)
}

// WithFields returns an item with the fields in values set, and the fields in removed left out.
func WithFields(item json.RawMessage, values map[string]any, removed ...string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := plainjson.Unmarshal(item, &fields); err != nil {
		return nil, fmt.Errorf("read item: %w", err)
	}
	for name, value := range values {
		raw, err := Encode(value)
		if err != nil {
			return nil, err
		}
		fields[name] = raw
	}
	for _, name := range removed {
		delete(fields, name)
	}
	return Encode(fields)
}

// WithoutIndexes returns the items without those at these indexes.
func WithoutIndexes(items []json.RawMessage, indexes []int) []json.RawMessage {
	rest := make([]json.RawMessage, 0, len(items))
	for i, item := range items {
		if !slices.Contains(indexes, i) {
			rest = append(rest, item)
		}
	}
	return rest
}

// Encode returns v as JSON without a final newline and without HTML escapes.
func Encode(v any) (json.RawMessage, error) {
	raw, err := plainjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode JSON for the model: %w", err)
	}
	return raw, nil
}

// Compact returns the items without blanks between their tokens, as a request has them.
func Compact(items []json.RawMessage) []json.RawMessage {
	compact := slices.Clone(items)
	for i, item := range items {
		if raw, err := Encode(item); err == nil { // the API refuses what is no JSON
			compact[i] = raw
		}
	}
	return compact
}

type messageItem struct {
	Type    string        `json:"type"`
	ID      string        `json:"id"`
	Status  string        `json:"status"`
	Role    string        `json:"role"`
	Content []contentPart `json:"content"`
}

type contentPart struct {
	Type        string   `json:"type"`
	Text        string   `json:"text"`
	Annotations []string `json:"annotations"`
	Logprobs    []string `json:"logprobs"`
}

type functionCallItem struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	// Extra is data of the endpoint to be sent back with the call.
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

// ModelMessage returns a message of the model in the API's form.
func ModelMessage(id, text string) any {
	return messageItem{"message", "msg_" + id, "completed", "assistant", []contentPart{OutputText(text)}}
}

// OutputText returns a text as a part of a model's message.
func OutputText(text string) contentPart {
	return contentPart{Type: "output_text", Text: text, Annotations: []string{}, Logprobs: []string{}}
}

// FunctionCall returns a call by the model in the API's form. extra is data of the endpoint that must be sent back
// with the call; nil for none.
func FunctionCall(id, callID, name, arguments string, extra json.RawMessage) any {
	return functionCallItem{"function_call", "fc_" + id, "completed", callID, name, arguments, extra}
}

// inputMessage is a message to the model.
type inputMessage struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

// inputText is a text as a part of a message to the model, or of a call's output.
type inputText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Text returns a text as a part of a message to the model, or of a call's output.
func Text(text string) any { return inputText{"input_text", text} }

// Message returns a message to the model. role is developer or user, parts are results of Text and images.
func Message(role string, parts ...any) (json.RawMessage, error) {
	return Encode(inputMessage{"message", role, parts})
}

// TextMessage returns a message to the model with one text. role is developer or user.
func TextMessage(role, text string) (json.RawMessage, error) { return Message(role, Text(text)) }
