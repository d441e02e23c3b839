package agent_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat/chattest"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/agent/model/responses"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// wires are both ways to ask a model. What an endpoint does is tried on each.
var wires = []string{"responses", "chat"}

// odd is an endpoint that gives answers as they are written, and refuses conversations in which
// calls and outputs don't pair up by ids that come once.
type odd struct {
	t       *testing.T
	answers []http.HandlerFunc

	mu     sync.Mutex
	bodies []string
}

func (s *odd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	must.Same(s.t, "Bearer sk-odd", r.Header.Get("Authorization"), "the key")
	s.mu.Lock()
	s.bodies = append(s.bodies, string(raw))
	n := len(s.bodies) - 1
	s.mu.Unlock()
	if fault := unpaired(raw); fault != "" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error"}}`, fault)
		return
	}
	if n >= len(s.answers) {
		s.t.Errorf("request %d is one too many", n+1)
		w.WriteHeader(http.StatusTeapot)
		return
	}
	s.answers[n](w, r)
}

// unpaired is why the API refuses a conversation; empty for none.
func unpaired(body []byte) string {
	var sent struct{ Input []json.RawMessage }
	err := json.Unmarshal(body, &sent)
	if err == nil {
		_, err = modeltest.CheckPairs(sent.Input)
	}
	if err != nil {
		return err.Error()
	}
	return chattest.Fault(body)
}

