package responses_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/agent/model/responses"
)

const oneTurn = `
version: 1
turns:
  - expect: [do it]
    output:
      - item: {type: reasoning, id: rs_1, summary: [], encrypted_content: "gAAA<&>"}
      - item: {type: brand_new_thing, id: x_1, payload: {z: 1, a: [true, null]}}
      - {call: exec_command, arguments: {cmd: echo hi}}
      - {call: apply_patch, input: "*** Begin Patch\n*** End Patch"}
    usage: {input: 100, cached: 60, output: 20, reasoning: 5}
`

func client(t *testing.T, url string) *responses.Client {
	t.Helper()
	return must.Get(responses.New(model.Endpoint{BaseURL: url, APIKey: "sk-test", Headers: map[string]string{"X-Extra": "1"}}))(t)
}

func TestKeepsItemsAsSent(t *testing.T) {
	server := must.Get(modeltest.StartScript(t.Name(), strings.NewReader(oneTurn), modeltest.Options{Key: "sk-test"}))(t)
	defer server.Close()
	request := model.Request{
		Settings: model.Settings{Model: "gpt-5.1-codex", Instructions: "Work.", CacheKey: "run-1", Effort: "medium"},
		History:  []json.RawMessage{[]byte(`{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]}`)},
	}
	first := must.Get(client(t, server.BaseURL()).Respond(t.Context(), request, model.NoObserver{}))(t)
	want := []string{
		`{"encrypted_content":"gAAA<&>","id":"rs_1","summary":[],"type":"reasoning"}`,
		`{"id":"x_1","payload":{"a":[true,null],"z":1},"type":"brand_new_thing"}`,
		`{"type":"function_call","id":"fc_1_3","status":"completed","call_id":"call_1_3","name":"exec_command","arguments":"{\"cmd\":\"echo hi\"}"}`,
		`{"type":"custom_tool_call","id":"ctc_1_4","call_id":"call_1_4","name":"apply_patch","input":"*** Begin Patch\n*** End Patch"}`,
	}
	var got []string
	for _, item := range first.Output {
		got = append(got, string(item))
	}
	must.Same(t, want, got, "items are not what the API sent")
	must.Same(t, model.Usage{Input: 100, Cached: 60, Output: 20, Reasoning: 5}, first.Usage, "usage")

	requests := server.Requests()
	must.Same(t, "1", requests[0].Header.Get("X-Extra"), "extra header")
}

func sse(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range events {
			fmt.Fprintf(w, "data: %s\n\n", event)
		}
	}
}

func TestCancelsWaitingRequest(t *testing.T) {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server sees a client leave once the body is read
		close(arrived)
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	must.Is(t, context.Canceled, must.Err(client(t, server.URL).Respond(ctx, model.Request{}, model.NoObserver{})))
}

const someCall = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"x","arguments":"{}"}`

func TestGivesItemsOneByOne(t *testing.T) {
	seen := make(taken)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sse(`{"type":"response.output_item.done","item":`+someCall+`}`)(w, nil)
		w.(http.Flusher).Flush()
		if item := <-seen; item != someCall { // the client has the item before there is anything behind it
			t.Errorf("item %s", item)
		}
		sse(`{"type":"response.completed","response":{"id":"r","status":"completed","output":[`+someCall+`]}}`)(w, nil)
	}))
	defer server.Close()
	answer, err := client(t, server.URL).Respond(t.Context(), model.Request{}, seen)
	if err != nil || len(answer.Output) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
}

// taken passes items on.
type taken chan string

func (c taken) TakeItem(item json.RawMessage) { c <- string(item) }
func (taken) KeepInterrupted() bool           { return false }
