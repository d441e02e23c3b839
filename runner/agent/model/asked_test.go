package model_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/agent/model/responses"
)

// TestReadsRequestedWait has both wires refuse a request, in a status and in a stream.
func TestReadsRequestedWait(t *testing.T) {
	t.Parallel()
	const azure = "Requests have exceeded the call rate limit. Please retry after 3 seconds."
	for name, c := range map[string]struct {
		wire   string
		status int
		body   string
	}{
		"words":                      {"responses", 429, `{"error":{"code":"429","message":"` + azure + `"}}`},
		"words, chat":                {"chat", 429, `{"error":{"code":"429","message":"` + azure + `"}}`},
		"a field":                    {"responses", 429, `{"error":{"message":"Slow down."},"retry_after":3}`},
		"a field, chat":              {"chat", 503, `{"error":{"message":"Busy.","retry_after_ms":3000}}`},
		"a list, chat":               {"chat", 429, `[{"error":{"code":429,"message":"x","details":[{"retryDelay":"3s"}]}}]`},
		"a stream that fails":        {"responses", 200, `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"` + azure + `"}}}`},
		"a field in a stream":        {"responses", 200, `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"x","retry_after":3}}}`},
		"an error in a stream":       {"responses", 200, `data: {"type":"error","code":"too_many_requests","message":"x","retry_after":"3"}`},
		"an error object":            {"responses", 200, `data: {"type":"error","error":{"type":"too_many_requests","message":"` + azure + `"}}`},
		"an error in a stream, chat": {"chat", 200, `data: {"error":{"code":"429","message":"` + azure + `"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.status == http.StatusOK {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body + "\n\n"))
			}))
			defer server.Close()
			_, err := clients(t, model.Endpoint{BaseURL: server.URL})[c.wire].Respond(t.Context(), model.Request{}, model.NoObserver{})
			failure, is := errors.AsType[*model.Failure](err)
			if !is || failure.RetryAfter != 3*time.Second || !failure.Temporary() {
				t.Errorf("Respond = %+v", failure)
			}
		})
	}
}

// clients are those of an endpoint, by wire.
func clients(t *testing.T, at model.Endpoint) map[string]model.Responder {
	t.Helper()
	first, err := responses.New(at)
	second, otherErr := chat.New(at)
	if err = errors.Join(err, otherErr); err != nil {
		t.Fatal(err)
	}
	return map[string]model.Responder{"responses": first, "chat": second}
}

// An empty body is no answer that broke off.
func TestRedirectToNowhereIsRefusal(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTemporaryRedirect) }))
	defer server.Close()
	for wire, api := range clients(t, model.Endpoint{BaseURL: server.URL}) {
		_, err := api.Respond(t.Context(), model.Request{}, model.NoObserver{})
		if failure, is := errors.AsType[*model.Failure](err); !is || failure.Kind != model.NotFound {
			t.Errorf("%s: Respond = %v", wire, err)
		}
	}
}

// JSON that is no response, and no stream, did not break off. A proxy in trouble may say so in plain text with
// status 200: the next attempt may reach the API.
func TestDistinguishesWrongAnswersFromBrokenOnes(t *testing.T) {
	t.Parallel()
	for body, kind := range map[string]model.Kind{
		"null": model.Malformed, "[]": model.Malformed, `"ok"`: model.Malformed, "{}": model.Malformed, "true": model.Malformed,
		"no healthy upstream": model.StreamCut, "timeout": model.StreamCut, "502 Bad Gateway": model.StreamCut, "upstream error": model.StreamCut, "": model.StreamCut,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		defer server.Close()
		for wire, api := range clients(t, model.Endpoint{BaseURL: server.URL}) {
			_, err := api.Respond(t.Context(), model.Request{}, model.NoObserver{})
			failure, is := errors.AsType[*model.Failure](err)
			namesAddress := is && strings.Contains(failure.Stop().Message, "the request went to "+server.URL+"/")
			if !is || failure.Kind != kind || kind == model.Malformed && !namesAddress || kind == model.StreamCut && !failure.Temporary() {
				t.Errorf("%s, %s: Respond = %v", body, wire, err)
			}
		}
	}
}

func TestSendsKeyToItsHostOnly(t *testing.T) {
	var leaked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL+"/responses", http.StatusTemporaryRedirect))
	defer server.Close()
	for wire, api := range clients(t, model.Endpoint{BaseURL: server.URL, APIKey: "sk-test"}) {
		if _, err := api.Respond(t.Context(), model.Request{}, model.NoObserver{}); leaked.Load() > 0 || !strings.Contains(fmt.Sprint(err), "redirects to another host") {
			t.Errorf("%s: a redirect to another host was followed, or not named (%v)", wire, err)
		}
	}
}
