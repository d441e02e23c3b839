// Package modeltest serves scripted sessions over HTTP with server-sent events, like the Responses
// API, for tests and benchmarks. Like the API it checks that each request fits the published schema
// and that each call has an output.
package modeltest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/scripted"
)

// Options configure a server.
type Options struct {
	Key string // the accepted API key; empty accepts any
	// Trusting turns off the check by the published schema, for measurements: its time grows with the history.
	Trusting bool
	// Compacts adds POST /v1/responses/compact, which answers with one opaque item.
	Compacts bool
	// Usage is the usage of answers that have none in the script. If it is zero, it is estimated from the length of
	// the request.
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
	cutAfter  map[int]int     // number of events after which a request's answer is cut, by request number
	cutAnswer *model.Response // the last answer if it was cut; the next request gets it again
	compact   int             // number of compactions
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

// Session writes a session to a file and returns its path.
func Session(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session.yml")
	must.Write(t, path, content)
	return path
}

// StartScript serves the session in r. name is its name in errors. The caller closes the server.
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

// Replace makes h answer request n (from 1) instead of the script.
func (s *Server) Replace(n int, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replace[n] = h
}

// Cut breaks the connection of request n (from 1) after this number of events. The next request gets the same answer
// again, unless it contains the output of a call in that answer.
func (s *Server) Cut(n, events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutAfter[n] = events
}

// Compactions returns how often the server has compacted a conversation.
func (s *Server) Compactions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compact
}

// Requests returns all requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Faults describes the invalid requests so far, and the answers that no request has asked for.
func (s *Server) Faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := append([]string(nil), s.faults...)
	if turnsLeft := s.script.TurnsLeft(); turnsLeft > 0 {
		faults = append(faults, fmt.Sprintf("%d scripted answers were not asked for", turnsLeft))
	}
	return faults
}

// serve answers a request with its replacement (see Replace), a compaction, an error or the script's next answer.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	number, replacement := s.record(r, raw)
	if replacement != nil {
		replacement(w, r)
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
		s.addFault(fmt.Sprintf("request %d: %v", number, err))
		refuse(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	answer, cutAfter, err := s.answer(r, raw, request, number)
	if err != nil {
		s.refuse(w, number, err)
		return
	}
	if answer.Usage.Total() == 0 {
		answer.Usage = s.options.Usage
	}
	if answer.Usage.Total() == 0 {
		answer.Usage.Input = leastTokens(raw)
	}
	if request.Settings.NoStream {
		writeJSON(w, http.StatusOK, response(answer, answer.Status, answer.Output))
		return
	}
	s.stream(w, answer, cutAfter)
}

// leastTokens returns a low estimate of a request's tokens, for sessions without usage.
func leastTokens(request []byte) int64 { return int64(len(request))/1024 + 1 }

// stream sends an answer as events. It breaks off after cutAfter events, if that is not 0, and keeps the answer for
// the next request.
func (s *Server) stream(w http.ResponseWriter, answer *model.Response, cutAfter int) {
	s.mu.Lock()
	if cutAfter > 0 {
		s.cutAnswer = answer
	}
	s.mu.Unlock()
	writeEvents(w, answer, cutAfter) // panics if it breaks off
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cutAnswer == answer { // there were no more events
		s.cutAnswer = nil
	}
}

// answer returns the script's next answer. If the last answer was cut off and the request does not continue from it,
// answer returns that one again. cutAfter is the number of events after which to cut the answer off, or 0 for never. raw
// is the request's body, number its number.
func (s *Server) answer(r *http.Request, raw []byte, request model.Request, number int) (answer *model.Response, cutAfter int, err error) {
	if own := s.scriptOf(raw); own != nil {
		own.mu.Lock()
		defer own.mu.Unlock()
		answer, err = own.script.Respond(r.Context(), request, model.NoObserver{})
		return answer, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer = s.cutAnswer
	if answer == nil || continuesFrom(request, answer) {
		answer, err = s.script.Respond(r.Context(), request, model.NoObserver{})
	}
	s.cutAnswer = nil
	return answer, s.cutAfter[number], err
}

// isOutput reports whether an item of this type is the output of a call.
func isOutput(itemType string) bool {
	return strings.HasSuffix(itemType, "_call_output") || itemType == "tool_search_output"
}

// continuesFrom reports whether a request contains the output of a call in the answer cut.
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

// serveCompact answers with all messages except the model's, and one item that stands for everything else.
func (s *Server) serveCompact(w http.ResponseWriter, raw []byte) {
	var body struct {
		Input []json.RawMessage `json:"input"`
	}
	err := json.Unmarshal(raw, &body)
	if err == nil {
		_, err = CheckPairs(body.Input)
	}
	if err == nil && !s.options.Trusting {
		err = compactSchema().validate(raw)
	}
	if err != nil {
		s.addFault(fmt.Sprintf("compaction: %v", err))
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

// messagesIn returns the messages among the items, except the model's.
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

// record keeps a request. It returns the request's number, from 1, and the handler that replaces its answer, or nil.
func (s *Server) record(r *http.Request, raw []byte) (number int, replacement http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{r.Header.Clone(), raw})
	return len(s.requests), s.replace[len(s.requests)]
}

// addFault adds a text to Faults.
func (s *Server) addFault(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, text)
}

// refuse answers a request with the HTTP error for err. A mismatch with the script is also added to Faults.
func (s *Server) refuse(w http.ResponseWriter, number int, err error) {
	failure, isFailure := err.(*model.Failure)
	if !isFailure {
		refuse(w, http.StatusInternalServerError, "server_error", err.Error())
		return
	}
	if failure.Kind == model.ScriptMismatch {
		s.addFault(fmt.Sprintf("request %d: %v", number, err))
	}
	status := cmp.Or(failure.Status, http.StatusBadRequest)
	refuse(w, status, failure.Code, failure.Message)
}

// refuse writes an error in the API's form.
func refuse(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]any{"error": map[string]any{
		"message": message, "type": "invalid_request_error", "code": code, "param": nil,
	}})
}

// check returns the request in raw, or an error if the API would refuse it. The items after the model's last one
// count as new.
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
	firstNew, err := CheckPairs(body.Input)
	if err != nil {
		return model.Request{}, err
	}
	return model.Request{Settings: model.Settings{NoStream: !body.Stream}, History: body.Input, FirstNew: firstNew}, nil
}

type inputItem struct {
	Type   string `json:"type"`
	Role   string `json:"role"`
	CallID string `json:"call_id"`
}

// CheckPairs returns an error unless every call has one output after it. firstNew is the index after the model's
// last item.
func CheckPairs(input []json.RawMessage) (firstNew int, err error) {
	unanswered := map[string]bool{}
	answered := map[string]bool{}
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
			firstNew = i + 1
		case item.Role == "assistant", item.Type == "reasoning", item.Type == "compaction":
			firstNew = i + 1
		}
	}
	for id := range unanswered {
		return 0, fmt.Errorf("no tool output found for call_id %s", id)
	}
	return firstNew, nil
}
