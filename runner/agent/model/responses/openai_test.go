package responses_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/agent/model/responses"
)

const twoTurns = `
version: 1
turns:
  - expect: [do it]
    output:
      - item: {type: reasoning, id: rs_1, summary: [], encrypted_content: "gAAA<&>"}
      - item: {type: brand_new_thing, id: x_1, payload: {z: 1, a: [true, null]}}
      - {call: exec_command, arguments: {cmd: echo hi}}
      - {call: apply_patch, input: "*** Begin Patch\n*** End Patch"}
    usage: {input: 100, cached: 60, output: 20, reasoning: 5}
  - output: [{say: "All done."}]
`

func serve(t *testing.T, script string) *modeltest.Server {
	t.Helper()
	server, err := modeltest.StartScript(t.Name(), strings.NewReader(script), modeltest.Options{Key: "sk-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

func client(t *testing.T, url string) *responses.Client {
	t.Helper()
	c, err := responses.New(model.Endpoint{BaseURL: url, APIKey: "sk-test", Headers: map[string]string{"X-Extra": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func user(text string) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"type": "message", "role": "user", "content": []any{map[string]any{"type": "input_text", "text": text}}})
	if err != nil {
		panic(err)
	}
	return raw
}

func output(kind, id, text string) json.RawMessage {
	raw, err := json.Marshal(map[string]string{"type": kind, "call_id": id, "output": text})
	if err != nil {
		panic(err)
	}
	return raw
}

func TestTwoTurnsOverHTTP(t *testing.T) {
	server := serve(t, twoTurns)
	c := client(t, server.BaseURL())
	request := model.Request{
		Settings: model.Settings{Model: "gpt-5.1-codex", Instructions: "Work.", CacheKey: "run-1", Effort: "medium"},
		History:  []json.RawMessage{user("do it")},
	}
	first, err := c.Respond(t.Context(), request, model.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"encrypted_content":"gAAA<&>","id":"rs_1","summary":[],"type":"reasoning"}`,
		`{"id":"x_1","payload":{"a":[true,null],"z":1},"type":"brand_new_thing"}`,
		`{"type":"function_call","id":"fc_1_3","status":"completed","call_id":"call_1_3","name":"exec_command","arguments":"{\"cmd\":\"echo hi\"}"}`,
		`{"type":"custom_tool_call","id":"ctc_1_4","call_id":"call_1_4","name":"apply_patch","input":"*** Begin Patch\n*** End Patch"}`,
	}
	if diff := cmp.Diff(want, texts(t, first.Output)); diff != "" {
		t.Errorf("items are not what the API sent (-want +got):\n%s", diff)
	}
	if want := (model.Usage{Input: 100, Cached: 60, Output: 20, Reasoning: 5}); first.Usage != want {
		t.Errorf("usage = %+v, want %+v", first.Usage, want)
	}

	// The item of an unknown kind cannot be checked by the description.
	request.History = append(request.History, first.Output[0], first.Output[2], first.Output[3],
		output("function_call_output", "call_1_3", "hi\n"), output("custom_tool_call_output", "call_1_4", "refused"))
	request.New = 4
	second, err := c.Respond(t.Context(), request, model.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	if said := texts(t, second.Output); len(said) != 1 || !strings.Contains(said[0], `"text":"All done."`) || second.Status != "completed" {
		t.Errorf("said %q with status %q", said, second.Status)
	}
	if faults := server.Faults(); len(faults) > 0 {
		t.Errorf("the server found: %s", strings.Join(faults, "\n"))
	}
	requests := server.Requests()
	if !strings.HasPrefix(string(requests[1].Body), strings.TrimSuffix(string(requests[0].Body), "]}")) {
		t.Errorf("the second request does not begin with the bytes of the first:\n%s\n%s", requests[0].Body, requests[1].Body)
	}
	if got := requests[0].Header.Get("X-Extra"); got != "1" {
		t.Errorf("extra header = %q", got)
	}
}

// texts makes items comparable: the order of keys inside an item that a script
// gives as a mapping is not part of the promise.
func texts(t *testing.T, items []json.RawMessage) []string {
	t.Helper()
	list := make([]string, len(items))
	for i, item := range items {
		list[i] = string(item)
	}
	return list
}

func sse(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range events {
			fmt.Fprintf(w, "data: %s\n\n", event)
		}
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, "<html>Please log in")
}

func TestFailures(t *testing.T) {
	cases := map[string]struct {
		answer http.HandlerFunc
		kind   model.Kind
		text   string // part of the failure
	}{
		"stream ends cleanly without its last event": {sse(`{"type":"response.created","response":{}}`), model.StreamCut, "before response.completed"},
		"stream is empty":                  {sse(), model.StreamCut, "before response.completed"},
		"event is not JSON":                {sse(`{"type":`), model.Malformed, "unexpected end"},
		"response failed":                  {sse(`{"type":"response.failed","response":{"error":{"code":"server_error","message":"boom"}}}`), model.ServerError, "boom"},
		"response failed for its length":   {sse(`{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"too long"}}}`), model.ContextLength, "too long"},
		"error event":                      {sse(`{"type":"error","code":"rate_limit_exceeded","message":"slow"}`), model.RateLimited, "slow"},
		"error object at the top":          {sse(`{"error":{"code":"insufficient_quota","message":"pay"}}`), model.Quota, "pay"},
		"answer is cut at the token limit": {sse(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`), model.Incomplete, "max_output_tokens"},
		"answer is filtered":               {sse(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`), model.Refused, "filter"},
		"answer is cancelled":              {status(200, `{"status":"cancelled","output":[{"type":"message","role":"assistant","content":[]}]}`), model.StreamCut, "cancelled"},
		"answer is cancelled, and empty":   {status(200, `{"status":"cancelled"}`), model.StreamCut, "cancelled"},
		"401":                              {status(401, `{"error":{"message":"bad key","code":"invalid_api_key"}}`), model.Unauthorized, "bad key"},
		"403":                              {status(403, `{"error":{"message":"no"}}`), model.Forbidden, "no"},
		"404":                              {status(404, `{"error":{"message":"no such model","code":"model_not_found"}}`), model.NotFound, "no such model"},
		"429":                              {status(429, `{"error":{"message":"later"}}`), model.RateLimited, "later"},
		"429 for want of money":            {status(429, `{"error":{"message":"pay","code":"insufficient_quota"}}`), model.Quota, "pay"},
		"500 with a page instead of JSON":  {status(500, `<html>`), model.ServerError, "Internal Server Error"},
		"400":                              {status(400, `{"error":{"message":"bad field"}}`), model.InvalidRequest, "bad field"},
		"a page to log in":                 {page, model.Unreachable, "a web page came from http://127.0.0.1"},
		"answer is JSON, and no response":  {status(200, `{"object":"response"}`), model.Malformed, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			_, err := client(t, server.URL).Respond(t.Context(), model.Request{}, model.Observer{})
			var failure *model.Failure
			if !errors.As(err, &failure) {
				t.Fatalf("error is %T: %v", err, err)
			}
			if failure.Kind != c.kind || !strings.Contains(failure.Error(), c.text) {
				t.Errorf("failure = %s, want kind %s with %q", failure, c.kind, c.text)
			}
			if stop := failure.Stop(); stop.Reason != string(c.kind) || !strings.HasSuffix(stop.Message, ".") {
				t.Errorf("stop = %+v", stop)
			}
		})
	}
}

func TestConnectionBrokenInTheStream(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"type\":\"response.created\"}\n\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	_, err := client(t, server.URL).Respond(t.Context(), model.Request{}, model.Observer{})
	var failure *model.Failure
	if !errors.As(err, &failure) || failure.Kind != model.StreamCut {
		t.Errorf("error = %v, want a cut stream", err)
	}
}

func TestNobodyListens(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := client(t, server.URL).Respond(t.Context(), model.Request{}, model.Observer{})
	var failure *model.Failure
	if !errors.As(err, &failure) || failure.Kind != model.Unreachable {
		t.Errorf("error = %v, want unreachable", err)
	}
}

func TestCancelWhileTheModelThinks(t *testing.T) {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server sees a client leave once the body is read
		close(arrived)
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := client(t, server.URL).Respond(ctx, model.Request{}, model.Observer{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want the context's", err)
	}
}

func TestTheKeyStaysWithItsHost(t *testing.T) {
	leaked := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked <- r.Header.Get("Authorization")
	}))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL+"/responses", http.StatusTemporaryRedirect))
	defer server.Close()
	if _, err := client(t, server.URL).Respond(t.Context(), model.Request{}, model.Observer{}); err == nil {
		t.Error("a redirect to another host was followed")
	}
	select {
	case header := <-leaked:
		t.Errorf("the other host was asked, with Authorization %q", header)
	default:
	}
}

func TestRetrying(t *testing.T) {
	server := serve(t, `{version: 1, turns: [{output: [{say: hello}]}]}`)
	server.Replace(1, status(503, `{"error":{"message":"busy"}}`))
	server.Replace(2, sse(`{"type":"response.created","response":{}}`))
	var retries []model.Kind
	r := &model.Retrying{Next: client(t, server.BaseURL()), FirstPause: time.Microsecond, Report: func(f *model.Failure, _ time.Duration) error {
		retries = append(retries, f.Kind)
		return nil
	}}
	request := model.Request{Settings: model.Settings{Model: "m"}, History: []json.RawMessage{user("x")}}
	if _, err := r.Respond(t.Context(), request, model.Observer{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]model.Kind{model.ServerError, model.StreamCut}, retries); diff != "" {
		t.Errorf("retries (-want +got):\n%s", diff)
	}
	requests := server.Requests()
	if string(requests[0].Body) != string(requests[2].Body) {
		t.Error("a retried request is not the same bytes")
	}
}

const someCall = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"x","arguments":"{}"}`

func TestItemsComeOneByOne(t *testing.T) {
	more := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sse(`{"type":"response.output_item.done","item":`+someCall+`}`)(w, nil)
		w.(http.Flusher).Flush()
		<-more // the client has the item before there is anything behind it
		sse(`{"type":"response.completed","response":{"id":"r","status":"completed","output":[`+someCall+`]}}`)(w, nil)
	}))
	defer server.Close()
	var items []string
	answer, err := client(t, server.URL).Respond(t.Context(), model.Request{}, model.Observer{Item: func(item json.RawMessage) {
		items = append(items, string(item))
		close(more)
	}})
	if err != nil || len(answer.Output) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	if diff := cmp.Diff([]string{someCall}, items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestItemsThatComeWithTheLastEventAreSeenToo(t *testing.T) {
	server := httptest.NewServer(sse(`{"type":"response.completed","response":{"id":"r","status":"completed","output":[` + someCall + `]}}`))
	defer server.Close()
	var items []string
	_, err := client(t, server.URL).Respond(t.Context(), model.Request{}, model.Observer{Item: func(item json.RawMessage) { items = append(items, string(item)) }})
	if diff := cmp.Diff([]string{someCall}, items); err != nil || diff != "" {
		t.Errorf("%v, items (-want +got):\n%s", err, diff)
	}
}

func TestABrokenAnswerThatIsKeptIsNotAskedForAgain(t *testing.T) {
	for _, kept := range []bool{true, false} {
		requests, told := 0, 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			sse(`{"type":"response.output_item.done","item":`+someCall+`}`)(w, r)
		}))
		r := &model.Retrying{Next: client(t, server.URL), Attempts: 3, FirstPause: time.Microsecond}
		_, err := r.Respond(t.Context(), model.Request{}, model.Observer{Interrupted: func() bool {
			told++
			return kept
		}})
		server.Close()
		want := 3
		if kept {
			want = 1
		}
		if failure := (*model.Failure)(nil); !errors.As(err, &failure) || failure.Kind != model.StreamCut || requests != want || told != want {
			t.Errorf("kept %t: %v after %d requests, told of %d", kept, err, requests, told)
		}
	}
}

func TestRetryingGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		calls  int
	}{
		"when the attempts are used up": {status(500, `{}`), 3},
		"at once when it cannot pass":   {status(401, `{}`), 1},
		"at once when the server asks for too long": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(429)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				c.answer(w, r)
			}))
			defer server.Close()
			r := &model.Retrying{Next: client(t, server.URL), Attempts: 3, FirstPause: time.Microsecond}
			if _, err := r.Respond(t.Context(), model.Request{}, model.Observer{}); err == nil {
				t.Error("no error")
			}
			if calls != c.calls {
				t.Errorf("%d requests, want %d", calls, c.calls)
			}
		})
	}
}
