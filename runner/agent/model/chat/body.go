package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/internal/exchange"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// chatBody is the JSON of a chat completion request. Unset fields are not sent, because not every endpoint knows them.
type chatBody struct {
	Model           string          `json:"model"`
	Tools           []chatTool      `json:"tools,omitempty"`
	ToolChoice      string          `json:"tool_choice,omitempty"`
	Effort          string          `json:"reasoning_effort,omitempty"`
	ServiceTier     string          `json:"service_tier,omitempty"`
	MaxOutputTokens int64           `json:"max_completion_tokens,omitempty"`
	MaxTokens       int64           `json:"max_tokens,omitempty"` // older name of max_completion_tokens
	Format          *chatFormat     `json:"response_format,omitempty"`
	Stream          bool            `json:"stream"`
	StreamOptions   map[string]bool `json:"stream_options,omitempty"`
	Messages        []chatMessage   `json:"messages"`
}

type chatTool struct {
	Type     string         `json:"type"`
	Function map[string]any `json:"function"`
}

type chatFormat struct {
	Type   string         `json:"type"`
	Schema map[string]any `json:"json_schema"`
}

// chatMessage is one message. Content is a string, a list of chatPart if there are images, or nil.
type chatMessage struct {
	Role      string     `json:"role"`
	Content   any        `json:"content"`
	Thought   string     `json:"reasoning_content,omitempty"` // reasoning, sent back to endpoints that gave it
	Reasoning string     `json:"reasoning,omitempty"`         // the same, for endpoints that use this name
	Calls     []chatCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
}

type chatPart struct {
	Type  string            `json:"type"`
	Text  string            `json:"text,omitempty"`
	Image map[string]string `json:"image_url,omitempty"` // its url
}

// partWithImage returns the part of a message with the image at url.
func partWithImage(url string) chatPart {
	return chatPart{Type: "image_url", Image: map[string]string{"url": url}}
}

// Body returns the body of the chat request for a conversation. settings is the body of a Responses API request
// without the conversation. It uses nothing of the client, which may be zero.
func (*Client) Body(settings json.RawMessage, history []json.RawMessage) ([]byte, error) {
	var s model.RequestBody
	if err := json.Unmarshal(settings, &s); err != nil {
		return nil, fmt.Errorf("read the settings of a request: %w", err)
	}
	messages, err := chatMessages(*cmp.Or(s.Instructions, new("")), history)
	if err != nil {
		return nil, err
	}
	tools, err := chatTools(s.Tools)
	if err != nil {
		return nil, err
	}
	b := chatBody{Model: s.Model, Tools: tools, ServiceTier: s.ServiceTier, MaxOutputTokens: s.MaxOutputTokens, Stream: s.Stream, Messages: messages}
	if s.Reasoning != nil {
		b.Effort = s.Reasoning.Effort
	}
	if b.Stream {
		b.StreamOptions = map[string]bool{"include_usage": true}
	}
	if s.ToolChoice == "none" && len(tools) > 0 {
		b.ToolChoice = "none"
	}
	if s.Text != nil {
		b.Format = &chatFormat{"json_schema", map[string]any{"name": s.Text.Format.Name, "schema": s.Text.Format.Schema}}
	}
	for _, q := range quirks {
		if slices.Contains(s.Chat, q.name) {
			q.adapt(&b)
		}
	}
	return rawitem.Encode(b)
}

// chatTools returns the functions among the tools. It leaves out other kinds, which not every endpoint knows.
func chatTools(definitions []json.RawMessage) ([]chatTool, error) {
	definitions, err := rawitem.FlattenNamespaces(definitions)
	if err != nil {
		return nil, err
	}
	var tools []chatTool
	for _, raw := range definitions {
		var tool struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			return nil, fmt.Errorf("read tool definition: %w", err)
		}
		if tool.Type == "function" {
			function := map[string]any{"name": tool.Name, "description": tool.Description, "parameters": tool.Parameters}
			tools = append(tools, chatTool{"function", function})
		}
	}
	return tools, nil
}

// chatItem has the fields of items that can be expressed in a chat.
type chatItem struct {
	rawitem.Fields
	Name          string          `json:"name"`
	Arguments     string          `json:"arguments"`
	Input         string          `json:"input"`
	Output        json.RawMessage `json:"output"`
	Operation     json.RawMessage `json:"operation"`
	ThoughtSource string          `json:"came_as"`
}

// runnerWords begin a user message that comes from the runner.
const runnerWords = "[From the runner] "

