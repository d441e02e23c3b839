// Package model owns requests to a model, its answers, failures and retries. Its subfolders implement
// Responder: responses and chat are clients for the two APIs, scripted reads answers from a file.
// History items are the API's raw JSON (rawitem), so that unknown fields are sent back unchanged. The
// package does not know what tools do, nor the agent's loop or the transcript.
package model

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/price"
)

// Settings are the parts of a request that stay the same for the whole run. So all requests begin with the same
// bytes, which the provider can cache.
type Settings struct {
	Model        string
	Instructions string
	Tools        []json.RawMessage // tool definitions in wire form
	CacheKey     string            // prompt_cache_key
	// Effort is the reasoning effort. Empty leaves it to the model, and is the only value for a
	// model without reasoning.
	Effort      string
	Summary     string // of the reasoning: auto, concise, detailed; empty for none
	ServiceTier string // empty for the project's own
	// MaxOutputTokens limits an answer, with its reasoning; 0 for the model's own limit.
	MaxOutputTokens int64
	RequestForm
	// NoTools leaves tools out of requests. The model writes its edits and commands as text.
	NoTools bool
	// SerialCalls limits the model to one call at a time.
	SerialCalls bool
	// NoStream asks for an answer in one piece, not as a stream.
	NoStream bool
	// WordsOnly makes the model answer with text, without calls.
	WordsOnly bool
	// Schema is the JSON Schema of the answer's text; nil for any text.
	Schema json.RawMessage
}

// RequestForm is the form in which an endpoint accepts requests. A run learns it from refusals.
type RequestForm struct {
	// ToolsInInput sends the instructions and the tools that agent-ci runs as the first items of the input. Context
	// then says which turns keep their reasoning; empty means the model's default.
	ToolsInInput bool
	Context      string
	// FlatNamespaces lists the tools of namespaces one by one, for an endpoint without namespaces.
	FlatNamespaces bool
	// ChatQuirks are the quirks of the endpoint's Chat Completions.
	ChatQuirks []Quirk
}

// Service tiers. Flex is cheaper and sometimes busy, default is the standard one.
const (
	FlexTier    = "flex"
	DefaultTier = "default"
)

// Request is a request for the next response.
type Request struct {
	Settings Settings
	// History has all items so far, in order. The provider has not got History[FirstNew:] yet.
	History  []json.RawMessage
	FirstNew int
	// Encoded is BodyFor's result for this request and this Responder; nil to encode it.
	Encoded []byte
}

// Response is a complete answer.
type Response struct {
	ID     string
	Status string
	Output []json.RawMessage // each item as it was sent
	Usage  Usage
	// EstimatedUsage marks Usage as an estimate: the API gave no usage, or an impossible one.
	EstimatedUsage bool
}

// Usage counts the tokens of an answer.
type Usage = price.Usage

// Observer receives an answer while it arrives.
type Observer interface {
	// TakeItem gets each output item as soon as it is complete, in order, as the API sent it.
	TakeItem(item json.RawMessage)
	// KeepInterrupted is called if the answer breaks off. It returns true to keep the items received so far.
	// Then the request is not sent again, because another answer would repeat them. Otherwise TakeItem gets
	// all items of the next attempt.
	KeepInterrupted() (kept bool)
}

// NoObserver is an Observer that takes no item and keeps nothing.
type NoObserver struct{}

func (NoObserver) TakeItem(json.RawMessage) {}

func (NoObserver) KeepInterrupted() bool { return false }

