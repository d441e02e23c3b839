// Package chat is a client for Chat Completions. It translates conversations from the form of the Responses API and back,
// and adapts requests to what an endpoint lacks or demands.
package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/internal/exchange"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// Client is a client for endpoints that have Chat Completions but no Responses API. The conversation keeps the form of the
// Responses API: requests are translated when sent, answers when received. Items that Chat Completions cannot express are
// not sent.
type Client struct {
	endpoint  model.Endpoint
	url       string
	client    *http.Client
	idleLimit time.Duration
}

// New returns a client for the endpoint e. It does not connect.
func New(e model.Endpoint) (*Client, error) {
	base, err := e.Base()
	if err != nil {
		return nil, err
	}
	return &Client{
		endpoint: e, url: base.JoinPath("chat/completions").String(), idleLimit: cmp.Or(e.IdleLimit, exchange.DefaultIdleLimit),
		client: &http.Client{CheckRedirect: exchange.RefuseOtherHost},
	}, nil
}

// Respond sends r and reads the answer to its end. Errors are a *Failure or the context's error.
func (c *Client) Respond(ctx context.Context, r model.Request, observe model.Observer) (*model.Response, error) {
	raw, err := model.BodyFor(c, r)
	if err != nil {
		return nil, err
	}
	onePiece := r.Settings.NoStream || slices.Contains(r.Settings.ChatQuirks, noStream)
	answer, err := exchange.Do(ctx, c.idleLimit, c.send, raw, onePiece, &chatAnswer{observer: observe, toolsInText: callableInText(r.Settings), callByIndex: map[int]*arrivingCall{}})
	failure, isFailure := errors.AsType[*model.Failure](err)
	if isFailure && slices.Contains([]model.Kind{model.InvalidRequest, model.ServerError}, failure.Kind) {
		failure.Quirk = quirkIn(failure.Message, r)
		if failure.Quirk != "" {
			failure.Kind = model.InvalidRequest // some endpoints report a failing template as a server error
		}
	}
	return answer, err
}

// send posts a request's body and returns the response, whose body is unread. A status of 300 or more is an error.
func (c *Client) send(ctx context.Context, raw []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("make model request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.endpoint.APIKey != "" {
		request.Header.Set("Authorization", "Bearer "+c.endpoint.APIKey)
	}
	if c.endpoint.UserAgent != "" {
		request.Header.Set("User-Agent", c.endpoint.UserAgent)
	}
	for name, value := range c.endpoint.Headers {
		request.Header.Set(name, value)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, exchange.FailureOf(err)
	}
	if response.StatusCode < http.StatusMultipleChoices {
		return response, nil
	}
	defer response.Body.Close()
	return nil, exchange.Refusal(response)
}

// chatChunk is a piece of an answer, or a complete answer.
type chatChunk struct {
	ID      string `json:"id"`
	Choices []struct {
		Delta   chatDelta `json:"delta"`
		Message chatDelta `json:"message"`
		Finish  string    `json:"finish_reason"`
	} `json:"choices"`
	Usage       *exchange.Usage `json:"usage"`
	ServiceTier exchange.Tier   `json:"service_tier"`
	Error       *exchange.Error `json:"error"`
}

type chatDelta struct {
	Thought   chatText   `json:"reasoning_content"`
	Reasoning chatText   `json:"reasoning"` // other name of reasoning_content; some endpoints send both
	Content   chatText   `json:"content"`
	Refusal   string     `json:"refusal"`
	Calls     []chatCall `json:"tool_calls"`
}

// chatText is a text, or the joined texts of a list of parts, as Mistral's reasoning models send.
type chatText string

// UnmarshalJSON accepts a string or a list of parts.
func (t *chatText) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*t = chatText(text)
		return nil
	}
	var parts []struct{ Text string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	for _, part := range parts {
		text += part.Text
	}
	*t = chatText(text)
	return nil
}

type chatCall struct {
	Index    *int                 `json:"index,omitempty"`
	ID       exchange.LenientText `json:"id,omitempty"`
	Type     string               `json:"type,omitempty"`
	Function chatFunction         `json:"function"`
	Extra    json.RawMessage      `json:"extra_content,omitempty"` // Gemini's signature of its reasoning, sent back unchanged
}