// chatMessages translates the history to messages. The first one is the only system message, since many templates
// refuse others: later messages of the runner become user messages. The reasoning, text and calls of one answer
// become one message, since some endpoints refuse calls without their reasoning. Images in outputs follow in a user
// message, since an output cannot contain them.
func chatMessages(instructions string, history []json.RawMessage) ([]chatMessage, error) {
	messages := []chatMessage{{Role: "system", Content: instructions}}
	var thought *chatItem
	var images []chatPart
	addImages := func() {
		if len(images) > 0 {
			messages = append(messages, chatMessage{Role: "user", Content: images})
		}
		images = nil
	}
	for _, raw := range history {
		var item chatItem
		if err := json.Unmarshal(raw, &item); err != nil {
			return nil, fmt.Errorf("read item: %w", err)
		}
		if !strings.HasSuffix(item.Type, "_call_output") {
			addImages()
		}
		last := &messages[len(messages)-1]
		switch {
		case item.Type == "reasoning":
			thought = &item
		case item.Type == "message" && item.Role == "assistant":
			messages = append(messages, assistantMessage(thought, item.Content.Text()))
			thought = nil
		case item.Type == "message" && item.Role == "developer" && len(messages) == 1: // right after the system message
			last.Content = strings.Join([]string{last.Content.(string), item.Content.Text()}, "\n\n")
		case item.Type == "message" && item.Role == "developer":
			messages = append(messages, chatMessage{Role: "user", Content: runnerWords + item.Content.Text()})
		case item.Type == "message":
			messages = append(messages, chatMessage{Role: item.Role, Content: item.chatContent()})
		case strings.HasSuffix(item.Type, "_call_output"):
			text, shown := item.output()
			messages = append(messages, chatMessage{Role: "tool", Content: text, CallID: item.CallID})
			images = append(images, shown...)
		case strings.HasSuffix(item.Type, "_call") && item.CallID != "":
			call, err := item.toChatCall()
			if err != nil {
				return nil, err
			}
			if last.Role != "assistant" {
				messages = append(messages, assistantMessage(thought, ""))
				thought = nil
				last = &messages[len(messages)-1]
			}
			last.Calls = append(last.Calls, call)
		}
	}
	addImages()
	return messages, nil
}

// assistantMessage returns a message of the model with its reasoning, which may be nil.
func assistantMessage(thought *chatItem, text string) chatMessage {
	m := chatMessage{Role: "assistant"}
	if thought != nil {
		text = m.addThought(thought.ThoughtSource, thought.Content.Text(), text)
	}
	if text != "" {
		m.Content = text
	}
	return m
}

// addThought adds reasoning to the message in the form in which the endpoint sent it. source is "" for the field
// reasoning_content, reasoningField, or the opening tag before the reasoning. addThought returns the message's text,
// which contains the reasoning if it was in tags.
func (m *chatMessage) addThought(source, thought, text string) string {
	switch source {
	case "":
		m.Thought = thought
	case reasoningField:
		m.Reasoning = thought
	default:
		return strings.TrimRight(source+thought+thoughtTags[source]+"\n\n"+text, "\n")
	}
	return text
}

// output returns the text and the images of a call's output. A caption precedes the images.
func (i chatItem) output() (text string, images []chatPart) {
	if json.Unmarshal(i.Output, &text) == nil {
		return text, nil
	}
	var parts []rawitem.Part
	if json.Unmarshal(i.Output, &parts) != nil {
		return string(i.Output), nil
	}
	for _, part := range parts {
		text += part.Text
		if part.Image != "" {
			images = append(images, partWithImage(part.Image))
		}
	}
	if len(images) > 0 {
		images = append([]chatPart{{Type: "text", Text: "What the call " + i.CallID + " shows:"}}, images...)
	}
	return text, images
}

// chatContent returns an item's text, or a list of its parts if it has images.
func (i chatItem) chatContent() any {
	if !slices.ContainsFunc(i.Content, func(p rawitem.Part) bool { return p.Image != "" }) {
		return i.Content.Text()
	}
	parts := make([]chatPart, 0, len(i.Content))
	for _, part := range i.Content {
		if part.Image != "" {
			parts = append(parts, partWithImage(part.Image))
			continue
		}
		parts = append(parts, chatPart{Type: "text", Text: part.Text})
	}
	return parts
}

// objectInsteadOf returns an object to send instead of arguments that are no JSON object. It returns nil if they are
// one.
func objectInsteadOf(arguments string) any {
	var object map[string]json.RawMessage
	switch {
	case json.Unmarshal([]byte(arguments), &object) == nil && object != nil:
		return nil
	case strings.TrimSpace(arguments) == "":
		return struct{}{}
	}
	return map[string]string{"malformed": arguments}
}

// unwrapArguments returns the JSON object in arguments that some models encode a second time, as a JSON string. Other
// arguments are returned unchanged.
func unwrapArguments(arguments string) string {
	if !strings.HasPrefix(strings.TrimSpace(arguments), `"`) {
		return arguments
	}
	inner := exchange.TextOf(json.RawMessage(arguments))
	if inner == "" || objectInsteadOf(inner) != nil {
		return arguments
	}
	return inner
}

// toChatCall converts a call in any form to a function call. Its arguments are always a JSON object, even if the model wrote
// something else: endpoints that parse the history would refuse all further requests.
func (i chatItem) toChatCall() (chatCall, error) {
	name, text := i.Name, i.Arguments
	var arguments any
	switch i.Type {
	case "function_call":
		text = unwrapArguments(i.Arguments)
		arguments = objectInsteadOf(text)
	case "custom_tool_call":
		arguments = map[string]string{"input": i.Input}
	case "apply_patch_call":
		name, arguments = strings.TrimSuffix(i.Type, "_call"), i.Operation
	}
	if arguments != nil {
		raw, err := rawitem.Encode(arguments)
		if err != nil {
			return chatCall{}, err
		}
		text = string(raw)
	}
	quoted, err := rawitem.Encode(text)
	return chatCall{ID: exchange.LenientText(i.CallID), Type: "function", Function: chatFunction{name, quoted}, Extra: i.Extra}, err
}
