// Package chattest serves Chat Completions as well-known endpoints do, with their refusals and their ways to
// word an answer.
package chattest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// completion is a request for a chat completion, as a server reads it.
type completion struct {
	fields   map[string]json.RawMessage
	Messages []struct {
		Role      string
		Content   json.RawMessage
		Thought   *string `json:"reasoning_content"`
		Reasoning *string
		CallID    string `json:"tool_call_id"`
		Calls     []struct {
			ID       string
			Function struct {
				Name      string
				Arguments json.RawMessage
			}
		} `json:"tool_calls"`
	}
	Tools  []struct{ Function struct{ Name string } }
	Stream bool
}

func (c *completion) outputs() (n int) {
	for _, m := range c.Messages {
		if m.Role == "tool" {
			n++
		}
	}
	return n
}

func (c *completion) answers() (n int) {
	for _, m := range c.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// refusal is why a server refuses a request: a status, and an error as it words it. 0 takes it.
type refusal func(c *completion) (status int, body string)

// unknown refuses fields that a server does not know; %s in body is the first.
func unknown(status int, body string, fields ...string) refusal {
	return func(c *completion) (int, string) {
		for _, field := range fields {
			if _, has := c.fields[field]; has {
				return status, strings.ReplaceAll(body, "%s", field)
			}
		}
		return 0, ""
	}
}

// below refuses a request in which a pattern is found.
func below(status int, body, pattern string) refusal {
	find := regexp.MustCompile(pattern)
	return func(c *completion) (int, string) {
		raw, _ := json.Marshal(c.fields)
		if find.Match(raw) {
			return status, body
		}
		return 0, ""
	}
}

// afterOutputs refuses a message of the user right behind outputs.
func afterOutputs(status int, body string) refusal {
	return func(c *completion) (int, string) {
		for i, m := range c.Messages {
			if i > 0 && m.Role == "user" && c.Messages[i-1].Role == "tool" {
				return status, body
			}
		}
		return 0, ""
	}
}

// alternating refuses roles that do not take turns, the user first; outputs count as the user's.
func alternating(status int, body string, several bool) refusal {
	return func(c *completion) (int, string) {
		turn, before := "user", ""
		for _, m := range c.Messages {
			role := strings.Replace(m.Role, "tool", "user", 1)
			if m.Role == "system" || several && m.Role == "tool" && before == "tool" {
				continue
			}
			if role != turn {
				return status, body
			}
			turn, before = map[string]string{"user": "assistant", "assistant": "user"}[turn], m.Role
		}
		return 0, ""
	}
}

func severalCalls(status int, body string) refusal {
	return func(c *completion) (int, string) {
		for _, m := range c.Messages {
			if len(m.Calls) > 1 {
				return status, body
			}
		}
		return 0, ""
	}
}

// withoutThought refuses calls that lack the thought with which the model made them.
func withoutThought(c *completion) (int, string) {
	for i, m := range c.Messages {
		if len(m.Calls) > 0 && (m.Thought == nil || *m.Thought != Thought) {
			return 400, fmt.Sprintf(`{"error":{"message":"Missing reasoning_content field in the assistant message at message index %d.","type":"invalid_request_error"}}`, i)
		}
	}
	return 0, ""
}

// Fault is why all servers refuse the body of a request; empty for none.
func Fault(body []byte) string {
	var c completion
	if err := json.Unmarshal(body, &c); err != nil {
		return err.Error()
	}
	_, fault := unpaired(&c)
	return fault
}

// unpaired refuses outputs that answer no call, calls without an output and an id of their own, and a message of
// the system behind others, as all servers do.
func unpaired(c *completion) (int, string) {
	var waiting, known []string
	for i, m := range c.Messages {
		if m.Role != "tool" && len(waiting) > 0 {
			return 418, "calls without an output"
		}
		if m.Role == "system" && i > 0 {
			return 418, "a message of the system behind others"
		}
		if m.Role == "tool" {
			if len(waiting) == 0 || waiting[0] != m.CallID {
				return 418, "an output of no call"
			}
			waiting = waiting[1:]
		}
		for _, call := range m.Calls {
			if call.ID == "" || slices.Contains(known, call.ID) {
				return 418, "a call without an id of its own"
			}
			waiting, known = append(waiting, call.ID), append(known, call.ID)
		}
	}
	if len(waiting) > 0 {
		return 418, "calls without an output"
	}
	return 0, ""
}

// Thought is the model's thought, at endpoints that show it.
const Thought = "I look first."

// toolCall is a call of a tool, with its arguments as JSON.
type toolCall struct{ tool, arguments string }

func runs(command string) toolCall {
	return toolCall{"shell_command", `{"command":` + quoted(command) + `}`}
}

// work has the calls of each answer of a run. The last answer is a text. tried has the calls of a trial.
var (
	work  = [][]toolCall{{runs("cat log.txt"), runs("true")}, {runs("echo made > made.txt")}, {runs("cat made.txt")}}
	tried = []toolCall{{"report", `{"value":"one"}`}, {"report", `{"value":"two"}`}}
)

// event is a chunk of a stream.
func event(delta, finish string) string {
	return fmt.Sprintf(`data: {"id":"c1","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
}

const (
	streamUsage = `data: {"id":"c1","choices":[],"usage":{"prompt_tokens":900,"completion_tokens":20}}` + "\n\n"
	streamEnd   = "data: [DONE]\n\n"
)

// voice is how a server words an answer.
type voice func(thought, words string, calls []toolCall, asked *completion) string

// quoted is the JSON of a text.
func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// usual streams an answer as OpenAI does. The thoughts are in fields, and worded returns the pieces of a call.
func usual(fields []string, worded func(n int, id string, call toolCall) []string, end string) voice {
	return func(thought, words string, calls []toolCall, asked *completion) string {
		var s strings.Builder
		s.WriteString(": a comment\n\n" + event(`{"role":"assistant","content":null}`, "null"))
		for _, piece := range strings.SplitAfter(thought, " ") {
			var named []string
			for _, field := range fields {
				named = append(named, quoted(field)+":"+quoted(piece))
			}
			s.WriteString(event("{"+strings.Join(named, ",")+"}", "null"))
		}
		for _, piece := range strings.SplitAfter(words, " ") {
			s.WriteString(event(`{"content":`+quoted(piece)+`}`, "null"))
		}
		for n, call := range calls {
			for _, piece := range worded(n, fmt.Sprintf("call_%d_%d", asked.outputs(), n), call) {
				s.WriteString(event(`{"tool_calls":[`+piece+`]}`, "null"))
			}
		}
		if len(calls) == 0 {
			end = `"stop"`
		}
		return s.String() + event("{}", end) + streamUsage + streamEnd
	}
}

// numbered returns the pieces of a call as OpenAI sends them.
func numbered(n int, id string, call toolCall) []string {
	text := call.arguments
	return []string{
		fmt.Sprintf(`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}`, n, id, call.tool),
		fmt.Sprintf(`{"index":%d,"function":{"arguments":%s}}`, n, quoted(text[:5])),
		fmt.Sprintf(`{"index":%d,"function":{"arguments":%s}}`, n, quoted(text[5:])),
	}
}

// inFormat returns a function that returns a call in one piece. format has placeholders for its parts.
func inFormat(format string) func(n int, id string, call toolCall) []string {
	return func(_ int, id string, call toolCall) []string {
		return []string{strings.NewReplacer("ID", id, "TOOL", call.tool, "TEXT", quoted(call.arguments), "OBJECT", call.arguments).Replace(format)}
	}
}

// unnumbered returns the pieces of a call without its number. Each has the name and the id.
func unnumbered(_ int, id string, call toolCall) []string {
	text := call.arguments
	format := `{"id":%q,"function":{"name":%q,"arguments":%s}}`
	return []string{fmt.Sprintf(format, id, call.tool, quoted(text[:5])), fmt.Sprintf(format, id, call.tool, quoted(text[5:]))}
}

// inText writes the whole answer into one text, as a server without parsers does, and no finish reason.
func inText(thought, words string, calls []toolCall, _ *completion) string {
	text := "<think>\n" + thought + "\n</think>\n\n" + words
	for _, call := range calls {
		text += "\n<tool_call>\n" + `{"name": ` + quoted(call.tool) + `, "arguments": ` + call.arguments + "}\n</tool_call>"
	}
	return event(`{"role":"assistant","content":`+quoted(text)+`}`, "null") + streamEnd
}

func withoutUsage(v voice) voice {
	return func(thought, words string, calls []toolCall, asked *completion) string {
		return strings.Replace(v(thought, words, calls, asked), streamUsage, "", 1)
	}
}

// inOnePiece returns the whole answer as one JSON object, not as a stream.
func inOnePiece(_, words string, calls []toolCall, asked *completion) string {
	finish, list := "stop", []string{}
	for n, call := range calls {
		finish = "tool_calls"
		list = append(list, fmt.Sprintf(`{"id":"call_%d_%d","type":"function","function":{"name":%q,"arguments":%s}}`, asked.outputs(), n, call.tool, quoted(call.arguments)))
	}
	return fmt.Sprintf(`{"id":"c1","choices":[{"message":{"role":"assistant","content":%s,"tool_calls":[%s]},"finish_reason":%q}],"usage":{"prompt_tokens":900,"completion_tokens":20}}`,
		quoted(words), strings.Join(list, ","), finish)
}

// behaviour is how a well-known server of Chat Completions behaves.
type behaviour struct {
	refuses []refusal
	says    voice
	writes  []string // answers of a model that has no tools, in their order
}

const (
	openAIError = `{"error":{"message":"Unsupported parameter: '%s' is not supported with this model.","type":"invalid_request_error","param":"%s","code":"unsupported_parameter"}}`
	pydantic    = `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","%s"],"msg":"Extra inputs are not permitted","input":true}]},"type":"invalid_request_error","param":null,"code":null}`
	alternates  = `Conversation roles must alternate user/assistant/user/assistant/...`
	toolCalls   = `"tool_calls"`
)

// behaviours has an entry for each endpoint in the table of docs/reference/model.md.
var behaviours = map[string]behaviour{
	"Cerebras": {
		refuses: []refusal{below(400, `{"message":"messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported","type":"invalid_request_error","param":"validation_error","code":"wrong_api_format"}`, `"reasoning_content":`)},
		says:    usual([]string{"reasoning_content"}, numbered, toolCalls),
	},
	"DeepSeek": {
		refuses: []refusal{withoutThought, unknown(400, `{"error":{"message":"This %s type is unavailable now","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, "response_format")},
		says:    usual([]string{"reasoning_content"}, numbered, toolCalls),
	},
	"Fireworks": {
		refuses: []refusal{unknown(400, `{"error":{"object":"error","type":"invalid_request_error","message":"Extra inputs are not permitted, field: '%s', value: {'include_usage': True}"}}`, "stream_options")},
		says:    withoutUsage(usual(nil, numbered, toolCalls)),
	},
	"Gemini": {
		refuses: []refusal{
			unknown(400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"%s\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`, "parallel_tool_calls"),
			below(400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot find field.","status":"INVALID_ARGUMENT"}}]`, `"additionalProperties":`),
		},
		says: usual(nil, inFormat(`{"index":0,"id":"","type":"function","function":{"name":"TOOL","arguments":TEXT}}`), `"stop"`),
	},
	"Gemma's template": {
		refuses: []refusal{
			below(400, `{"object":"error","message":"System role not supported","type":"BadRequestError","param":null,"code":400}`, `"role":"system"`),
			severalCalls(400, `{"object":"error","message":"This model only supports single tool-calls at once!","type":"BadRequestError","code":400}`),
			alternating(400, `{"object":"error","message":"`+alternates+`","type":"BadRequestError","code":400}`, false),
		},
		says: usual(nil, numbered, toolCalls),
	},
	"Groq": {
		refuses: []refusal{below(400, `{"error":{"message":"'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning' is unsupported, did you mean 'role'?)]","type":"invalid_request_error"}}`, `"reasoning":`)},
		says:    usual([]string{"reasoning"}, numbered, toolCalls),
	},
	"LM Studio without a parser": {says: inText},
	"Llama 3's template": {
		refuses: []refusal{severalCalls(400, `{"object":"error","message":"This model only supports single tool-calls at once!","type":"BadRequestError","param":null,"code":400}`)},
		says:    usual(nil, numbered, toolCalls),
	},
	"llama.cpp": {
		refuses: []refusal{alternating(500, `{"error":{"code":500,"message":"`+alternates+` at row 1, column 9","type":"server_error"}}`, true)},
		says:    usual([]string{"reasoning_content"}, numbered, toolCalls),
	},
	"Mistral": {
		refuses: []refusal{
			unknown(422, pydantic, "stream_options", "max_completion_tokens", "reasoning_effort"),
			afterOutputs(400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}`),
		},
		says: withoutUsage(usual(nil, inFormat(`{"index":0,"id":"ID","function":{"name":"TOOL","arguments":TEXT}}`), toolCalls)),
	},
	"o1-mini": {
		refuses: []refusal{
			below(400, `{"error":{"message":"Unsupported value: 'messages[0].role' does not support 'system' with this model.","type":"invalid_request_error","param":"messages[0].role","code":"unsupported_value"}}`, `"role":"system"`),
			unknown(400, openAIError, "parallel_tool_calls"),
		},
		says: usual(nil, numbered, toolCalls),
	},
	"Ollama": {
		refuses: []refusal{unknown(400, `{"error":{"message":"\"llama3.1:8b\" does not support thinking","type":"invalid_request_error","param":null,"code":null}}`, "reasoning_effort")},
		says:    usual(nil, inFormat(`{"index":0,"id":"ID","type":"function","function":{"name":"TOOL","arguments":TEXT}}`), toolCalls),
	},
	"Ollama's own API behind a proxy": {
		refuses: []refusal{below(400, `{"error":"json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments"}`, `"arguments":"`)},
		says:    usual(nil, inFormat(`{"function":{"name":"TOOL","arguments":OBJECT}}`), `"stop"`),
	},
	"gateway without streams": {
		refuses: []refusal{below(400, `{"error":{"message":"Unsupported value: 'stream' does not support true with this model. Only the default (false) value is supported.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}`, `"stream":true`)},
		says:    inOnePiece,
	},
	"Ollama, a model without tools": {
		refuses: []refusal{unknown(400, `{"error":{"message":"registry.ollama.ai/library/gemma2:2b does not support tools","type":"api_error","param":null,"code":null}}`, aboutTools...)},
		says:    usual(nil, numbered, toolCalls),
		writes:  []string{"```bash\ncat log.txt\n```\n", "made.txt\n```\n<<<<<<< SEARCH\n=======\nmade\n>>>>>>> REPLACE\n```\n", "```bash\ncat made.txt\n```\n"},
	},
	"OpenRouter": {says: usual([]string{"reasoning"}, numbered, toolCalls)},
	"SGLang": {
		refuses: []refusal{below(400, `{"object":"error","message":"can only concatenate str (not \"NoneType\") to str","type":"BadRequestError","code":400}`, `"content":null`)},
		says:    withoutUsage(usual(nil, unnumbered, toolCalls)),
	},
	"strict proxy": {
		refuses: []refusal{unknown(400, `{"detail":[{"type":"extra_forbidden","loc":["body","%s"],"msg":"Extra inputs are not permitted"}]}`,
			"stream_options", "reasoning_effort", "tool_choice", "response_format", "max_completion_tokens")},
		says: withoutUsage(usual(nil, numbered, toolCalls)),
	},
	"vLLM": {says: usual([]string{"reasoning", "reasoning_content"}, inFormat(`{"index":0,"id":"ID","type":"function","function":{"name":"TOOL","arguments":TEXT}}`), `"stop"`)},
}

// aboutTools are the fields of a request that an endpoint without tools refuses.
var aboutTools = []string{"tools", "tool_choice", "parallel_tool_calls", "functions"}

// Endpoint is a well-known endpoint with the settings that docs/reference/model.md names for it.
type Endpoint struct {
	Name   string
	Quirks []model.Quirk // sorted
	Tools  string        // model.tools
	behaviour
}

var row = regexp.MustCompile("(?m)^\\| ([^|`]+) \\| [^|]+ \\| `\\[([^|]*)\\]`(?:, and `model.tools: ([a-z-]+)`)? \\|$")

// Endpoints are those of the table in docs/reference/model.md, which is below root.
func Endpoints(t *testing.T, root string) (all []Endpoint) {
	t.Helper()
	page := must.Get(os.ReadFile(filepath.Join(root, "docs/reference/model.md")))(t)
	for _, row := range row.FindAllStringSubmatch(string(page), -1) {
		e := Endpoint{Name: row[1], Quirks: Quirks(row[2]), Tools: cmp.Or(row[3], "function"), behaviour: behaviours[row[1]]}
		must.Same(t, true, e.says != nil, "a server behaves as", e.Name)
		all = append(all, e)
	}
	must.Same(t, len(behaviours), len(all), "endpoints of docs/reference/model.md")
	return all
}

// Quirks are those of a list with commas, sorted.
func Quirks(list string) []model.Quirk {
	quirks := []model.Quirk{}
	for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ' ' || r == ',' }) {
		quirks = append(quirks, model.Quirk(name))
	}
	slices.Sort(quirks)
	return quirks
}

// Server behaves as an endpoint, and checks that calls and outputs pair up.
type Server struct {
	URL string
	behaviour

	mu      sync.Mutex
	refused []string
}

// Serve starts a server, which ends with the test.
func (e Endpoint) Serve(t *testing.T) *Server {
	s := &Server{behaviour: e.behaviour}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL + "/v1"
	return s
}

// Refused returns the answers to requests that were refused.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		fmt.Fprint(w, `{"data":[]}`)
		return
	}
	var raw json.RawMessage
	var c completion
	if err := json.NewDecoder(r.Body).Decode(&raw); err != nil || json.Unmarshal(raw, &c) != nil || json.Unmarshal(raw, &c.fields) != nil || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.Error(w, `{"error":"no such path"}`, http.StatusNotFound)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, refuse := range append(slices.Clip(s.refuses), unpaired) {
		if status, body := refuse(&c); status != 0 {
			s.refused = append(s.refused, body)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, s.answer(&c))
}

// answer returns the next answer: calls, a text, or JSON if the request asks for it.
func (s *Server) answer(c *completion) string {
	wantsJSON := bytes.Contains(c.Messages[len(c.Messages)-1].Content, []byte("JSON"))
	isTrial := slices.ContainsFunc(c.Tools, func(tool struct{ Function struct{ Name string } }) bool { return tool.Function.Name == "report" })
	switch {
	case wantsJSON:
		return s.says(Thought, `{"ok": true}`, nil, c)
	case len(s.writes) > 0 && bytes.Contains(c.Messages[0].Content, []byte("SEARCH")):
		return s.says("", append(slices.Clip(s.writes), "All is done.")[c.answers()], nil, c)
	case len(c.Tools) == 0 || isTrial && c.outputs() > 0:
		return s.says(Thought, "yes", nil, c)
	case isTrial:
		return s.says(Thought, "", tried, c)
	}
	done := 0
	for _, calls := range work {
		if done == c.outputs() {
			return s.says(Thought, "", calls, c)
		}
		done += len(calls)
	}
	return s.says(Thought, "All is done.", nil, c)
}
