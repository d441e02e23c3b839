// Package modeltest serves scripted sessions over HTTP with server-sent events, like the Responses
// API, for tests of the program and benchmarks. It checks each request like the API: by the
// published description, and for pairs of calls and outputs.
package modeltest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/scripted"
)

// Options say how a server treats requests.
type Options struct {
	Key string // the API key that is let in; any when empty
	// Trusting omits the check by the published description, for measurements: its time grows with
	// the history.
	Trusting bool
	// Compacts adds POST /v1/responses/compact, answered with one opaque item.
	Compacts bool
	// Usage is the usage of answers without their own. If zero, it is the least possible for the
	// request, so it depends on the paths there.
	Usage model.Usage
}

// Server answers POST /v1/responses from a scripted session.
type Server struct {
	*httptest.Server
	options Options
	agents  scripts

	mu        sync.Mutex
	script    *scripted.Script
	requests  []Request
	faults    []string
	replace   map[int]http.HandlerFunc
	cutAfter  map[int]int
	cutAnswer *model.Response // that the next request gets: it was cut before
	compact   int             // how often the server compacted
}

// Request is a received request.
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

// StartScript serves the session in r. The caller closes the server.
func StartScript(name string, r io.Reader, o Options) (*Server, error) {
	script, err := scripted.Read(name, r)
	if err != nil {
		return nil, err
	}
	createSchema() // now, and not in the time of the first request
	s := &Server{options: o, script: script, replace: map[int]http.HandlerFunc{}, cutAfter: map[int]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s, nil
}

// BaseURL returns the value for OPENAI_BASE_URL.
func (s *Server) BaseURL() string { return s.URL + "/v1" }

// Replace answers request n (from 1) with h instead of the script.
func (s *Server) Replace(n int, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replace[n] = h
}

// Cut breaks the connection of request n (from 1) after a number of events of its answer. The next
// request gets the same answer, unless it continues from a call of it.
func (s *Server) Cut(n, events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutAfter[n] = events
}

// Compactions is how often the server made a conversation shorter.
func (s *Server) Compactions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compact
}

// Requests are all requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Faults returns errors in requests, and answers never asked for.
func (s *Server) Faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := append([]string(nil), s.faults...)
	if turnsLeft := s.script.TurnsLeft(); turnsLeft > 0 {
		faults = append(faults, fmt.Sprintf("%d scripted answers were not asked for", turnsLeft))
	}
	return faults
}

