package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// Rebuilt makes the bodies of requests of what a transcript has of them: the
// settings, where they changed, and what was new each time.
type Rebuilt struct {
	Chat bool // they went to Chat

	settings json.RawMessage
	history  []json.RawMessage
	sent     int
	previous string
}

// Request is the SHA-256 in hex of the next request's body. settings is nil
// where they are those of the request before.
func (r *Rebuilt) Request(settings json.RawMessage, input []json.RawMessage) (string, error) {
	if settings != nil {
		r.settings = settings
	}
	r.history = append(r.history, input...)
	if r.Chat {
		return r.chatRequest()
	}
	var s struct {
		Store bool `json:"store"`
	}
	if err := json.Unmarshal(r.settings, &s); err != nil {
		return "", fmt.Errorf("read the settings of a request: %w", err)
	}
	items, tail := r.history, []byte(`,"input":`)
	if s.Store && r.previous != "" {
		id, err := Encode(r.previous)
		if err != nil {
			return "", err
		}
		items = r.history[r.sent:]
		tail = append([]byte(`,"previous_response_id":`), append(id, tail...)...)
	}
	list, err := Encode(items)
	if err != nil {
		return "", err
	}
	body := append(bytes.TrimSuffix(bytes.Clone(r.settings), []byte("}")), tail...)
	body = append(append(body, list...), '}')
	return digestOf(body), nil
}

func digestOf(body []byte) string {
	digest := sha256.Sum256(body)
	return hex.EncodeToString(digest[:])
}

func (r *Rebuilt) chatRequest() (string, error) {
	s, err := settingsOf(r.settings)
	if err != nil {
		return "", err
	}
	body, err := chatRequest(Request{Settings: s, History: r.history})
	if err != nil {
		return "", err
	}
	return digestOf(body), nil
}

// settingsOf reads what SettingsJSON wrote, as far as Chat sends it.
func settingsOf(raw json.RawMessage) (Settings, error) {
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		return Settings{}, fmt.Errorf("read the settings of a request: %w", err)
	}
	s := Settings{
		Model: b.Model, Instructions: b.Instructions, Tools: b.Tools, ServiceTier: b.ServiceTier, MaxOutputTokens: b.MaxOutputTokens,
		Serial: !b.ParallelToolCalls, Whole: !b.Stream, Speaking: b.ToolChoice == "none",
	}
	if b.Reasoning != nil {
		s.Effort = b.Reasoning.Effort
	}
	if b.Text != nil {
		s.Verbosity = b.Text.Verbosity
		if b.Text.Format != nil {
			s.Schema = b.Text.Format.Schema
		}
	}
	return s, nil
}

// Response takes an answer.
func (r *Rebuilt) Response(id string, output []json.RawMessage) {
	r.history = append(r.history, output...)
	r.sent, r.previous = len(r.history), id
}

// Rest takes what stays of an answer that broke off. The provider has not kept
// it.
func (r *Rebuilt) Rest(output []json.RawMessage) { r.history = append(r.history, output...) }

// LacksImages says that the conversation has images, of which a transcript has
// only digests: its requests cannot be made again.
func (r *Rebuilt) LacksImages() bool {
	return slices.ContainsFunc(r.history, func(item json.RawMessage) bool { return bytes.Contains(item, []byte(`"image_url":"sha256:`)) })
}

// Compaction takes a conversation that was made shorter.
func (r *Rebuilt) Compaction(items []json.RawMessage) {
	r.history, r.sent, r.previous = items, 0, ""
}
