package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// RequestRebuilder rebuilds the bodies of requests from a transcript. Call its methods with the transcript's events,
// in order.
type RequestRebuilder struct {
	// Model is a client of the API that got the requests. Nil means the Responses API.
	Model Responder

	settings json.RawMessage
	history  []json.RawMessage
}

// Request rebuilds the next request and returns the SHA-256 of its body, in hex. input are its new items. settings
// is nil if they equal those of the previous request.
func (r *RequestRebuilder) Request(settings json.RawMessage, input []json.RawMessage) (string, error) {
	if settings != nil {
		r.settings = settings
	}
	r.history = append(r.history, input...)
	raw, err := EncodeFor(r.Model, r.settings, r.history)
	return fmt.Sprintf("%x", sha256.Sum256(raw)), err
}

// Response adds the items of an answer, which may be incomplete.
func (r *RequestRebuilder) Response(output []json.RawMessage) {
	r.history = append(r.history, output...)
}

// LacksImages reports whether the conversation contains images. A transcript has only their digests, so its requests
// cannot be rebuilt.
func (r *RequestRebuilder) LacksImages() bool {
	return slices.ContainsFunc(r.history, func(item json.RawMessage) bool { return bytes.Contains(item, []byte(`"image_url":"sha256:`)) })
}

// Fallback applies a change to another model, for which the items at these indexes were removed.
func (r *RequestRebuilder) Fallback(removed []int) {
	r.history = rawitem.WithoutIndexes(r.history, removed)
}

// Compaction replaces the conversation by a shortened one.
func (r *RequestRebuilder) Compaction(items []json.RawMessage) {
	r.history = items
}
