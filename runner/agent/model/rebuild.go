package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// RequestRebuilder makes the bodies of requests from a transcript: the settings when they changed, and each
// request's new items.
type RequestRebuilder struct {
	// Body makes a body of settings and a conversation; nil for the Responses API's.
	Body func(settings json.RawMessage, history []json.RawMessage) ([]byte, error)

	settings json.RawMessage
	history  []json.RawMessage
}

// Request returns the SHA-256 of the next request's body, in hex. nil settings are those of the
// previous request.
func (r *RequestRebuilder) Request(settings json.RawMessage, input []json.RawMessage) (string, error) {
	if settings != nil {
		r.settings = settings
	}
	r.history = append(r.history, input...)
	if r.Body != nil {
		raw, err := r.Body(r.settings, r.history)
		return fmt.Sprintf("%x", sha256.Sum256(raw)), err
	}
	var s body
	if err := json.Unmarshal(r.settings, &s); err != nil {
		return "", fmt.Errorf("read the settings of a request: %w", err)
	}
	head, err := settingsWithoutInput(r.settings, s.Input)
	if err != nil {
		return "", err
	}
	list, err := rawitem.Encode(slices.Concat(s.Input, rawitem.WithoutBareReasoning(r.history)))
	if err != nil {
		return "", err
	}
	raw := slices.Concat(head, []byte(`,"input":`), list, []byte("}"))
	return fmt.Sprintf("%x", sha256.Sum256(raw)), nil
}

// settingsWithoutInput returns the start of a body, up to its input: the last field, starting with the same
// items each time.
func settingsWithoutInput(settings json.RawMessage, opening []json.RawMessage) ([]byte, error) {
	head := bytes.TrimSuffix(bytes.Clone(settings), []byte("}"))
	if opening == nil {
		return head, nil
	}
	list, err := rawitem.Encode(opening)
	return bytes.TrimSuffix(head, append([]byte(`,"input":`), list...)), err
}

// Response takes the items of an answer, whole or interrupted.
func (r *RequestRebuilder) Response(output []json.RawMessage) {
	r.history = append(r.history, output...)
}

// LacksImages reports images in the conversation. A transcript has only their digests, so the
// requests can't be rebuilt.
func (r *RequestRebuilder) LacksImages() bool {
	return slices.ContainsFunc(r.history, func(item json.RawMessage) bool { return bytes.Contains(item, []byte(`"image_url":"sha256:`)) })
}

// Fallback records a change to another model, without some items.
func (r *RequestRebuilder) Fallback(leftOut []int) {
	r.history = rawitem.WithoutIndexes(r.history, leftOut)
}

// Compaction takes a shortened conversation.
func (r *RequestRebuilder) Compaction(items []json.RawMessage) {
	r.history = items
}