// chatFunction is the function in a call. Arguments is a JSON string or an object.
type chatFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// arrivingCall is a call whose arguments arrive in pieces.
type arrivingCall struct {
	chatCall
	arguments strings.Builder
}

// chatAnswer collects an answer from its chunks.
type chatAnswer struct {
	observer      model.Observer
	toolsInText   map[string]bool // tools that may be called in the text; nil for none
	id            string
	thought       strings.Builder
	thoughtSource string // where the thought came from: "" for reasoning_content, reasoningField, or an opening tag of thoughtTags
	text          strings.Builder
	refusal       strings.Builder
	calls         []*arrivingCall
	callByIndex   map[int]*arrivingCall // the last call with each index
	finishReason  string
	usage         *exchange.Usage
	tier          exchange.Tier
}

// CompletedBy reports whether the chunk data can be the last one of the answer.
func (a *chatAnswer) CompletedBy(data []byte) bool {
	var chunk chatChunk
	if json.Unmarshal(data, &chunk) != nil {
		return false
	}
	isFinish := len(chunk.Choices) > 0 && chunk.Choices[0].Finish != ""
	return isFinish || a.finishReason != "" || chunk.Error != nil
}

// End returns the answer of a stream that has ended. announced means that the stream announced its end.
func (a *chatAnswer) End(announced bool) (*model.Response, error) {
	isWhole := a.finishReason != "" || announced && !a.hasTruncatedCall()
	if !isWhole {
		return nil, &model.Failure{Kind: model.StreamCut, Message: "the stream ended before a finish_reason"}
	}
	return a.response()
}

// hasTruncatedCall reports whether the arguments of a call are incomplete JSON.
func (a *chatAnswer) hasTruncatedCall() bool {
	return slices.ContainsFunc(a.calls, func(call *arrivingCall) bool {
		text := strings.TrimSpace(call.arguments.String())
		return text != "" && !json.Valid([]byte(text))
	})
}

// Whole returns the answer that came in one piece.
func (a *chatAnswer) Whole(raw []byte) (*model.Response, error) {
	if _, err := a.Event(raw); err != nil {
		return nil, err
	}
	if a.finishReason == "" {
		return nil, exchange.Malformed("the answer has no finish_reason", nil, raw)
	}
	return a.response()
}

// Event adds a chunk of the stream to the answer. Its first result is always nil.
func (a *chatAnswer) Event(data []byte) (*model.Response, error) {
	var chunk chatChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		return nil, exchange.Malformed("a chunk is not what the API describes", err, data)
	}
	if chunk.Error != nil {
		return nil, chunk.Error.Failure(0)
	}
	a.id, a.usage, a.tier = cmp.Or(chunk.ID, a.id), cmp.Or(chunk.Usage, a.usage), cmp.Or(chunk.ServiceTier, a.tier)
	if len(chunk.Choices) > 0 {
		choice := chunk.Choices[0]
		a.finishReason = cmp.Or(choice.Finish, a.finishReason)
		a.addDelta(choice.Delta)
		a.addDelta(a.withoutReceived(choice.Message))
	}
	return nil, nil
}

// withoutReceived returns the parts of a complete message that the stream has not sent in pieces before. It adds
// missing arguments to received calls. Some endpoints end a stream with the complete message.
func (a *chatAnswer) withoutReceived(message chatDelta) chatDelta {
	if a.thought.Len() > 0 {
		message.Thought, message.Reasoning = "", ""
	}
	if a.text.Len() > 0 {
		message.Content = ""
	}
	if a.refusal.Len() > 0 {
		message.Refusal = ""
	}
	if len(a.calls) == 0 {
		return message
	}
	for n, call := range message.Calls[:min(len(message.Calls), len(a.calls))] {
		received := a.calls[n]
		if received.arguments.Len() == 0 && call.Function.Name == received.Function.Name {
			received.arguments.WriteString(exchange.TextOf(call.Function.Arguments))
		}
	}
	message.Calls = nil
	return message
}

