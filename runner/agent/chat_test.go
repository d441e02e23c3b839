package agent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/tools"
)

// The answers, in events.
var chatStreams = []string{
	`data: {"id":"c1","choices":[{"delta":{"role":"assistant","content":"Look"}}]}

data: {"id":"c1","choices":[{"delta":{"content":"ing.","tool_calls":[{"index":0,"id":"one","type":"function","function":{"name":"read_file","arguments":""}}]}}]}

data: {"id":"c1","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}}]}

data: {"id":"c1","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a\"}"}}]}}]}

data: {"id":"c1","choices":[{"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c1","choices":[],"service_tier":"flex","usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}

data: [DONE]

`,
	`data: {"id":"c2","choices":[{"delta":{"tool_calls":[{"index":0,"id":"two","function":{"name":"read_file","arguments":"{}"}},{"index":1,"id":"three","function":{"name":"read_file","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

`,
	"data: {\"id\":\"c3\",\"choices\":[{\"delta\":{\"content\":\"Done.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
}

// chatWholes are the same answers, each in one piece.
var chatWholes = []string{
	`{"id":"c1","choices":[{"message":{"content":"Looking.","tool_calls":[{"id":"one","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]},"finish_reason":"tool_calls"}],
		"usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}},"service_tier":"flex"}`,
	`{"id":"c2","choices":[{"message":{"tool_calls":[{"id":"two","function":{"name":"read_file","arguments":"{}"}},{"id":"three","function":{"name":"read_file","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
	`{"id":"c3","choices":[{"message":{"content":"Done."},"finish_reason":"stop"}]}`,
}

// streamed are the answers in events, one a request.
func streamed() (all []http.HandlerFunc) {
	for _, events := range chatStreams {
		all = append(all, stream(events))
	}
	return all
}

// chatting is a conversation over Chat Completions: a call, two calls at once, words. In their place
// it gets other answers, if there are any.
func chatting(t *testing.T, answers ...http.HandlerFunc) (fixture, *odd) {
	t.Helper()
	if answers == nil {
		answers = streamed()
	}
	f, server := oddly(t, "chat", answers...)
	f.Settings.Tools = []json.RawMessage{
		json.RawMessage(`{"type":"function","name":"read_file","description":"Reads.","strict":false,"parameters":{"type":"object"}}`),
		json.RawMessage(`{"type":"custom","name":"apply_patch","description":"x","format":{}}`),
	}
	return f, server
}

func TestChatRunsWholeConversation(t *testing.T) {
	t.Parallel()
	whole := []http.HandlerFunc{answer(200, "", chatWholes[0]), answer(200, "", chatWholes[1]), answer(200, "", chatWholes[2])}
	for name, answers := range map[string][]http.HandlerFunc{"streamed": streamed(), "in one piece": whole, "in the place of a stream": whole} {
		t.Run(name, func(t *testing.T) {
			f, server := chatting(t, answers...)
			f.Settings.NoStream, f.Settings.Effort, f.Settings.MaxOutputTokens = name == "in one piece", "low", 99
			f.Settings.ServiceTier = "flex"
			f.mustSay(t, "Done.")
			want := []tools.Call{
				{ID: "one", Number: 1, Turn: 1, Name: "read_file", Input: `{"file_path":"a"}`}, {ID: "two", Number: 2, Turn: 2, Name: "read_file", Input: "{}"}, {ID: "three", Number: 3, Turn: 2, Name: "read_file", Input: "{}"},
			}
			must.Same(t, want, f.box.asked, "calls")
			// The second and the third answer don't tell theirs.
			if got := f.Spent().Usage; got.Input < 100 || got.Cached != 3 || got.Output < 10 || got.Reasoning != 2 {
				t.Errorf("usage %+v", got)
			}
			must.Same(t, 1, strings.Count(f.text(t), `"reasoning":2,"service_tier":"flex"`), "the tier of the first answer is not told")
			must.Contain(t, server.bodies[1],
				`{"role":"system","content":"Work.\n\nThe task."}`, `"reasoning_effort":"low"`, `"max_completion_tokens":99`,
				`{"role":"assistant","content":"Looking.","tool_calls":[{"id":"one","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]}`,
				`{"role":"tool","content":"hello","tool_call_id":"one"}`,
			)
			must.Lack(t, server.bodies[1], "apply_patch")
			f.rebuilds(t, "chat", server.bodies)
		})
	}
}

