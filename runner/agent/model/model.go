// Package model owns what a conversation asks of a model, whoever answers: requests and their
// bodies, answers, failures and their remedies, and repeated attempts. Its subfolders have the
// answerers: responses and chat for the two APIs, scripted for a session that is written down.
// History items are the API's raw JSON (rawitem), so unknown fields come back unharmed. It knows
// nothing of the behaviour of tools, of the loop or of the transcript.
package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/price"
)

// Settings are the constant parts of a run's requests. The prefix cached by the provider is
// therefore the same bytes in every request.
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
	// NoTools omits everything about tools from requests: the model writes what it wants done.
	NoTools bool
	// SerialCalls limits the model to one call at a time.
	SerialCalls bool
	// NoStream asks for an answer in one piece, not as a stream.
	NoStream bool
	// WordsOnly makes the model answer in words, without calls.
	WordsOnly bool
	// Schema is the JSON Schema of the answer's words.
	Schema json.RawMessage
}

// RequestForm is the form in which an endpoint accepts requests. A run learns it from refusals.
type RequestForm struct {
	// ToolsInInput puts the instructions and the tools run by agent-ci at the start of the input, as
	// items. Context is then the number of turns with the model's thoughts; empty for its own.
	ToolsInInput bool
	Context      string
	// FlatNamespaces lists the tools of namespaces one by one, for an endpoint without namespaces.
	FlatNamespaces bool
	// ChatQuirks are the quirks of the endpoint's Chat Completions.
	ChatQuirks []Quirk
}

// Tiers with a name: a cheap one, sometimes full, and the standard one, never full.
const (
	FlexTier    = "flex"
	DefaultTier = "default"
)

// Request asks for the next response.
type Request struct {
	Settings Settings
	// History is every item so far, in order; History[FirstNew:] has not been sent
	// before.
	History  []json.RawMessage
	FirstNew int
	// Encoded is BodyFor's result for this request and this Responder; nil to encode it.
	Encoded []byte
}

// Response is a whole answer.
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

// Observer sees an answer while it comes. Each function may be nil.
type Observer struct {
	// Item gets each output item as soon as it is whole, as it was sent; all of
	// them in their order before the answer is returned.
	Item func(item json.RawMessage)
	// Interrupted is called for an answer that will not end, with the items given so far. It returns
	// whether they are kept. If so, the request is not sent again, because the answer would repeat
	// them. Otherwise Item gets all items of another attempt.
	Interrupted func() (kept bool)
}

// GiveItems hands over items in their order.
func (o Observer) GiveItems(items ...json.RawMessage) {
	for _, item := range items {
		if o.Item != nil {
			o.Item(item)
		}
	}
}

func (o Observer) keepInterrupted() bool { return o.Interrupted != nil && o.Interrupted() }

// body is the JSON of a request. The fields are in wire order.
type body struct {
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
	Chat              []Quirk           `json:"chat,omitempty"` // of Chat Completions alone: it is translated, and not sent
	Input             []json.RawMessage `json:"input"`
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

// Body returns the JSON of r for the Responses API. Two requests of a run share every byte up to
// the first new item.
func (r Request) Body() ([]byte, error) {
	b, err := r.Settings.body()
	if err != nil {
		return nil, err
	}
	b.Input = slices.Concat(b.Input, rawitem.WithoutBareReasoning(r.History))
	return rawitem.Encode(b)
}

// body returns a request's body without the conversation.
func (s Settings) body() (body, error) {
	b := body{
		Model: s.Model, Instructions: &s.Instructions,
		Stream: !s.NoStream, ServiceTier: s.ServiceTier, MaxOutputTokens: s.MaxOutputTokens,
		Text: s.text(), PromptCacheKey: s.CacheKey, Chat: s.ChatQuirks,
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

// addTools adds the tools to a body.
func (s Settings) addTools(b *body) (err error) {
	parallel := !s.SerialCalls
	b.Tools, b.ToolChoice, b.ParallelToolCalls = s.Tools, "auto", &parallel
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
	Body(r Request) ([]byte, error)
}

// BodyFor returns the JSON of r for m.
func BodyFor(m Responder, r Request) ([]byte, error) {
	if r.Encoded != nil {
		return r.Encoded, nil
	}
	switch m := m.(type) {
	case *Retrying:
		return BodyFor(m.Next, r)
	case bodyTranslator:
		return m.Body(r)
	}
	return r.Body()
}

func (s Settings) text() *textSettings {
	if s.Schema == nil {
		return nil
	}
	return &textSettings{Format: textFormat{Type: "json_schema", Name: "output", Schema: s.Schema}}
}

// SettingsJSON returns a request's body for the record, with only the constant part of its input.
func (s Settings) SettingsJSON() (json.RawMessage, error) {
	b, err := s.body()
	if err != nil {
		return nil, err
	}
	raw, err := rawitem.Encode(b)
	if err != nil {
		return nil, err
	}
	return bytes.Replace(raw, []byte(`,"input":null`), nil, 1), nil
}

// Quirk is a difference of an endpoint from Chat Completions as agent-ci sends it: a missing
// feature or an extra demand. Requests are adapted to it.
type Quirk string

// ListOf returns quirks as the list of a job.
func ListOf(quirks []Quirk) string {
	var names []string
	for _, name := range quirks {
		names = append(names, string(name))
	}
	return "[" + strings.Join(names, ", ") + "]"
}
