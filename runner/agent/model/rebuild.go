package model

import (
	"bytes"
	"crypto/sha256"
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
}

// Request is the SHA-256 in hex of the next request's body. settings is nil
// where they are those of the request before.
func (r *Rebuilt) Request(settings json.RawMessage, input []json.RawMessage) (string, error) {
	if settings != nil {
		r.settings = settings
	}
	r.history = append(r.history, input...)
	var s body
	if err := json.Unmarshal(r.settings, &s); err != nil {
		return "", fmt.Errorf("read the settings of a request: %w", err)
	}
	if r.Chat {
		raw, err := chatRequest(s, r.history)
		return fmt.Sprintf("%x", sha256.Sum256(raw)), err
	}
	head, err := withoutInput(r.settings, s.Input)
	if err != nil {
		return "", err
	}
	items, tail := slices.Concat(s.Input, findable(r.history)), []byte(`,"input":`)
	list, err := Encode(items)
	if err != nil {
		return "", err
	}
	raw := append(head, tail...)
	raw = append(append(raw, list...), '}')
	return fmt.Sprintf("%x", sha256.Sum256(raw)), nil
}

// withoutInput is the beginning of a body, up to its input: the items with which each begins are its
// last field.
func withoutInput(settings json.RawMessage, opening []json.RawMessage) ([]byte, error) {
	head := bytes.TrimSuffix(bytes.Clone(settings), []byte("}"))
	if opening == nil {
		return head, nil
	}
	list, err := Encode(opening)
	return bytes.TrimSuffix(head, append([]byte(`,"input":`), list...)), err
}

// Response takes what came of an answer, whole or broken off.
func (r *Rebuilt) Response(output []json.RawMessage) { r.history = append(r.history, output...) }

// LacksImages says that the conversation has images, of which a transcript has
// only digests: its requests cannot be made again.
func (r *Rebuilt) LacksImages() bool {
	return slices.ContainsFunc(r.history, func(item json.RawMessage) bool { return bytes.Contains(item, []byte(`"image_url":"sha256:`)) })
}

// Fallback takes that another model goes on, without some items.
func (r *Rebuilt) Fallback(leftOut []int) {
	r.history = Without(r.history, leftOut)
}

// Without is a conversation without the items at these places.
func Without(items []json.RawMessage, places []int) []json.RawMessage {
	kept := make([]json.RawMessage, 0, len(items))
	for i, item := range items {
		if !slices.Contains(places, i) {
			kept = append(kept, item)
		}
	}
	return kept
}

// Compaction takes a conversation that was made shorter.
func (r *Rebuilt) Compaction(items []json.RawMessage) {
	r.history = items
}
