package agent_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// chatServer answers chat completions from what the messages hold: a call, two
// calls at once, words. It checks that every call has its output behind it.
type chatServer struct {
	t       *testing.T
	replace map[int]http.HandlerFunc

	mu     sync.Mutex // a broken connection orders nothing
	bodies []string
}

// asked keeps the body of a request, and returns what answers in its place, if
// anything does.
func (s *chatServer) asked(body string) http.HandlerFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, body)
	return s.replace[len(s.bodies)]
}

func (s *chatServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Stream   bool
		Messages []struct {
			Role   string
			CallID string                `json:"tool_call_id"`
			Calls  []struct{ ID string } `json:"tool_calls"`
		}
		Tools []struct{ Type string }
	}
	var raw json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&raw); err != nil || json.Unmarshal(raw, &body) != nil || r.URL.Path != "/v1/chat/completions" {
		s.t.Errorf("%s: %v in %s", r.URL.Path, err, raw)
	}
	if replaced := s.asked(string(raw)); replaced != nil {
		replaced(w, r)
		return
	}
	var waiting []string
	outputs := 0
	for i, m := range body.Messages {
		if m.Role == "tool" {
			if len(waiting) == 0 || waiting[0] != m.CallID {
				s.t.Errorf("messages[%d] answers %s, waiting are %v", i, m.CallID, waiting)
				return
			}
			waiting, outputs = waiting[1:], outputs+1
			continue
		}
		if m.Role == "system" && i > 0 {
			s.t.Errorf("messages[%d] is of the system, and not the first", i) // as templates have it
		}
		if len(waiting) > 0 {
			s.t.Errorf("messages[%d]: %v have no output", i, waiting)
		}
		for _, call := range m.Calls {
			waiting = append(waiting, call.ID)
		}
	}
	if body.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, chatStreams[outputs])
		return
	}
	fmt.Fprint(w, chatWholes[outputs])
}

// The answers, by how many outputs there are.
var chatStreams = map[int]string{
	0: `data: {"id":"c1","choices":[{"delta":{"role":"assistant","content":"Look"}}]}

data: {"id":"c1","choices":[{"delta":{"content":"ing.","tool_calls":[{"index":0,"id":"one","type":"function","function":{"name":"read_file","arguments":""}}]}}]}

data: {"id":"c1","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}}]}

data: {"id":"c1","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a\"}"}}]}}]}

data: {"id":"c1","choices":[{"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c1","choices":[],"service_tier":"flex","usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}

data: [DONE]

`,
	1: `data: {"id":"c2","choices":[{"delta":{"tool_calls":[{"index":0,"id":"two","function":{"name":"read_file","arguments":"{}"}},{"index":1,"id":"three","function":{"name":"read_file","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

`,
	3: "data: {\"id\":\"c3\",\"choices\":[{\"delta\":{\"content\":\"Done.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
}

