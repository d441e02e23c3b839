// Package rawitem owns the items of a conversation as the API's raw JSON: the fields that link them,
// how they are made and changed, and what of them another provider can read.
package rawitem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Fields are an item's content, and the fields that tell its kind, link it to others, or tie it to its provider.
type Fields struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Status    string          `json:"status"`
	Encrypted string          `json:"encrypted_content"`
	Content   Parts           `json:"content"`
	Extra     json.RawMessage `json:"extra_content"`
}

// Part is a part of an item's content.
type Part struct {
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
	Image   string `json:"image_url"`
}

// Parts are an item's content.
type Parts []Part

// Text returns the words of all parts, with those of a refusal.
func (p Parts) Text() string {
	var text strings.Builder
	for _, part := range p {
		text.WriteString(part.Text + part.Refusal)
	}
	return text.String()
}

// FieldsOf returns the fields of an item. An item that cannot be read has no kind.
func FieldsOf(raw json.RawMessage) Fields {
	var item Fields
	_ = json.Unmarshal(raw, &item)
	return item
}

// IsCall reports whether an item is a call with an id.
func (f Fields) IsCall() bool { return f.CallID != "" && strings.HasSuffix(f.Type, "_call") }

// IsOutput reports whether an item answers such a call.
func (f Fields) IsOutput() bool {
	return f.CallID != "" && (strings.HasSuffix(f.Type, "_call_output") || f.Type == SearchOutputType)
}

// WithFields returns an item with other values of some fields, and without others.
func WithFields(item json.RawMessage, values map[string]any, without ...string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(item, &fields); err != nil {
		return nil, fmt.Errorf("read item: %w", err)
	}
	for name, value := range values {
		raw, err := Encode(value)
		if err != nil {
			return nil, err
		}
		fields[name] = raw
	}
	for _, name := range without {
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

// Encode returns the JSON used in requests: no final newline, no HTML escapes.
func Encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode JSON for the model: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
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

// ModelMessage returns a message of the model as the API has it.
func ModelMessage(id, text string) any {
	return messageItem{"message", "msg_" + id, "completed", "assistant", []contentPart{OutputText(text)}}
}

// OutputText returns a part of such a message.
func OutputText(text string) contentPart {
	return contentPart{Type: "output_text", Text: text, Annotations: []string{}, Logprobs: []string{}}
}

// FunctionCall returns a call of the model as the API has it. extra is data of the endpoint that
// goes back with the call.
func FunctionCall(id, callID, name, arguments string, extra json.RawMessage) any {
	return functionCallItem{"function_call", "fc_" + id, "completed", callID, name, arguments, extra}
}

// inputMessage is an item from the runner.
type inputMessage struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

// inputText is a part of such a message, or of a call's output.
type inputText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Text returns a part with a text.
func Text(text string) any { return inputText{"input_text", text} }

// Message returns a message of the runner, in the name of a role.
func Message(role string, parts ...any) (json.RawMessage, error) {
	return Encode(inputMessage{"message", role, parts})
}

// TextMessage returns a message of the runner with one text.
func TextMessage(role, text string) (json.RawMessage, error) { return Message(role, Text(text)) }
