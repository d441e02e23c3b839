// Package model owns the conversation with a model: the body of a request, the
// Responses API through openai-go, what its failures mean, and scripted
// sessions that stand in for it. Items of the history are the raw JSON that
// the API sent, so that what this version does not know comes back unharmed.
// It knows nothing of tools' behaviour, of the loop or of the transcript.
package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/price"
)

// Settings are the parts of a request that stay the same for a whole run, so
// that the prefix that a provider caches is the same bytes in every request.
type Settings struct {
	Model        string
	Instructions string
	Tools        []json.RawMessage // tool definitions in wire form
	CacheKey     string            // prompt_cache_key
	// Effort is the reasoning effort; empty leaves reasoning to the model and
	// is the only value for a model that does not reason.
	Effort      string
	Summary     string // of the reasoning: auto, concise, detailed; empty for none
	ServiceTier string // empty for the project's own
	// MaxOutputTokens is the most that an answer may have, reasoning included;
	// 0 for the model's own limit.
	MaxOutputTokens int64
	// Additional says that the tools that run here, and the instructions, stand as items at the
	// start of the input. Context is then of how many turns the model has its thoughts; empty for
	// its own.
	Additional bool
	Context    string
	// Flat says that tools of namespaces stand by themselves, for an endpoint that knows no namespaces.
	Flat bool
	// Chat are the quirks of the endpoint's Chat Completions.
	Chat []Quirk
	// Wordy says that the model is told of no tools, and writes what it wants done: requests have
	// nothing that is about tools.
	Wordy bool
	// Serial says that the model makes one call at a time.
	Serial bool
	// Whole says that an answer comes in one piece, not as a stream.
	Whole bool
	// Speaking says that the model answers in words and calls no tool.
	Speaking bool
	// Schema is a JSON Schema that the answer's words must fit.
	Schema json.RawMessage
}

// The tiers that a run knows by name: one that is cheap and may have no room, and the one
// that always has.
const (
	FlexTier    = "flex"
	DefaultTier = "default"
)

// Request asks for the next response.
type Request struct {
	Settings Settings
	// History is every item so far, in order; History[New:] has not been sent
	// before.
	History []json.RawMessage
	New     int
	// Encoded is what BodyFor gave for this request and who is asked; nil to have the
	// body made.
	Encoded []byte
}

// Response is a whole answer.
type Response struct {
	ID     string
	Status string
	Output []json.RawMessage // each item as it was sent
	Usage  Usage
	// Uncounted says that the API did not tell the usage, or none that can be true,
	// and that Usage is an estimate.
	Uncounted bool
}

// Usage counts the tokens of an answer.
type Usage = price.Usage

// Observer sees an answer while it comes. Each function may be nil.
type Observer struct {
	// Item gets each output item as soon as it is whole, as it was sent; all of
	// them in their order before the answer is returned.
	Item func(item json.RawMessage)
	// Broken is told that the answer will not come to its end, with what was
	// given to Item so far. It returns whether that is kept: the request is then
	// not sent again, since the answer would repeat it. When it is not kept, Item
	// gets the items of another attempt from their first on.
	Broken func() (kept bool)
}

func (o Observer) item(item json.RawMessage) {
	if o.Item != nil {
		o.Item(item)
	}
}

func (o Observer) items(all []json.RawMessage) {
	for _, item := range all {
		o.item(item)
	}
}

func (o Observer) broken() bool { return o.Broken != nil && o.Broken() }

// body is the JSON of a request; the order of its fields is the order on the
// wire.
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

// Body is the JSON of r for the Responses API. Two requests of one run share every byte
// up to the first item that is new.
func (r Request) Body() ([]byte, error) {
	b, err := r.Settings.body()
	if err != nil {
		return nil, err
	}
	b.Input = slices.Concat(b.Input, findable(r.History))
	return Encode(b)
}

// body is the body of a request without what is in it of the conversation.
func (s Settings) body() (body, error) {
	b := body{
		Model: s.Model, Instructions: &s.Instructions,
		Stream: !s.Whole, ServiceTier: s.ServiceTier, MaxOutputTokens: s.MaxOutputTokens,
		Text: s.text(), PromptCacheKey: s.CacheKey, Chat: s.Chat,
	}
	if !s.Wordy {
		if err := s.tell(&b); err != nil {
			return b, err
		}
	}
	if s.Effort != "" || s.Summary != "" || s.Context != "" {
		b.Reasoning = &reasoning{s.Effort, s.Summary, s.Context}
		b.Include = []string{"reasoning.encrypted_content"}
	}
	return b, nil
}

// tell puts into a body what it says of tools.
func (s Settings) tell(b *body) (err error) {
	parallel := !s.Serial
	b.Tools, b.ToolChoice, b.ParallelToolCalls = s.Tools, "auto", &parallel
	if b.Tools == nil {
		b.Tools = []json.RawMessage{}
	}
	if s.Flat {
		if b.Tools, err = flat(b.Tools); err != nil {
			return err
		}
	}
	if s.Additional {
		if err := b.open(); err != nil {
			return err
		}
	}
	if s.Speaking && len(b.Tools) > 0 {
		b.ToolChoice = "none"
	}
	return nil
}

// BodyFor is the JSON that m sends for r.
func BodyFor(m Responder, r Request) ([]byte, error) {
	if r.Encoded != nil {
		return r.Encoded, nil
	}
	switch m := m.(type) {
	case *Retrying:
		return BodyFor(m.Next, r)
	case *Chat:
		b, err := r.Settings.body()
		if err != nil {
			return nil, err
		}
		return chatRequest(b, r.History)
	}
	return r.Body()
}

func (s Settings) text() *textSettings {
	if s.Schema == nil {
		return nil
	}
	return &textSettings{Format: textFormat{Type: "json_schema", Name: "output", Schema: s.Schema}}
}

// SettingsJSON is the body of a request with that of its
// input alone which is the same in each request, for the record.
func (s Settings) SettingsJSON() (json.RawMessage, error) {
	b, err := s.body()
	if err != nil {
		return nil, err
	}
	raw, err := Encode(b)
	if err != nil {
		return nil, err
	}
	return bytes.Replace(raw, []byte(`,"input":null`), nil, 1), nil
}

// Encode writes JSON as requests have it: without a newline, and with what HTML
// would have escaped as it is.
func Encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode JSON for the model: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