var chatWholes = map[int]string{
	0: `{"id":"c1","choices":[{"message":{"content":"Looking.","tool_calls":[{"id":"one","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]},"finish_reason":"tool_calls"}],
		"usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}},"service_tier":"flex"}`,
	1: `{"id":"c2","choices":[{"message":{"tool_calls":[{"id":"two","function":{"name":"read_file","arguments":"{}"}},{"id":"three","function":{"name":"read_file","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
	3: `{"id":"c3","choices":[{"message":{"content":"Done."},"finish_reason":"stop"}]}`,
}

func chatting(t *testing.T) (fixture, *chatServer) {
	t.Helper()
	s := &chatServer{t: t, replace: map[int]http.HandlerFunc{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	api, err := chat.New(model.Endpoint{BaseURL: server.URL + "/v1", APIKey: "sk-test", Idle: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	f := converse(t, "version: 1\nturns: [{output: []}]\n")
	f.Model = &model.Retrying{Next: api, FirstPause: time.Microsecond}
	f.Settings.Tools = []json.RawMessage{
		json.RawMessage(`{"type":"function","name":"read_file","description":"Reads.","strict":false,"parameters":{"type":"object"}}`),
		json.RawMessage(`{"type":"custom","name":"apply_patch","description":"x","format":{}}`),
	}
	f.mustTell(t, "The task.")
	return f, s
}

func TestChatCompletions(t *testing.T) {
	t.Parallel()
	for name, whole := range map[string]bool{"streamed": false, "in one piece": true} {
		t.Run(name, func(t *testing.T) {
			f, server := chatting(t)
			f.Settings.NoStream, f.Settings.Effort, f.Settings.MaxOutputTokens = whole, "low", 99
			f.Settings.ServiceTier = "flex"
			f.mustSay(t, "Done.")
			want := []tools.Call{
				{ID: "one", Number: 1, Turn: 1, Name: "read_file", Input: `{"file_path":"a"}`}, {ID: "two", Number: 2, Turn: 2, Name: "read_file", Input: "{}"}, {ID: "three", Number: 3, Turn: 2, Name: "read_file", Input: "{}"},
			}
			if diff := cmp.Diff(want, f.box.asked); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			// The second and the third answer don't tell theirs.
			if got := f.Spent().Usage; got.Input < 100 || got.Cached != 3 || got.Output < 10 || got.Reasoning != 2 {
				t.Errorf("usage %+v", got)
			}
			if log := f.text(t); strings.Count(log, `"reasoning":2,"service_tier":"flex"`) != 1 {
				t.Errorf("the tier of the first answer is not told:\n%s", log)
			}
			for _, part := range []string{
				`{"role":"system","content":"Work.\n\nThe task."}`, `"reasoning_effort":"low"`, `"max_completion_tokens":99`,
				`{"role":"assistant","content":"Looking.","tool_calls":[{"id":"one","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]}`,
				`{"role":"tool","content":"hello","tool_call_id":"one"}`,
			} {
				if !strings.Contains(server.bodies[1], part) {
					t.Errorf("the second request lacks %s:\n%s", part, server.bodies[1])
				}
			}
			if strings.Contains(server.bodies[1], "apply_patch") {
				t.Errorf("a tool that is no function is offered:\n%s", server.bodies[1])
			}
			f.recordedAsSent(t, server.bodies)
		})
	}
}

// recordedAsSent checks the digests of the requests, and that the transcript
// makes the same ones up.
func (f fixture) recordedAsSent(t *testing.T, bodies []string) {
	t.Helper()
	var digests, again []string
	rebuilt := model.RequestRebuilder{Body: chat.Body}
	for _, event := range f.events(t) {
		var data struct {
			SHA256, ID    string
			Settings      json.RawMessage
			Input, Output []json.RawMessage
		}
		if err := json.Unmarshal(event.Data, &data); err != nil {
			t.Fatal(err)
		}
		switch event.Type {
		case transcript.TypeModelRequest:
			digest, err := rebuilt.Request(data.Settings, data.Input)
			if err != nil {
				t.Fatal(err)
			}
			digests, again = append(digests, data.SHA256), append(again, digest)
		case transcript.TypeModelResponse:
			rebuilt.Response(data.Output)
		}
	}
	var want []string
	for _, body := range bodies {
		want = append(want, fmt.Sprintf("%x", sha256.Sum256([]byte(body))))
	}
	if diff := cmp.Diff(want, digests); diff != "" {
		t.Errorf("digests in the transcript (-sent +recorded):\n%s", diff)
	}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("digests of what the transcript makes up (-sent +made):\n%s", diff)
	}
}

func TestChatHasOneSystemMessage(t *testing.T) {
	t.Parallel()
	f, server := chatting(t)
	for range 2 {
		f.mustSay(t, "Done.")
		f.mustTell(t, "You ended.")
	}
	if want := `{"role":"user","content":"[From the runner] You ended."}`; !strings.HasSuffix(server.bodies[3], want+"]}") {
		t.Errorf("the last request does not end with %s: %s", want, server.bodies[3])
	}
}