// addDelta appends the reasoning, text, refusal and pieces of calls in a delta.
func (a *chatAnswer) addDelta(delta chatDelta) {
	thought := delta.Thought
	if thought == "" && delta.Reasoning != "" {
		thought, a.thoughtSource = delta.Reasoning, reasoningField
	}
	a.thought.WriteString(string(thought))
	a.text.WriteString(string(delta.Content))
	a.refusal.WriteString(delta.Refusal)
	for _, piece := range delta.Calls {
		call := a.callOf(piece)
		call.ID = cmp.Or(piece.ID, call.ID)
		if len(piece.Extra) > 0 {
			call.Extra = piece.Extra
		}
		if call.Function.Name != piece.Function.Name { // some endpoints repeat the name in each piece
			call.Function.Name += piece.Function.Name
		}
		call.arguments.WriteString(exchange.TextOf(piece.Function.Arguments))
	}
}

// callOf returns the call that a piece belongs to, which may be new. Neither indexes nor IDs are reliable: some
// endpoints give every call the index 0 or none, others give each piece its own ID or none.
func (a *chatAnswer) callOf(piece chatCall) *arrivingCall {
	var call *arrivingCall
	index := len(a.calls) // for a call without an index
	switch {
	case piece.Index != nil:
		index = *piece.Index
		call = a.callByIndex[index]
	case len(a.calls) > 0:
		call = a.calls[len(a.calls)-1]
	}
	if call == nil || call.isFollowedBy(piece) {
		call = new(arrivingCall)
		a.calls = append(a.calls, call)
		a.callByIndex[index] = call
	}
	return call
}

// isFollowedBy reports whether a piece starts another call than c: it has a name, and c has another ID or is complete.
func (c *arrivingCall) isFollowedBy(piece chatCall) bool {
	if piece.Function.Name == "" {
		return false
	}
	if piece.ID != "" && c.ID != "" && piece.ID != c.ID {
		return true
	}
	isComplete := c.arguments.Len() > 0 && objectInsteadOf(c.arguments.String()) == nil
	return isComplete && exchange.TextOf(piece.Function.Arguments) != ""
}

// failureOfFinish returns the failure for a finish_reason of an incomplete answer, and nil for other reasons. It knows
// the reasons of OpenAI, DeepSeek, OpenRouter, vLLM, Zhipu and Mistral.
func failureOfFinish(reason string) *model.Failure {
	switch reason {
	case "length", "max_tokens", "model_length":
		return exchange.Incomplete("max_output_tokens")
	case "content_filter", "sensitive":
		return exchange.Incomplete("content_filter")
	case "error", "network_error", "abort", "cancelled", "insufficient_system_resource":
		return &model.Failure{Kind: model.StreamCut, Message: "the endpoint ended the answer with the finish_reason " + reason}
	}
	return nil
}

// response returns the complete answer as items of the Responses API, and gives the items to the observer.
func (a *chatAnswer) response() (*model.Response, error) {
	if f := failureOfFinish(a.finishReason); f != nil {
		f.Usage = a.usage.ToModel(a.tier)
		return nil, f
	}
	var items []any
	thought, source, text := a.thought.String(), a.thoughtSource, a.text.String()
	if thought == "" {
		thought, source, text = splitThought(text)
	}
	if thought != "" {
		item := map[string]any{
			"type": "reasoning", "id": "rs_" + a.id, "summary": []string{},
			"content": []any{map[string]string{"type": "reasoning_text", "text": thought}},
		}
		if source != "" {
			item["came_as"] = source
		}
		items = append(items, item)
	}
	if len(a.calls) == 0 && a.toolsInText != nil {
		text = a.takeCallsFrom(text)
	}
	if text != "" {
		items = append(items, rawitem.ModelMessage(a.id, text))
	}
	if refusal := a.refusal.String(); refusal != "" {
		items = append(items, map[string]any{
			"type": "message", "id": "msg_refusal_" + a.id, "status": "completed", "role": "assistant",
			"content": []any{map[string]string{"type": "refusal", "refusal": refusal}},
		})
	}
	for _, call := range a.calls {
		items = append(items, rawitem.FunctionCall(string(call.ID), string(call.ID), call.Function.Name, call.arguments.String(), call.Extra))
	}
	answer := &model.Response{ID: a.id, Status: "completed", Usage: a.usage.ToModel(a.tier)}
	for _, item := range items {
		raw, err := rawitem.Encode(item)
		if err != nil {
			return nil, err
		}
		answer.Output = append(answer.Output, raw)
		a.observer.TakeItem(raw)
	}
	return answer, nil
}