func TestChatReadsContentInParts(t *testing.T) {
	t.Parallel()
	f, _ := chatting(t, stream(`data: {"id":"c1","choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]}}]}`+"\n\n"+
		`data: {"id":"c1","choices":[{"delta":{"content":[{"type":"text","text":"All "},{"type":"text","text":"is well."}]}}]}`+"\n\n"+
		`data: {"id":"c1","choices":[{"delta":{"content":" Done."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n"))
	f.mustSay(t, "All is well. Done.")
}

// TestChatReturnsPartsOfCalls has calls come back as they came: Gemini refuses those without their signature, DeepSeek
// and Kimi those without the thoughts of their answer.
func TestChatReturnsPartsOfCalls(t *testing.T) {
	t.Parallel()
	const extra = `"extra_content":{"google":{"thought_signature":"AbC+/="}}`
	const call = `"tool_calls":[{"index":0,"id":"one","type":"function","function":{"name":"read_file","arguments":"{}"}}]`
	const thought = `{"role":"assistant","content":null,"reasoning_content":"Hm. I look.","tool_calls":[{"id":"one",`
	for name, c := range map[string]struct {
		first       http.HandlerFunc
		field, want string
	}{
		"a signature": {
			stream(`data: {"id":"c1","choices":[{"delta":{"tool_calls":[{"index":0,"id":"one","type":"function",` + extra + `,"function":{"name":"read_file","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"),
			"extra_content", `"tool_calls":[{"id":"one","type":"function","function":{"name":"read_file","arguments":"{}"},` + extra + `}]`,
		},
		"thoughts in one piece": {
			answer(200, "", `{"id":"c1","choices":[{"message":{"content":"","reasoning_content":"Hm. I look.",`+call+`},"finish_reason":"tool_calls"}]}`), "reasoning_content", thought,
		},
		"thoughts in a stream": {
			stream(`data: {"id":"c1","choices":[{"delta":{"content":null,"reasoning_content":"Hm. "}}]}` + "\n\n" + `data: {"id":"c1","choices":[{"delta":{"reasoning_content":"I look."}}]}` + "\n\n" +
				`data: {"id":"c1","choices":[{"delta":{` + call + `},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"), "reasoning_content", thought,
		},
	} {
		f, server := chatting(t, slices.Replace(streamed(), 0, 1, c.first)...)
		f.mustSay(t, "Done.")
		for _, body := range server.bodies[1:] {
			must.Same(t, 1, strings.Count(body, c.field), name, "comes back", body)
			must.Contain(t, body, c.want)
		}
	}
}

// TestChatSendsArgumentsAsObject makes calls whose arguments are no object, in which some endpoints break off
// (https://github.com/earendil-works/pi/issues/8501) or wrap it (https://github.com/vllm-project/vllm/issues/54964):
// vLLM and others refuse a history with such calls for good.
func TestChatSendsArgumentsAsObject(t *testing.T) {
	t.Parallel()
	for arguments, sent := range map[string]string{
		`{"a":1}`: `{"a":1}`, "": "{}", " ": "{}", `{"a":`: `{"malformed":"{\"a\":"}`, `"a"`: `{"malformed":"\"a\""}`, `"{\"a\":1}"`: `{"a":1}`, "null": `{"malformed":"null"}`,
	} {
		f, server := chatting(t, answer(200, "", fmt.Sprintf(`{"id":"c1","choices":[{"message":{"tool_calls":[{"id":"one","function":{"name":"read_file","arguments":%q}}]},"finish_reason":"tool_calls"}]}`, arguments)),
			saying("chat", "Done."))
		f.mustSay(t, "Done.")
		if want := fmt.Sprintf(`"name":"read_file","arguments":%q`, sent); !strings.Contains(server.bodies[1], want) {
			t.Errorf("%s: the second request lacks %s: %s", arguments, want, server.bodies[1])
		}
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
		"no numbers":          chunk(`{"id":"two","function":{"name":"read_file","arguments":"{}"}},{"id":"three","function":{"name":"read_file","arguments":"{}"}}`),
		"neither":             chunk(`{"function":{"name":"read_file","arguments":"{}"}},{"function":{"name":"read_file","arguments":"{}"}}`),
		"neither, one number": chunk(`{"index":0,"id":"","function":{"name":"read_file","arguments":"{}"}},{"index":0,"id":"","function":{"name":"read_file","arguments":"{}"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := chatting(t, slices.Replace(streamed(), 1, 2, stream(events+last))...)
			f.mustSay(t, "Done.")
			var ids []string
			for _, call := range f.box.asked {
				ids = append(ids, call.ID+call.Input)
			}
			want := []string{`one{"file_path":"a"}`, "two{}", "three{}"}
			if strings.HasPrefix(name, "neither") {
				want = []string{`one{"file_path":"a"}`, "call_2_1{}", "call_2_2{}"}
			}
			must.Same(t, want, ids, "calls")
		})
	}
}

// TestChatSurvivesStreamCutAtAnyChunk cuts each answer after each of its chunks, and
// has it fall silent there.
func TestChatSurvivesStreamCutAtAnyChunk(t *testing.T) {
	t.Parallel()
	for turn, events := range chatStreams {
		chunks := strings.SplitAfter(events, "\n\n")
		for n := range chunks {
			begun, end := strings.Join(chunks[:n], ""), turn
			if strings.Contains(begun, "finish_reason") { // it is whole
				end++
			}
			f, _ := chatting(t, slices.Replace(streamed(), turn, end, stream(begun))...)
			said, err := f.Run(t.Context())
			if err != nil || said != "Done." || len(f.box.asked) != 3 {
				t.Fatalf("turn %d cut after %d chunks: Run = %q, %v after %d calls", turn+1, n, said, err, len(f.box.asked))
			}
		}
	}
}

// TestChatShowsImages has one in the task, and one behind each output.
func TestChatShowsImages(t *testing.T) {
	t.Parallel()
	f, server := chatting(t)
	f.AddItems(json.RawMessage(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."},{"type":"input_image","image_url":"data:image/png;base64,cG5n","detail":"auto"}]}`))
	f.box.answers["read_file"] = tools.Result{Output: "a picture", Images: []tools.Image{{MediaType: "image/png", Data: []byte("png")}}}
	f.mustSay(t, "Done.")
	one := `{"role":"tool","content":"a picture","tool_call_id":"one"},{"role":"user","content":[{"type":"text","text":"What the call one shows:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]}`
	must.Contain(t, server.bodies[1], one)
	must.Contain(t, server.bodies[0], `{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]}`)
	// The outputs of one answer follow each other; the server checks it.
	must.Same(t, 4, strings.Count(server.bodies[2], `"image_url":{`), server.bodies[2])
}

// TestChatClassifiesAnswers has answers fail in the ways that this wire alone has.
func TestChatClassifiesAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events string
		reason string // of the end; empty where the request is repeated
	}{
		"length":         {`{"id":"c","choices":[{"delta":{"content":"Lo"},"finish_reason":"length"}]}`, ""},
		"error in chunk": {`{"error":{"code":"server_error","message":"x"}}`, ""},
		"no JSON":        {"{oops}", "malformed"},
		"content filter": {`{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`, "refused"},
		"refusal":        {`{"choices":[{"delta":{"refusal":"I can't."},"finish_reason":"stop"}]}`, "refused"},
	} {
		f, server := chatting(t, slices.Insert(streamed(), 1, stream("data: "+c.events+"\n\n"))...)
		said, err := f.Run(t.Context())
		if c.reason == "" && (err != nil || said != "Done." || len(f.box.asked) != 3) || c.reason != "" && (outcometest.Reason(err) != c.reason || len(server.bodies) != 2) {
			t.Errorf("%s: Run = %q, %v after %d requests", name, said, err, len(server.bodies))
		}
	}
}