// RequestBody is the JSON of a Responses API request. The fields are in the order in which they are sent.
type RequestBody struct {
	Model             string            `json:"model"`
	Instructions      *string           `json:"instructions,omitempty"`
	Tools             []json.RawMessage `json:"tools,omitzero"`
	ToolChoice        string            `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool             `json:"parallel_tool_calls,omitempty"`
	Reasoning         *reasoning        `json:"reasoning,omitempty"`
	Include           []string          `json:"include,omitempty"`
	Store             bool              `json:"store"` // never: each request carries the whole conversation
	Stream            bool              `json:"stream"`
	ServiceTier       string            `json:"service_tier,omitempty"`
	MaxOutputTokens   int64             `json:"max_output_tokens,omitempty"`
	Text              *textSettings     `json:"text,omitempty"`
	PromptCacheKey    string            `json:"prompt_cache_key,omitempty"`
	Chat              []Quirk           `json:"chat,omitempty"` // quirks of Chat Completions, which never get this body itself
	Input             []json.RawMessage `json:"input,omitzero"`
}

type reasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
	Context string `json:"context,omitempty"`
}

type textSettings struct {
	Format textFormat `json:"format"`
}

type textFormat struct {
	Type   string          `json:"type"`
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

// bodyOf returns the JSON of a request for the Responses API: the settings, which SettingsJSON returned, with the history at
// the end of their input. Two requests of a run are equal up to the first new item. The items must be compact.
func bodyOf(settings json.RawMessage, history []json.RawMessage) []byte {
	history = rawitem.WithoutBareReasoning(history)
	size := len(settings) + len(startOfInput) + len(endOfInput)
	for _, item := range history {
		size += len(item) + len(",")
	}
	body := append(make([]byte, 0, size), bytes.TrimSuffix(settings, []byte("}"))...)
	hasInput := bytes.HasSuffix(settings, []byte("}]}")) // no other field at their end is a list of objects
	if hasInput {
		body = bytes.TrimSuffix(body, []byte("]"))
	} else {
		body = append(body, startOfInput...)
	}
	for _, item := range history {
		if body[len(body)-1] != '[' {
			body = append(body, ',')
		}
		body = append(body, item...)
	}
	return append(body, endOfInput...)
}

// The input is the last field of a body.
const (
	startOfInput = `,"input":[`
	endOfInput   = "]}"
)

// body returns a request's body without the history.
func (s Settings) body() (RequestBody, error) {
	b := RequestBody{
		Model: s.Model, Instructions: &s.Instructions,
		Stream: !s.NoStream, ServiceTier: s.ServiceTier, MaxOutputTokens: s.MaxOutputTokens,
		PromptCacheKey: s.CacheKey, Chat: s.ChatQuirks,
	}
	if s.Schema != nil {
		b.Text = &textSettings{Format: textFormat{Type: "json_schema", Name: "output", Schema: s.Schema}}
	}
	if !s.NoTools {
		if err := s.addTools(&b); err != nil {
			return b, err
		}
	}
	if s.Effort != "" || s.Summary != "" || s.Context != "" {
		b.Reasoning = &reasoning{s.Effort, s.Summary, s.Context}
		b.Include = []string{"reasoning.encrypted_content"}
	}
	return b, nil
}

// addTools adds the tools to a body, in the form that the endpoint accepts.
func (s Settings) addTools(b *RequestBody) (err error) {
	b.Tools, b.ToolChoice, b.ParallelToolCalls = s.Tools, "auto", new(!s.SerialCalls)
	if b.Tools == nil {
		b.Tools = []json.RawMessage{}
	}
	if s.FlatNamespaces {
		if b.Tools, err = rawitem.FlattenNamespaces(b.Tools); err != nil {
			return err
		}
	}
	if s.ToolsInInput {
		if err := b.moveToolsToInput(); err != nil {
			return err
		}
	}
	if s.WordsOnly && len(b.Tools) > 0 {
		b.ToolChoice = "none"
	}
	return nil
}

// bodyTranslator is a Responder whose requests have another form than the Responses API's.
type bodyTranslator interface {
	Responder
	Body(settings json.RawMessage, history []json.RawMessage) ([]byte, error)
}

// BodyFor returns the JSON of r in the form that m sends. Only a Retrying or a bodyTranslator makes a difference, so m may
// be nil.
func BodyFor(m Responder, r Request) ([]byte, error) {
	if r.Encoded != nil {
		return r.Encoded, nil
	}
	settings, err := r.Settings.SettingsJSON()
	if err != nil {
		return nil, err
	}
	return EncodeFor(m, settings, r.History)
}

// EncodeFor is BodyFor for a request with these encoded settings.
func EncodeFor(m Responder, settings json.RawMessage, history []json.RawMessage) ([]byte, error) {
	switch m := m.(type) {
	case *Retrying:
		return EncodeFor(m.Next, settings, history)
	case bodyTranslator:
		return m.Body(settings, history)
	}
	return bodyOf(settings, history), nil
}

// SettingsJSON returns a request's body for the record, without the history.
func (s Settings) SettingsJSON() (json.RawMessage, error) {
	b, err := s.body()
	if err != nil {
		return nil, err
	}
	return rawitem.Encode(b)
}

// Quirk names a way in which an endpoint differs from OpenAI's Chat Completions: a missing feature or an extra
// demand. Requests are adapted to it.
type Quirk string

// ListOf returns quirks as a YAML list, for a job file.
func ListOf(quirks []Quirk) string {
	var names []string
	for _, name := range quirks {
		names = append(names, string(name))
	}
	return "[" + strings.Join(names, ", ") + "]"
}
