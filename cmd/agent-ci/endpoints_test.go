package main_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// defineCompletion is a request for a chat completion, as a server reads it.
type defineCompletion struct {
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

func (c *defineCompletion) outputs() (n int) {
	for _, m := range c.Messages {
		if m.Role == "tool" {
			n++
		}
	}
	return n
}

func (c *defineCompletion) answers() (n int) {
	for _, m := range c.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// refusal is why a server refuses a request: a status, and an error as it words it. 0 takes it.
type refusal func(c *defineCompletion) (status int, body string)

// unknown refuses fields that a server does not know; %s in body is the first.
func unknown(status int, body string, fields ...string) refusal {
	return func(c *defineCompletion) (int, string) {
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
	return func(c *defineCompletion) (int, string) {
		raw, _ := json.Marshal(c.fields)
		if find.Match(raw) {
			return status, body
		}
		return 0, ""
	}
}

// afterOutputs refuses a message of the user right behind outputs.
func afterOutputs(status int, body string) refusal {
	return func(c *defineCompletion) (int, string) {
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
	return func(c *defineCompletion) (int, string) {
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
	return func(c *defineCompletion) (int, string) {
		for _, m := range c.Messages {
			if len(m.Calls) > 1 {
				return status, body
			}
		}
		return 0, ""
	}
}

// withoutThought refuses calls that come back without the thought that they came with.
func withoutThought(c *defineCompletion) (int, string) {
	for i, m := range c.Messages {
		if len(m.Calls) > 0 && (m.Thought == nil || *m.Thought != thought) {
			return 400, fmt.Sprintf(`{"error":{"message":"Missing reasoning_content field in the assistant message at message index %d.","type":"invalid_request_error"}}`, i)
		}
	}
	return 0, ""
}

// unpaired refuses outputs that answer no call, and calls without an output, as all servers do.
func unpaired(c *defineCompletion) (int, string) {
	var waiting []string
	for _, m := range c.Messages {
		if m.Role != "tool" && len(waiting) > 0 {
			return 418, "calls without an output"
		}
		if m.Role == "tool" {
			if len(waiting) == 0 || waiting[0] != m.CallID {
				return 418, "an output of no call"
			}
			waiting = waiting[1:]
		}
		for _, call := range m.Calls {
			waiting = append(waiting, call.ID)
		}
	}
	return 0, ""
}

const thought = "I look first."

// toolCall is a call of a tool, with its arguments as JSON.
type toolCall struct{ tool, arguments string }

func runs(command string) toolCall {
	return toolCall{"shell_command", `{"command":` + quoted(command) + `}`}
}

// work are the calls of each answer of a run; words end it. tried are those of a trial.
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
type voice func(thought, words string, calls []toolCall, asked *defineCompletion) string

// quoted is the JSON of a text.
func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// usual streams as OpenAI does, thoughts in fields. Each call is asked to be worded.
func usual(fields []string, worded func(n int, id string, call toolCall) []string, end string) voice {
	return func(thought, words string, calls []toolCall, asked *defineCompletion) string {
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

// numbered words a call in pieces as OpenAI does.
func numbered(n int, id string, call toolCall) []string {
	text := call.arguments
	return []string{
		fmt.Sprintf(`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}`, n, id, call.tool),
		fmt.Sprintf(`{"index":%d,"function":{"arguments":%s}}`, n, quoted(text[:5])),
		fmt.Sprintf(`{"index":%d,"function":{"arguments":%s}}`, n, quoted(text[5:])),
	}
}

// inFormat words a call in one piece by a format with its id and its arguments.
func inFormat(format string) func(n int, id string, call toolCall) []string {
	return func(_ int, id string, call toolCall) []string {
		return []string{strings.NewReplacer("ID", id, "TOOL", call.tool, "TEXT", quoted(call.arguments), "OBJECT", call.arguments).Replace(format)}
	}
}

// unnumbered words a call in pieces without a number, the name and the id in each.
func unnumbered(_ int, id string, call toolCall) []string {
	text := call.arguments
	format := `{"id":%q,"function":{"name":%q,"arguments":%s}}`
	return []string{fmt.Sprintf(format, id, call.tool, quoted(text[:5])), fmt.Sprintf(format, id, call.tool, quoted(text[5:]))}
}

// inText words all in the text of one piece, and ends without a reason.
func inText(thought, words string, calls []toolCall, _ *defineCompletion) string {
	text := "<think>\n" + thought + "\n</think>\n\n" + words
	for _, call := range calls {
		text += "\n<tool_call>\n" + `{"name": ` + quoted(call.tool) + `, "arguments": ` + call.arguments + "}\n</tool_call>"
	}
	return event(`{"role":"assistant","content":`+quoted(text)+`}`, "null") + streamEnd
}

func withoutUsage(v voice) voice {
	return func(thought, words string, calls []toolCall, asked *defineCompletion) string {
		return strings.Replace(v(thought, words, calls, asked), streamUsage, "", 1)
	}
}

// inOnePiece gives the whole answer as an object.
func inOnePiece(_, words string, calls []toolCall, asked *defineCompletion) string {
	finish, list := "stop", []string{}
	for n, call := range calls {
		finish = "tool_calls"
		list = append(list, fmt.Sprintf(`{"id":"call_%d_%d","type":"function","function":{"name":%q,"arguments":%s}}`, asked.outputs(), n, call.tool, quoted(call.arguments)))
	}
	return fmt.Sprintf(`{"id":"c1","choices":[{"message":{"role":"assistant","content":%s,"tool_calls":[%s]},"finish_reason":%q}],"usage":{"prompt_tokens":900,"completion_tokens":20}}`,
		quoted(words), strings.Join(list, ","), finish)
}

// endpoint is a server of Chat Completions that behaves as a well-known one does.
type endpoint struct {
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

// endpoints are those of the table in docs/reference/model.md.
var endpoints = map[string]endpoint{
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

// served is an endpoint that is asked.
type served struct {
	endpoint
	*httptest.Server

	mu      sync.Mutex
	refused []string
	asked   []string
}

func (e endpoint) serve(t interface{ Cleanup(func()) }) *served {
	s := &served{endpoint: e}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		fmt.Fprint(w, `{"data":[]}`)
		return
	}
	var raw json.RawMessage
	var c defineCompletion
	if err := json.NewDecoder(r.Body).Decode(&raw); err != nil || json.Unmarshal(raw, &c) != nil || json.Unmarshal(raw, &c.fields) != nil || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.Error(w, `{"error":"no such path"}`, http.StatusNotFound)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, string(raw))
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

// answer is the next one: work, words, and an object where that is asked for.
func (s *served) answer(c *defineCompletion) string {
	trial, asks := false, bytes.Contains(c.Messages[len(c.Messages)-1].Content, []byte("JSON"))
	for _, tool := range c.Tools {
		trial = trial || tool.Function.Name == "report"
	}
	done, n := 0, c.outputs()
	switch {
	case asks:
		return s.says(thought, `{"ok": true}`, nil, c)
	case len(s.writes) > 0 && bytes.Contains(c.Messages[0].Content, []byte("SEARCH")):
		return s.says("", append(slices.Clip(s.writes), "All is done.")[c.answers()], nil, c)
	case len(c.Tools) == 0 || trial && n > 0:
		return s.says(thought, "yes", nil, c)
	case trial:
		return s.says(thought, "", tried, c)
	}
	for _, calls := range work {
		if n == done {
			return s.says(thought, "", calls, c)
		}
		done += len(calls)
	}
	return s.says(thought, "All is done.", nil, c)
}

func (s *served) refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// endpointRow is a row of the table of endpoints: its name, and its settings.
var endpointRow = regexp.MustCompile("(?m)^\\| ([^|`]+) \\| [^|]+ \\| `(\\[[^|]*\\])`(?:, and `model.tools: ([a-z-]+)`)? \\|$")

const endpointJob = `version: 1
name: made
task: {prompt: Make it., output_schema: schema.json}
model: {name: some-model, wire: chat, max_output_tokens: 1000, context_window: 100000, tools: function}
limits: {tool_calls: 5, cost_usd: 0}
`

// TestEndpointQuirks has each endpoint of docs/reference/model.md asked by a run, with its settings and
// without.
func TestEndpointQuirks(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, row := range endpointRow.FindAllStringSubmatch(documents(t)["docs/reference/model.md"], -1) {
		name, settings, tools := row[1], row[2], cmp.Or(row[3], "function")
		rows = append(rows, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, is := endpoints[name]
			if !is {
				t.Fatal("no server behaves so")
			}
			must.None(t, e.run(t, settings, tools, true), "with", settings, "the run warned")
			want := quirksOf(settings)
			if slices.Contains(want, string(chat.TextCalls)) || tools != "function" { // which no run finds out
				return
			}
			found := []string{}
			if warned := e.run(t, "[]", tools, false); len(warned) > 0 {
				found = quirksOf(warned[len(warned)-1])
			}
			slices.Sort(want)
			slices.Sort(found)
			must.Same(t, want, found, "model.chat (-documented +found out)")
		})
	}
	must.Same(t, len(endpoints), len(rows), "servers for the endpoints of docs/reference/model.md", rows)
}

var quirkList = regexp.MustCompile(`\[([a-z_, ]*)\]`)

// quirksOf are those that a text lists.
func quirksOf(text string) []string {
	return strings.FieldsFunc(quirkList.FindStringSubmatch(text)[1], func(r rune) bool { return r == ' ' || r == ',' })
}

// TestDoctorFindsEndpointQuirks has doctor find the settings that docs/reference/model.md names for each endpoint.
// TestEndpointQuirks runs with these.
func TestDoctorFindsEndpointQuirks(t *testing.T) {
	t.Parallel()
	for _, row := range endpointRow.FindAllStringSubmatch(documents(t)["docs/reference/model.md"], -1) {
		name, settings, tools := row[1], row[2], cmp.Or(row[3], "function")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := endpoints[name]
			s := e.serve(t)
			w := newWorkshop(t, "OPENAI_BASE_URL="+s.URL+"/v1", "OPENAI_API_KEY=sk-test-0123456789abcdef", "AGENT_CI_MODEL_NAME=some-model")
			said, _ := w.agent("doctor", "--online", "--repo", w.dir) // its status is that of the machine
			set := regexp.MustCompile(`set in the job: model: \{(?:chat: (\[.*\]), )?(?:tools: ([a-z-]+), )?wire: chat\}`).FindStringSubmatch(said)
			if set == nil || len(s.asked) > 24 {
				t.Fatalf("after %d requests doctor says:\n%s\nrefused: %q", len(s.asked), said, s.refusals())
			}
			printed, printedTools := cmp.Or(set[1], "[]"), cmp.Or(set[2], "function")
			must.Same(t, tools, printedTools, "model.tools (-documented +printed)")
			found, want := quirksOf(printed), quirksOf(settings)
			slices.Sort(found)
			slices.Sort(want)
			must.Same(t, want, found, "model.chat (-documented +printed)", said)
		})
	}
}

// run has a run ask the endpoint to its end, and gives what it warned of the endpoint's quirks.
func (e endpoint) run(t *testing.T, settings, tools string, fits bool) (warned []string) {
	t.Helper()
	s := e.serve(t)
	w := newWorkshop(t, "OPENAI_BASE_URL="+s.URL+"/v1", "OPENAI_API_KEY=sk-test-0123456789abcdef", "AGENT_CI_MODEL_CHAT="+settings, openly)
	w.write("job.yml", endpointJob)
	w.write("schema.json", `{"type": "object", "required": ["ok"], "additionalProperties": false, "properties": {"ok": {"const": true}}}`)
	w.write("repo/log.txt", "begin\n")
	repo := filepath.Join(w.dir, "repo")
	w.repository(repo)
	said, err := w.agent("run", "job.yml", "--repo", repo, "--out", "out", "--publish", "local", "--set", "model.tools="+tools)
	if err != nil || w.git(repo, "show", "agent-ci/made:made.txt") != "made" {
		t.Fatalf("the run ended in %v:\n%s\nrefused: %q", err, said, s.refusals())
	}
	if refused := s.refusals(); fits && len(refused) > 0 {
		t.Errorf("with %s requests were refused: %q", settings, refused)
	}
	var result struct {
		Warnings []struct{ Code, Message string }
	}
	readJSON(t, filepath.Join(w.dir, "out", "result.json"), &result)
	if text := w.git(repo, "log", "-1", "--format=%B", "agent-ci/made"); strings.Contains(text, thought) || !strings.HasPrefix(text, "All is done") {
		t.Errorf("the commit has thoughts, or not the last words: %s", text)
	}
	for _, warning := range result.Warnings {
		if warning.Code == "endpoint_quirk" {
			warned = append(warned, warning.Message)
		}
	}
	if quirks := quirksOf(settings); !fits || tools == "function" && len(quirks) < 4 && !slices.Contains(quirks, string(chat.TextCalls)) { // the record of other calls is the usual one
		return warned
	}
	if out, err := w.agent("replay", "out", "--frozen", "--quiet"); err != nil || !strings.Contains(out, ", 0 differences") {
		t.Errorf("the replay: %v\n%s", err, out)
	}
	return warned
}

// The job and docs/reference/model.md name the same quirks as there are.
func TestJobAndDocsNameQuirks(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(documents(t)["docs/reference/model.md"], "\n| quirk | what agent-ci does |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for row := range strings.Lines(table) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(strings.Split(row, " | ")[0], -1) {
			listed = append(listed, name[1])
		}
	}
	must.Same(t, chat.Quirks(), listed, "quirks (-of the model +of docs/reference/model.md)")
	must.Same(t, chat.Quirks(), job.Format().Root.Find("model.chat").Values, "quirks (-of the model +of jobs)")
}
