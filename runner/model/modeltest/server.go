// Package modeltest serves scripted sessions as the Responses API does, over
// real HTTP with server-sent events, for tests of the program and benchmarks.
// It checks each request as the API would: by the published description, and
// that calls and outputs pair up.
package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/runner/model"
)

// Options say how a server treats requests.
type Options struct {
	Key string // the API key that is let in; any when empty
	// Trusting leaves out the check by the published description, which grows
	// with the history: for measurements.
	Trusting bool
}

// Server answers POST /v1/responses from a scripted session.
type Server struct {
	*httptest.Server
	options Options

	mu       sync.Mutex
	script   *model.Script
	schema   *requestSchema
	requests []Request
	faults   []string
	replace  map[int]http.HandlerFunc
}

// Request is one request that arrived.
type Request struct {
	Header http.Header
	Body   []byte
}

// Start serves the session in file on a loopback address.
func Start(file string, o Options) (*Server, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("start scripted server: %w", err)
	}
	defer f.Close()
	return StartScript(file, f, o)
}

// StartScript serves the session that r holds. The caller closes the server.
func StartScript(name string, r io.Reader, o Options) (*Server, error) {
	script, err := model.ReadScript(name, r)
	if err != nil {
		return nil, err
	}
	schema, err := compile(spec)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, script: script, schema: schema, replace: map[int]http.HandlerFunc{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s, nil
}

// BaseURL is what OPENAI_BASE_URL takes.
func (s *Server) BaseURL() string { return s.URL + "/v1" }

// Replace answers request n (from 1) with h instead of the script.
func (s *Server) Replace(n int, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replace[n] = h
}

// Requests are all requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Faults tells what was wrong with the requests, and which answers nobody
// asked for.
func (s *Server) Faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := append([]string(nil), s.faults...)
	if left := s.script.Left(); left > 0 {
		faults = append(faults, fmt.Sprintf("%d scripted answers were not asked for", left))
	}
	return faults
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	number, replaced := s.record(r, raw)
	if replaced != nil {
		replaced(w, r)
		return
	}
	if s.options.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.options.Key {
		refuse(w, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided.")
		return
	}
	request, err := s.check(r, raw)
	if err != nil {
		s.fault(fmt.Sprintf("request %d: %v", number, err))
		refuse(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	answer, err := s.script.Respond(r.Context(), request, model.Observer{})
	if err != nil {
		s.refuse(w, number, err)
		return
	}
	writeEvents(w, answer)
}

func (s *Server) record(r *http.Request, raw []byte) (int, http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{r.Header.Clone(), raw})
	return len(s.requests), s.replace[len(s.requests)]
}

func (s *Server) fault(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, text)
}

func (s *Server) refuse(w http.ResponseWriter, number int, err error) {
	failure, ok := err.(*model.Failure)
	if !ok {
		refuse(w, http.StatusInternalServerError, "server_error", err.Error())
		return
	}
	if failure.Kind == model.ScriptMismatch {
		s.fault(fmt.Sprintf("request %d: %v", number, err))
	}
	status := failure.Status
	if status == 0 {
		status = http.StatusBadRequest
	}
	refuse(w, status, failure.Code, failure.Message)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"message": message, "type": "invalid_request_error", "code": code, "param": nil,
	}})
}

// check looks at a request as the API does. What is new in it is what follows
// the last item that the model itself gave.
func (s *Server) check(r *http.Request, raw []byte) (model.Request, error) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/responses") {
		return model.Request{}, fmt.Errorf("%s %s is not a request for a response", r.Method, r.URL.Path)
	}
	if !s.options.Trusting {
		if err := s.schema.validate(raw); err != nil {
			return model.Request{}, err
		}
	}
	var body struct {
		Input []json.RawMessage `json:"input"`
		Prev  string            `json:"previous_response_id"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return model.Request{}, fmt.Errorf("the body is not JSON: %w", err)
	}
	fresh, err := pair(body.Input, body.Prev != "")
	if err != nil {
		return model.Request{}, err
	}
	return model.Request{History: body.Input, New: fresh}, nil
}

type inputItem struct {
	Type   string `json:"type"`
	Role   string `json:"role"`
	CallID string `json:"call_id"`
}

// pair checks that every call has one output, after it, and gives the index
// behind the last item of the model. With continued, calls may stand in a
// request before.
func pair(input []json.RawMessage, continued bool) (int, error) {
	open := map[string]bool{}
	done := map[string]bool{}
	fresh := 0
	for i, raw := range input {
		var item inputItem
		if err := json.Unmarshal(raw, &item); err != nil {
			return 0, fmt.Errorf("input[%d]: %w", i, err)
		}
		switch {
		case strings.HasSuffix(item.Type, "_call_output"):
			if !open[item.CallID] && !continued {
				return 0, fmt.Errorf("input[%d]: no tool call found for call_id %s", i, item.CallID)
			}
			if done[item.CallID] {
				return 0, fmt.Errorf("input[%d]: a second output for call_id %s", i, item.CallID)
			}
			delete(open, item.CallID)
			done[item.CallID] = true
		case strings.HasSuffix(item.Type, "_call") && item.CallID != "":
			open[item.CallID] = true
			fresh = i + 1
		case item.Role == "assistant", item.Type == "reasoning":
			fresh = i + 1
		}
	}
	for id := range open {
		return 0, fmt.Errorf("no tool output found for call_id %s", id)
	}
	return fresh, nil
}