// serve answers a request: by its replacement, a compaction, a refusal, or the script's next answer.
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
	if strings.HasSuffix(r.URL.Path, "/responses/compact") {
		s.serveCompact(w, raw)
		return
	}
	request, err := s.check(r, raw)
	if err != nil {
		s.fault(fmt.Sprintf("request %d: %v", number, err))
		refuse(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	answer, cut, err := s.answer(r, raw, request, number)
	if err == nil && answer.Usage.Total() == 0 {
		if answer.Usage = s.options.Usage; answer.Usage.Total() == 0 {
			answer.Usage.Input = leastTokens(raw)
		}
	}
	switch {
	case err != nil:
		s.refuse(w, number, err)
	case request.Settings.NoStream:
		writeJSON(w, http.StatusOK, response(answer, answer.Status, answer.Output))
	default:
		s.stream(w, answer, cut)
	}
}

// leastTokens returns the least possible tokens of a request, for sessions without usage.
func leastTokens(request []byte) int64 { return int64(len(request))/1024 + 1 }

// stream sends an answer, and keeps it for the next request when it is cut.
func (s *Server) stream(w http.ResponseWriter, answer *model.Response, cut int) {
	s.mu.Lock()
	if cut > 0 {
		s.cutAnswer = answer
	}
	s.mu.Unlock()
	writeEvents(w, answer, cut)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cutAnswer == answer { // there were no more events
		s.cutAnswer = nil
	}
}

// answer returns the script's next answer, or the cut one again.
func (s *Server) answer(r *http.Request, raw []byte, request model.Request, number int) (*model.Response, int, error) {
	if own := s.scriptOf(raw); own != nil {
		own.mu.Lock()
		defer own.mu.Unlock()
		answer, err := own.script.Respond(r.Context(), request, model.Observer{})
		return answer, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, err := s.cutAnswer, error(nil)
	if answer == nil || continuesFrom(request, answer) {
		answer, err = s.script.Respond(r.Context(), request, model.Observer{})
	}
	s.cutAnswer = nil
	return answer, s.cutAfter[number], err
}

// isOutput says whether items of a type answer calls.
func isOutput(kind string) bool {
	return strings.HasSuffix(kind, "_call_output") || kind == "tool_search_output"
}

// continuesFrom reports whether a request has a call of a cut answer.
func continuesFrom(request model.Request, cut *model.Response) bool {
	called := map[string]bool{}
	for _, raw := range cut.Output {
		var item inputItem
		if json.Unmarshal(raw, &item) == nil && strings.HasSuffix(item.Type, "_call") {
			called[item.CallID] = true
		}
	}
	return slices.ContainsFunc(request.History, func(raw json.RawMessage) bool {
		var item inputItem
		return json.Unmarshal(raw, &item) == nil && isOutput(item.Type) && called[item.CallID]
	})
}

// serveCompact repeats all messages but the model's, and replaces everything else by one item.
func (s *Server) serveCompact(w http.ResponseWriter, raw []byte) {
	var body struct {
		Input []json.RawMessage `json:"input"`
	}
	err := json.Unmarshal(raw, &body)
	if err == nil {
		_, err = checkPairs(body.Input)
	}
	if err == nil && !s.options.Trusting {
		err = compactSchema().validate(raw)
	}
	if err != nil {
		s.fault(fmt.Sprintf("compaction: %v", err))
		refuse(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	if !s.options.Compacts {
		refuse(w, http.StatusNotFound, "", "Unknown request URL")
		return
	}
	s.mu.Lock()
	s.compact++
	number := s.compact
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{
		"id": fmt.Sprintf("cmp_%d", number), "object": "response.compaction", "created_at": 1,
		"output": append(messagesIn(body.Input), map[string]any{"type": "compaction", "id": fmt.Sprintf("cmpi_%d", number), "encrypted_content": "opaque"}),
		"usage":  usage(model.Usage{Input: 10, Output: 5}),
	})
}

func messagesIn(input []json.RawMessage) []any {
	var messages []any
	for _, raw := range input {
		var item inputItem
		if json.Unmarshal(raw, &item) == nil && item.Type == "message" && item.Role != "assistant" {
			messages = append(messages, raw)
		}
	}
	return messages
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
	status := cmp.Or(failure.Status, http.StatusBadRequest)
	refuse(w, status, failure.Code, failure.Message)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]any{"error": map[string]any{
		"message": message, "type": "invalid_request_error", "code": code, "param": nil,
	}})
}

// check checks a request like the API. Its new items follow the last item of the model.
func (s *Server) check(r *http.Request, raw []byte) (model.Request, error) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/responses") {
		return model.Request{}, fmt.Errorf("%s %s is not a request for a response", r.Method, r.URL.Path)
	}
	if !s.options.Trusting {
		if err := createSchema().validate(raw); err != nil {
			return model.Request{}, err
		}
	}
	var body struct {
		Input  []json.RawMessage `json:"input"`
		Stream bool              `json:"stream"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return model.Request{}, fmt.Errorf("the body is not JSON: %w", err)
	}
	fresh, err := checkPairs(body.Input)
	if err != nil {
		return model.Request{}, err
	}
	return model.Request{Settings: model.Settings{NoStream: !body.Stream}, History: body.Input, FirstNew: fresh}, nil
}

type inputItem struct {
	Type   string `json:"type"`
	Role   string `json:"role"`
	CallID string `json:"call_id"`
}

// checkPairs verifies that every call has one output after it. It returns the index after the model's
// last item.
func checkPairs(input []json.RawMessage) (int, error) {
	unanswered := map[string]bool{}
	answered := map[string]bool{}
	newFrom := 0
	for i, raw := range input {
		var item inputItem
		if err := json.Unmarshal(raw, &item); err != nil {
			return 0, fmt.Errorf("input[%d]: %w", i, err)
		}
		switch {
		case isOutput(item.Type):
			if !unanswered[item.CallID] {
				return 0, fmt.Errorf("input[%d]: no tool call found for call_id %s", i, item.CallID)
			}
			if answered[item.CallID] {
				return 0, fmt.Errorf("input[%d]: a second output for call_id %s", i, item.CallID)
			}
			delete(unanswered, item.CallID)
			answered[item.CallID] = true
		case strings.HasSuffix(item.Type, "_call") && item.CallID != "":
			if unanswered[item.CallID] || answered[item.CallID] {
				return 0, fmt.Errorf("input[%d]: a second call with call_id %s", i, item.CallID)
			}
			unanswered[item.CallID] = true
			newFrom = i + 1
		case item.Role == "assistant", item.Type == "reasoning", item.Type == "compaction":
			newFrom = i + 1
		}
	}
	for id := range unanswered {
		return 0, fmt.Errorf("no tool output found for call_id %s", id)
	}
	return newFrom, nil
}