func TestChatReadsContentInParts(t *testing.T) {
	t.Parallel()
	f, server := chatting(t)
	server.replace[1] = stream(`data: {"id":"c1","choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]}}]}` + "\n\n" +
		`data: {"id":"c1","choices":[{"delta":{"content":[{"type":"text","text":"All "},{"type":"text","text":"is well."}]}}]}` + "\n\n" +
		`data: {"id":"c1","choices":[{"delta":{"content":" Done."},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	f.mustSay(t, "All is well. Done.")
}

// TestChatReturnsExtrasOfCalls makes a call as Gemini does, which refuses calls that
// come back without the signature that they came with.
func TestChatReturnsExtrasOfCalls(t *testing.T) {
	t.Parallel()
	const extra = `"extra_content":{"google":{"thought_signature":"AbC+/="}}`
	f, server := chatting(t)
	server.replace[1] = stream(`data: {"id":"c1","choices":[{"delta":{"tool_calls":[{"index":0,"id":"one","type":"function",` + extra +
		`,"function":{"name":"read_file","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n")
	f.mustSay(t, "Done.")
	want := `"tool_calls":[{"id":"one","type":"function","function":{"name":"read_file","arguments":"{}"},` + extra + `}]`
	for _, body := range server.bodies[1:] {
		if strings.Count(body, "extra_content") != 1 || !strings.Contains(body, want) {
			t.Errorf("the request lacks %s: %s", want, body)
		}
	}
}

// TestChatReturnsThoughts answers with thoughts: DeepSeek and Kimi refuse calls
// that come back without the thoughts that they came with.
func TestChatReturnsThoughts(t *testing.T) {
	t.Parallel()
	const call = `"tool_calls":[{"index":0,"id":"one","type":"function","function":{"name":"read_file","arguments":"{}"}}]`
	for name, first := range map[string]http.HandlerFunc{
		"in one piece": answer(200, "", `{"id":"c1","choices":[{"message":{"content":"","reasoning_content":"Hm. I look.",`+call+`},"finish_reason":"tool_calls"}]}`),
		"streamed": stream(`data: {"id":"c1","choices":[{"delta":{"content":null,"reasoning_content":"Hm. "}}]}` + "\n\n" +
			`data: {"id":"c1","choices":[{"delta":{"reasoning_content":"I look."}}]}` + "\n\n" +
			`data: {"id":"c1","choices":[{"delta":{` + call + `},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"),
	} {
		f, server := chatting(t)
		server.replace[1] = first
		if said, err := f.Run(t.Context()); err != nil || said != "Done." {
			t.Fatalf("%s: Run = %q, %v", name, said, err)
		}
		const want = `{"role":"assistant","content":null,"reasoning_content":"Hm. I look.","tool_calls":[{"id":"one",`
		for _, body := range server.bodies[1:] {
			if strings.Count(body, "reasoning_content") != 1 || !strings.Contains(body, want) {
				t.Errorf("%s: the request lacks %s: %s", name, want, body)
			}
		}
	}
}

// TestChatSendsArgumentsAsObject makes calls whose arguments are none: vLLM and
// others refuse a history with such calls for good.
func TestChatSendsArgumentsAsObject(t *testing.T) {
	t.Parallel()
	for arguments, sent := range map[string]string{
		`{"a":1}`: `{"a":1}`, "": "{}", " ": "{}", `{"a":`: `{"malformed":"{\"a\":"}`, `"a"`: `{"malformed":"\"a\""}`, `"{\"a\":1}"`: `{"a":1}`, "null": `{"malformed":"null"}`,
	} {
		f, server := chatting(t)
		f.Settings.NoStream = true
		server.replace[1] = answer(200, "", fmt.Sprintf(`{"id":"c1","choices":[{"message":{"tool_calls":[{"id":"one","function":{"name":"read_file","arguments":%q}}]},"finish_reason":"tool_calls"}]}`, arguments))
		f.mustSay(t, "Done.")
		if want := fmt.Sprintf(`"name":"read_file","arguments":%q`, sent); !strings.Contains(server.bodies[1], want) {
			t.Errorf("%s: the second request lacks %s: %s", arguments, want, server.bodies[1])
		}
	}
}

func TestChatAdaptsToEndpointWithoutStreams(t *testing.T) {
	t.Parallel()
	f, server := chatting(t)
	server.replace[1], server.replace[2] = answer(200, "", chatWholes[0]), answer(200, "", chatWholes[1])
	if said, err := f.Run(t.Context()); err != nil || said != "Done." || len(f.box.asked) != 3 || len(server.bodies) != 3 {
		t.Errorf("Run = %q, %v after %d calls and %d requests", said, err, len(f.box.asked), len(server.bodies))
	}
}

func TestChatDistinguishesCalls(t *testing.T) {
	t.Parallel()
	chunk := func(calls string) string {
		return `data: {"id":"c2","choices":[{"delta":{"tool_calls":[` + calls + `]}}]}` + "\n\n"
	}
	last := `data: {"id":"c2","choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	for name, events := range map[string]string{
		"all have one number": chunk(`{"index":0,"id":"two","function":{"name":"read_file","arguments":"{}"}}`) +
			chunk(`{"index":0,"id":"three","function":{"name":"read_file","arguments":""}}`) + chunk(`{"index":0,"function":{"arguments":"{}"}}`),
		"every piece has an id": chunk(`{"index":0,"id":"zzz","function":{"name":"read_file"}}`) + chunk(`{"index":0,"id":"two","function":{"arguments":"{}"}}`) +
			chunk(`{"index":1,"id":"three","function":{"name":"read_file","arguments":"{}"}}`),
		"numbers without order": chunk(`{"index":5,"id":"two","function":{"name":"read_file"}}`) + chunk(`{"index":2,"id":"three","function":{"name":"read_file"}}`) +
			chunk(`{"index":5,"function":{"arguments":"{}"}},{"index":2,"function":{"arguments":"{}"}}`),
		"no numbers, in pieces": chunk(`{"id":"two","function":{"name":"read_file","arguments":"{"}}`) + chunk(`{"function":{"arguments":"}"}}`) +
			chunk(`{"id":"three","function":{"name":"read_file","arguments":"{}"}}`),
		"all in each piece": chunk(`{"id":"two","function":{"name":"read_file","arguments":"{"}}`) + chunk(`{"id":"two","function":{"name":"read_file","arguments":"}"}}`) +
			chunk(`{"index":1,"id":"three","function":{"name":"read_file","arguments":"{"}}`) + chunk(`{"index":1,"id":"three","function":{"name":"read_file","arguments":"}"}}`),
		"arguments as an object": chunk(`{"index":0,"id":"two","function":{"name":"read_file","arguments":{}}},{"index":1,"id":"three","function":{"name":"read_file","arguments":null}}`) +
			chunk(`{"index":1,"function":{"arguments":{}}}`),
		"no numbers": chunk(`{"id":"two","function":{"name":"read_file","arguments":"{}"}},{"id":"three","function":{"name":"read_file","arguments":"{}"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			f, server := chatting(t)
			server.replace[2] = stream(events + last)
			f.mustSay(t, "Done.")
			var ids []string
			for _, call := range f.box.asked {
				ids = append(ids, call.ID+call.Input)
			}
			if diff := cmp.Diff([]string{`one{"file_path":"a"}`, "two{}", "three{}"}, ids); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChatNumbersCallsWithoutIDs has calls told apart, and given ids of their own.
func TestChatNumbersCallsWithoutIDs(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string]string{
		"none":              `{"function":{"name":"read_file","arguments":"{}"}},{"function":{"name":"read_file","arguments":"{}"}}`,
		"none and no other": `{"index":0,"id":"","function":{"name":"read_file","arguments":"{}"}},{"index":0,"id":"","function":{"name":"read_file","arguments":"{}"}}`,
		"the same":          `{"index":0,"id":"same","function":{"name":"read_file","arguments":"{}"}},{"index":1,"id":"same","function":{"name":"read_file","arguments":"{}"}}`,
	} {
		f, server := chatting(t)
		server.replace[1] = stream(`data: {"id":"c2","choices":[{"delta":{"tool_calls":[` + calls + `]}}]}` + "\n\ndata: [DONE]\n\n")
		server.replace[2] = stream(chatStreams[3])
		if said, err := f.Run(t.Context()); err != nil || said != "Done." || len(f.box.asked) != 2 || f.box.asked[0].ID == f.box.asked[1].ID || f.box.asked[0].ID == "" {
			t.Errorf("%s: Run = %q, %v after %+v", name, said, err, f.box.asked)
		}
	}
}

func TestChatRetriesTemporaryFailures(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"500":             answer(500, "", "<html>"),
		"429":             answer(429, "Retry-After-Ms: 1", `{"error":{"message":"later"}}`),
		"stream ends":     stream("data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"Lo\"}}]}\n\n"),
		"length":          stream("data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"Lo\"},\"finish_reason\":\"length\"}]}\n\n"),
		"error in chunk":  stream("data: {\"error\":{\"code\":\"server_error\",\"message\":\"x\"}}\n\n"),
		"connection lost": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		for turn := 1; turn <= 3; turn++ {
			t.Run(fmt.Sprintf("%s at turn %d", name, turn), func(t *testing.T) {
				f, server := chatting(t)
				server.replace[turn] = handler
				if said, err := f.Run(t.Context()); err != nil || said != "Done." || len(f.box.asked) != 3 {
					t.Fatalf("Run = %q, %v after %d calls", said, err, len(f.box.asked))
				}
			})
		}
	}
}

// TestChatSurvivesStreamCutAtAnyChunk cuts each answer after each of its chunks, and
// has it fall silent there.
func TestChatSurvivesStreamCutAtAnyChunk(t *testing.T) {
	t.Parallel()
	for turn, outputs := range []int{0, 1, 3} {
		chunks := strings.SplitAfter(chatStreams[outputs], "\n\n")
		for n := range chunks {
			f, server := chatting(t)
			server.replace[turn+1] = stream(strings.Join(chunks[:n], ""))
			said, err := f.Run(t.Context())
			if err != nil || said != "Done." || len(f.box.asked) != 3 {
				t.Fatalf("turn %d cut after %d chunks: Run = %q, %v after %d calls", turn+1, n, said, err, len(f.box.asked))
			}
		}
	}
}

func TestChatShowsTheImagesOfTheTask(t *testing.T) {
	t.Parallel()
	f, server := chatting(t)
	f.Add(json.RawMessage(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."},{"type":"input_image","image_url":"data:image/png;base64,cG5n","detail":"auto"}]}`))
	f.mustRun(t)
	want := `{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]}`
	if !strings.Contains(server.bodies[0], want) {
		t.Errorf("the request lacks %s:\n%s", want, server.bodies[0])
	}
}

func TestChatShowsImagesBehindTheOutputs(t *testing.T) {
	t.Parallel()
	f, server := chatting(t)
	f.box.answers["read_file"] = tools.Result{Output: "a picture", Images: []tools.Image{{MediaType: "image/png", Data: []byte("png")}}}
	f.mustSay(t, "Done.")
	one := `{"role":"tool","content":"a picture","tool_call_id":"one"},{"role":"user","content":[{"type":"text","text":"What the call one shows:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]}`
	if !strings.Contains(server.bodies[1], one) {
		t.Errorf("the image is not in\n%s", server.bodies[1])
	}
	// The outputs of one answer follow each other; the server checks it.
	if n := strings.Count(server.bodies[2], `"image_url":{`); n != 3 {
		t.Errorf("%d images, want 3, in\n%s", n, server.bodies[2])
	}
}

func TestChatEndsOnPermanentFailures(t *testing.T) {
	t.Parallel()
	for reason, handler := range map[string]http.HandlerFunc{
		"unauthorized": answer(401, "", `{"error":{"message":"bad key"}}`),
		"quota":        answer(429, "", `{"error":{"message":"pay","code":"insufficient_quota"}}`),
		"malformed":    stream("data: {oops}\n\n"),
		"refused":      stream("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n"),
	} {
		f, server := chatting(t)
		server.replace[1] = handler
		if _, err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), reason) || len(server.bodies) != 1 {
			t.Errorf("%s: Run ended in %v after %d requests", reason, err, len(server.bodies))
		}
	}
}
