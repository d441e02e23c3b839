package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// worstServers are a model's endpoint and a server of tools that do all at once that such servers get wrong,
// as a gateway before another one might.
type worstServers struct {
	t *testing.T

	mu     sync.Mutex
	turn   int
	tries  map[int]int
	faults []string
	picked []string // the arguments of calls that reached the server of tools
}

const worstTurns = 30

func (s *worstServers) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// outputs counts the outputs in a request, whose calls have ids that come once. sealed reports whether it has
// what the endpoint sealed before.
func (s *worstServers) outputs(body []byte) (n int, sealed bool) {
	var sent struct {
		Input    []struct{ Type, CallID string }
		Messages []struct{ Role, CallID string }
	}
	text := strings.NewReplacer(`"call_id"`, `"CallID"`, `"tool_call_id"`, `"CallID"`).Replace(string(body))
	if err := json.Unmarshal([]byte(text), &sent); err != nil {
		s.fault("a request that is no JSON: %v", err)
	}
	seen := map[string]bool{}
	for _, item := range sent.Input {
		sent.Messages = append(sent.Messages, struct{ Role, CallID string }{strings.Replace(item.Type, "function_call_output", "tool", 1), item.CallID})
	}
	for _, m := range sent.Messages {
		if m.Role != "tool" {
			continue
		}
		if n++; m.CallID == "" || seen[m.CallID] {
			s.fault("the id %q is empty, or comes twice", m.CallID)
		}
		seen[m.CallID] = true
	}
	if strings.Contains(string(body), `"rs_lost"`) {
		s.fault("a request names reasoning that nobody keeps")
	}
	return n, strings.Contains(string(body), `"gAAA`)
}

// ServeHTTP answers turn by turn: odd turns run a command, even ones call the server of tools.
func (s *worstServers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/mcp") {
		s.serveTools(w, r, body)
		return
	}
	chat := strings.HasSuffix(r.URL.Path, "/chat/completions")
	n, sealed := s.outputs(body)
	turn := n + 1
	s.turn = max(s.turn, turn)
	s.tries[turn]++
	first := s.tries[turn] == 1
	w.Header().Set("Content-Type", "text/event-stream")
	switch {
	case first && turn%7 == 0:
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"code":"429","message":"Please retry after 3 milliseconds."}}`)
		return
	case first && (turn == 12 || turn == 22) && sealed:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"code":"invalid_encrypted_content","message":"The encrypted content gAAA could not be verified, nor the thought signature."}}`)
		return
	case turn > worstTurns:
		fmt.Fprint(w, lastWords(chat, "Done."))
		return
	case turn > 2 && turn%2 == 1 && !strings.Contains(string(body), "43 kinds"):
		s.fault("turn %d does not show the structured content of a tool", turn)
	}
	events := worstAnswer(chat, turn)
	if first && turn%9 == 0 { // cut in the midst of the call
		events = events[:strings.LastIndex(strings.TrimRight(events, "\n"), "data: ")]
	}
	if turn%4 == 0 {
		events = strings.ReplaceAll(events, "\n", "\r")
	}
	fmt.Fprint(w, strings.TrimRight(events, "\r\n"))
}

func lastWords(chat bool, text string) string {
	if chat {
		return `data: {"id":"c","choices":[{"delta":{"content":"` + text + `"},"finish_reason":"stop"}]}`
	}
	return `data: {"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}}` +
		"\n\n" + `data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`
}

// worstAnswer is one call. Its id comes again or is missing, and its arguments are a JSON string that comes
// beside the call, with a list in a text.
func worstAnswer(chat bool, turn int) string {
	tool, object := "mcp__s__pick", `{"regions":"[\"us\"]"}`
	if turn%2 == 1 {
		tool, object = "shell_command", fmt.Sprintf(`{"command":"[\"sh\",\"-c\",\"echo %d >>log.txt\"]"}`, turn)
	}
	arguments, id := quoted(quoted(object)), []string{`"terminal:0"`, `""`, `null`}[turn%3]
	if chat {
		return `data: {"id":"c","choices":[{"delta":{"tool_calls":[{"index":0,"id":` + id + `,"extra_content":{"google":{"thought_signature":"gAAA"}},"function":{"name":"` + tool + `","arguments":""}}]}}]}` + "\n\n" +
			`data: {"id":"c","choices":[{"message":{"tool_calls":[{"id":` + id + `,"function":{"name":"` + tool + `","arguments":` + arguments + `}}]},"finish_reason":"tool_calls"}]}` + "\n\n"
	}
	thought := []string{`"id":"rs_lost","encrypted_content":null`, `"id":"rs_1","encrypted_content":"gAAA"`}[turn%2]
	return `data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[],` + thought + "}}\n\n" +
		`data: {"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":1,"arguments":` + arguments + "}\n\n" +
		`data: {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":` + id + `,"name":"` + tool + `","arguments":""}}` + "\n\n" +
		`data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}` + "\n\n"
}

