package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// eventWriter sends server-sent events with their sequence numbers.
type eventWriter struct {
	w    http.ResponseWriter
	next int
	cut  int // number of events after which the connection breaks; 0 for never
}

// send writes an event of type kind. It panics with http.ErrAbortHandler to break the connection.
func (e *eventWriter) send(kind string, fields map[string]any) {
	if e.cut > 0 && e.next >= e.cut {
		panic(http.ErrAbortHandler)
	}
	fields["type"] = kind
	fields["sequence_number"] = e.next
	e.next++
	fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", kind, encodeFields(fields))
	if flusher, canFlush := e.w.(http.Flusher); canFlush {
		flusher.Flush()
	}
}

// writeEvents streams an answer as the API does: first created, then each item with its text in pieces, then the
// complete response. It breaks the connection after cut events; 0 means never.
func writeEvents(w http.ResponseWriter, answer *model.Response, cut int) {
	w.Header().Set("Content-Type", "text/event-stream")
	e := &eventWriter{w: w, cut: cut}
	e.send("response.created", map[string]any{"response": response(answer, "in_progress", nil)})
	for i, raw := range answer.Output {
		e.send("response.output_item.added", map[string]any{"output_index": i, "item": raw})
		e.sendText(i, raw)
		e.send("response.output_item.done", map[string]any{"output_index": i, "item": raw})
	}
	e.send("response."+answer.Status, map[string]any{"response": response(answer, answer.Status, answer.Output)})
}

// writeJSON writes an answer as one JSON object.
func writeJSON(w http.ResponseWriter, status int, answer map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encodeFields(answer)) // to a client that may have left
}

// encodeFields returns the fields as JSON, with raw items unchanged. It panics if that fails.
func encodeFields(fields map[string]any) json.RawMessage {
	raw, err := rawitem.Encode(fields)
	if err != nil {
		panic(err)
	}
	return raw
}

// textPieces is the number of events in which a text is sent.
const textPieces = 3

// sendText sends the texts of a message in pieces. index is the item's index in the answer.
func (e *eventWriter) sendText(index int, raw json.RawMessage) {
	var item struct {
		ID      string `json:"id"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &item) != nil {
		return
	}
	for _, part := range item.Content {
		text := []rune(part.Text)
		for n := range textPieces {
			piece := string(text[n*len(text)/textPieces : (n+1)*len(text)/textPieces])
			e.send("response.output_text.delta", map[string]any{
				"item_id": item.ID, "output_index": index, "content_index": 0, "delta": piece, "logprobs": []any{},
			})
		}
	}
}

// response returns the API's response object for an answer, with this status and output.
func response(answer *model.Response, status string, output []json.RawMessage) map[string]any {
	if output == nil {
		output = []json.RawMessage{}
	}
	r := map[string]any{
		"id": answer.ID, "object": "response", "created_at": 1, "status": status,
		"model": "scripted", "output": output, "error": nil, "incomplete_details": nil,
	}
	if status != "in_progress" {
		r["usage"] = usage(answer.Usage)
		if answer.Usage.ServiceTier != "" {
			r["service_tier"] = answer.Usage.ServiceTier
		}
	}
	return r
}

// usage returns the API's usage object.
func usage(u model.Usage) map[string]any {
	return map[string]any{
		"input_tokens": u.Input, "input_tokens_details": map[string]any{"cached_tokens": u.Cached, "cache_write_tokens": u.CacheWrite},
		"output_tokens": u.Output, "output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
		"total_tokens": u.Total(),
	}
}