// oddly is a conversation with an endpoint that gives these answers.
func oddly(t *testing.T, wire string, answers ...http.HandlerFunc) (fixture, *odd) {
	t.Helper()
	s := &odd{t: t, answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	at := model.Endpoint{BaseURL: server.URL + "/v1", APIKey: "sk-odd", IdleLimit: time.Hour}
	f := converse(t, "version: 1\nturns: [{output: []}]\n")
	f.ask(t, wire, at)
	f.mustTell(t, "The task.")
	return f, s
}

// ask has a conversation ask an endpoint over a wire.
func (f fixture) ask(t *testing.T, wire string, at model.Endpoint) {
	t.Helper()
	retrying := &model.Retrying{FirstPause: time.Microsecond}
	api, err := responses.New(at)
	retrying.Next = api
	if wire == "chat" {
		retrying.Next, err = chat.New(at)
	}
	must.Do(t, err)
	retrying.Report = f.RecordRetried
	f.Model = retrying
}

// calling is an answer with calls of read_file, which have these ids as JSON, "" for none.
func calling(wire string, ids ...string) http.HandlerFunc {
	var items []string
	for n, id := range ids {
		arguments := fmt.Sprintf(`"{\"file_path\":\"%d\"}"`, n)
		switch {
		case wire == "chat" && id == "":
			items = append(items, fmt.Sprintf(`{"index":%d,"type":"function","function":{"name":"read_file","arguments":%s}}`, n, arguments))
		case wire == "chat":
			items = append(items, fmt.Sprintf(`{"index":%d,"id":%s,"type":"function","function":{"name":"read_file","arguments":%s}}`, n, id, arguments))
		case id == "":
			items = append(items, fmt.Sprintf(`{"type":"function_call","name":"read_file","arguments":%s}`, arguments))
		default:
			items = append(items, fmt.Sprintf(`{"type":"function_call","call_id":%s,"name":"read_file","arguments":%s}`, id, arguments))
		}
	}
	if wire == "chat" {
		return stream(`data: {"id":"c","choices":[{"delta":{"tool_calls":[` + strings.Join(items, ",") + "]}}]}\n\n" + finish("tool_calls"))
	}
	return answering(items...)
}

// finish ends a stream of the chat wire.
func finish(reason string) string {
	return `data: {"id":"c","choices":[{"delta":{},"finish_reason":"` + reason + "\"}]}\n\ndata: [DONE]\n\n"
}

// answering is an answer of the Responses API with these items.
func answering(items ...string) http.HandlerFunc {
	var events strings.Builder
	for _, item := range items {
		events.WriteString(`data: {"type":"response.output_item.done","item":` + item + "}\n\n")
	}
	return stream(events.String() + completed)
}

const completed = `data: {"type":"response.completed","response":{"id":"resp","status":"completed","output":[]}}` + "\n\n"

// saying is an answer of words.
func saying(wire, text string) http.HandlerFunc {
	if wire == "chat" {
		return stream(`data: {"id":"c","choices":[{"delta":{"content":"` + text + "\"}}]}\n\n" + finish("stop"))
	}
	return answering(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}`)
}

// ids are those of the calls that were run.
func (f fixture) ids() (ids []string) {
	for _, call := range f.box.asked {
		ids = append(ids, call.ID)
	}
	return ids
}

// TestGivesCallsUniqueIDs plays Kimi and MiMo behind proxies: https://github.com/can1357/oh-my-pi/issues/2055
func TestGivesCallsUniqueIDs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers [][]string
		want    []string
	}{
		"the same in three answers": {[][]string{{`"terminal:0"`}, {`"terminal:0"`}, {`"terminal:0"`}}, []string{"terminal:0", "call_2_1", "call_3_1"}},
		"the same in one answer":    {[][]string{{`"a"`, `"a"`}, {`"b"`}}, []string{"a", "call_1_2", "b"}},
		"none":                      {[][]string{{"", ""}, {""}}, []string{"call_1_1", "call_1_2", "call_2_1"}},
		"empty":                     {[][]string{{`""`, `""`}, {`"x"`}}, []string{"call_1_1", "call_1_2", "x"}},
		"null and numbers":          {[][]string{{`null`}}, []string{"call_1_1"}},
		"ours, given by the server": {[][]string{{`"call_2_1"`}, {`"call_2_1"`}}, []string{"call_2_1", "call_2_1_2"}},
		"unique ones stay":          {[][]string{{`"a:1"`}, {`"b/2"`}}, []string{"a:1", "b/2"}},
	} {
		for _, wire := range wires {
			t.Run(name+" on "+wire, func(t *testing.T) {
				t.Parallel()
				var answers []http.HandlerFunc
				for _, ids := range c.answers {
					answers = append(answers, calling(wire, ids...))
				}
				f, server := oddly(t, wire, append(answers, saying(wire, "Done."))...)
				f.mustSay(t, "Done.")
				must.Same(t, c.want, f.ids(), "calls")
				for _, id := range c.want {
					must.Same(t, 2, strings.Count(server.bodies[len(server.bodies)-1], fmt.Sprintf("%q", id)), "the last request", id, "not in a call and its output")
				}
				f.rebuilds(t, wire, server.bodies)
			})
		}
	}
}

// rebuilds checks that the transcript has all requests, and makes each of them up as it was sent.
func (f fixture) rebuilds(t *testing.T, wire string, sent []string) {
	t.Helper()
	rebuilt := model.RequestRebuilder{}
	if wire == "chat" {
		rebuilt.Model = new(chat.Client)
	}
	digests, recorded := map[string]bool{}, map[string]bool{}
	for _, body := range sent {
		digests[fmt.Sprintf("%x", sha256.Sum256([]byte(body)))] = true
	}
	for _, e := range f.events(t) {
		var d struct {
			SHA256               string
			Settings             json.RawMessage
			Input, Output, Items []json.RawMessage
		}
		must.Do(t, json.Unmarshal(e.Data, &d))
		switch e.Type {
		case transcript.TypeModelRequest:
			must.Same(t, d.SHA256, must.Get(rebuilt.Request(d.Settings, d.Input))(t), len(recorded)+1, "is not what the transcript tells")
			recorded[d.SHA256] = true
		case transcript.TypeModelResponse:
			rebuilt.Response(d.Output)
		case transcript.TypeCompaction:
			rebuilt.Compaction(d.Items)
		}
	}
	must.Same(t, digests, recorded, "digests")
}

// TestResumeKeepsCallIDs restarts a run after each of its events.
func TestResumeKeepsCallIDs(t *testing.T) {
	t.Parallel()
	for _, wire := range wires {
		one := func() http.HandlerFunc { return calling(wire, `"terminal:0"`) }
		f, _ := oddly(t, wire, one(), one(), one(), saying(wire, "Done."))
		f.mustRun(t)
		events := f.events(t)
		for upTo := 1; upTo < len(events); upTo++ {
			p := pastOf(t, events[:upTo]...)
			answered := p.Turns()
			if events[upTo-1].Type == transcript.TypeModelRequest {
				answered--
			}
			again, server := oddly(t, wire, []http.HandlerFunc{one(), one(), one(), saying(wire, "Done.")}[answered:]...)
			again.mustResume(t, p, 0)
			must.Do(t, must.Err(again.Run(t.Context())), wire, upTo)
			must.Same(t, 2, strings.Count(server.bodies[len(server.bodies)-1], `"terminal:0"`), wire, upTo, "the last request")
		}
	}
}