// serveTools writes ids as text, has a page behind an empty cursor, lists that may be null, and results whose
// text leaves out what their structured content has.
func (s *worstServers) serveTools(w http.ResponseWriter, r *http.Request, body []byte) {
	var q struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Cursor    *string
			Arguments json.RawMessage
		}
	}
	if r.Method != http.MethodPost || json.Unmarshal(body, &q) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var result string
	switch {
	case strings.HasPrefix(q.Method, "notifications/"):
		w.WriteHeader(http.StatusAccepted)
		return
	case q.Method == "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}`
	case q.Method == "tools/list" && q.Params.Cursor == nil:
		result = `{"tools":[{"name":"other","inputSchema":{"type":"object"}}],"nextCursor":""}`
	case q.Method == "tools/list":
		result = `{"tools":[{"name":"pick","inputSchema":{"type":"object","properties":{"regions":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]}}}}]}`
	case q.Method == "tools/call":
		s.picked = append(s.picked, string(q.Params.Arguments))
		result = `{"content":[{"type":"text","text":"The evidence is in structured content."}],"structuredContent":{"found":"43 kinds"}}`
	default: // as one that does not know newer revisions
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"%s","error":{"code":-32601,"message":"Method not found"}}`, q.ID)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"%s","result":%s}`, q.ID, result)
}

// TestThirtyTurnsAtTheWorstServers has a run get to its end all the same, on each wire.
func TestThirtyTurnsAtTheWorstServers(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"responses", "chat"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			s := &worstServers{t: t, tries: map[int]int{}}
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			w := newWorkshop(t, "OPENAI_BASE_URL="+server.URL+"/v1", "OPENAI_API_KEY=sk-test-0123456789abcdef")
			w.write("job.yml", `version: 1
name: worst
task: {prompt: Count.}
model: {name: some-model, wire: `+wire+`, context_window: 100000, tools: function}
limits: {cost_usd: 0}
mcp_servers: {s: {url: "`+server.URL+`/mcp", tools: ["*"]}}
`)
			w.write("repo/log.txt", "")
			repo := filepath.Join(w.dir, "repo")
			w.git(repo, "init", "--quiet", "--initial-branch=main")
			w.git(repo, "add", "--all")
			w.git(repo, "commit", "--quiet", "--message=begin")
			cmd := exec.Command(binary, "run", "job.yml", "--repo", repo, "--out", "out", "--publish", "local")
			cmd.Env, cmd.Dir = w.env, w.dir
			output, err := cmd.CombinedOutput()
			s.mu.Lock()
			defer s.mu.Unlock()
			if err != nil || s.turn != worstTurns+1 || len(s.faults) > 0 {
				t.Fatalf("the run ended in turn %d with %v and %q:\n%s", s.turn, err, s.faults, output)
			}
			var want strings.Builder
			for turn := 1; turn < worstTurns; turn += 2 {
				fmt.Fprintln(&want, turn)
			}
			if got := w.git(repo, "show", "agent-ci/worst:log.txt"); got != strings.TrimSpace(want.String()) {
				t.Errorf("commands wrote %q", got)
			}
			if others := slices.DeleteFunc(slices.Clone(s.picked), func(arguments string) bool { return arguments == `{"regions":["us"]}` }); len(s.picked) != worstTurns/2 || len(others) > 0 {
				t.Errorf("%d calls came to the server of tools, with %q", len(s.picked), others)
			}
			for _, words := range []string{"stream_cut", "sealed_reasoning", `"wait_seconds":0.003`} {
				if transcript, err := os.ReadFile(filepath.Join(w.dir, "out", "transcript.jsonl")); err != nil || !strings.Contains(string(transcript), words) {
					t.Errorf("the transcript lacks %s: %v", words, err)
				}
			}
			replayed := exec.Command(binary, "replay", "out", "--frozen", "--quiet")
			replayed.Env, replayed.Dir = w.env, w.dir
			if out, err := replayed.CombinedOutput(); err != nil || !strings.Contains(string(out), ", 0 differences") {
				t.Errorf("the replay: %v\n%s", err, out)
			}
		})
	}
}
