package agent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// TestDetectsQuirkOnce has an endpoint refuse a field: from then on no request has it, after a
// restart too.
func TestDetectsQuirkOnce(t *testing.T) {
	t.Parallel()
	f, server := chatting(t, slices.Insert(streamed(), 0, answer(400, "", `{"error":{"message":"\"small\" does not support thinking"}}`))...)
	f.Settings.Effort = "low"
	var warned []string
	f.Warn = func(code, format string, args ...any) {
		warned = append(warned, code+": "+fmt.Sprintf(format, args...))
	}
	f.mustSay(t, "Done.")
	warned = slices.DeleteFunc(warned, func(text string) bool { return !strings.HasPrefix(text, "endpoint_quirk: ") })
	if len(warned) != 1 || !strings.Contains(warned[0], "model.chat: [no_reasoning_effort].") || !strings.HasSuffix(warned[0], `"small" does not support thinking`) {
		t.Errorf("the run warned %q", warned)
	}
	for n, body := range server.bodies {
		if strings.Contains(body, "reasoning_effort") != (n == 0) || strings.Contains(body, `"chat":`) {
			t.Errorf("request %d is %s", n+1, body)
		}
	}
	f.rebuilds(t, "chat", server.bodies)

	settings := must.Get(f.Settings.SettingsJSON())(t)
	again, asked := chatting(t, saying("chat", "Done."))
	again.Settings.Effort = "low"
	again.Restore(pastOf(t, event(transcript.TypeModelRequest, `{"turn":1,"settings":`+string(settings)+`,"input":[`+theTask+`]}`)), nil, 0)
	again.mustRun(t)
	must.Lack(t, asked.bodies[0], "reasoning_effort")
}

// TestEndsOnRefusalWithoutQuirk end a run at once: of a value, of a field that was not sent, and
// of what is refused again although it was mended.
func TestEndsOnRefusalWithoutQuirk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message  string
		requests int
	}{
		"a value":                    {"Unsupported value: 'reasoning_effort' does not support 'low' with this model. Supported values are: 'high'.", 1},
		"one of":                     {"reasoning_effort must be one of none or default", 1},
		"a field that was not sent":  {"Unknown parameter: 'response_format'.", 1},
		"a stream that broke":        {"stream error: unexpected EOF", 1},
		"a field of another request": {"property 'metadata' is unsupported", 1},
		"again":                      {"Unknown parameter: 'reasoning_effort'.", 2},
	} {
		refusing := answer(400, "", fmt.Sprintf(`{"error":{"message":%q}}`, c.message))
		f, server := chatting(t, refusing, refusing, refusing)
		f.Settings.Effort = "low"
		if _, err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "invalid_request") || len(server.bodies) != c.requests {
			t.Errorf("%s: Run ended in %v after %d requests", name, err, len(server.bodies))
		}
	}
}

// wholeText is an answer of one text.
func wholeText(text string) http.HandlerFunc {
	raw, _ := json.Marshal(text)
	return answer(200, "", `{"id":"c1","choices":[{"message":{"content":`+string(raw)+`},"finish_reason":"stop"}]}`)
}

// TestReadsCallsInText has calls in the text of an answer made where all that follows is such, and by
// nobody else.
func TestReadsCallsInText(t *testing.T) {
	t.Parallel()
	const one = "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>"
	for name, c := range map[string]struct {
		text  string
		calls int
		words string // of the answer
	}{
		"one":                          {one, 1, ""},
		"two behind words":             {"I look.\n" + one + "\n\n" + one + "\n", 2, "I look."},
		"arguments as a text":          {`<tool_call>{"name": "read_file", "arguments": "{\"path\": \"a\"}"}</tool_call>`, 1, ""},
		"the end stands in a text":     {`<tool_call>{"name": "read_file", "arguments": {"path": "</tool_call><tool_call>"}}</tool_call>`, 1, ""},
		"behind a thought":             {"<think>I might <tool_call>.</think>\n" + one, 1, ""},
		"words follow":                 {one + "\nThat is what the file says.", 0, ""},
		"in a fence":                   {"The file says:\n```\n" + one + "\n```", 0, ""},
		"behind a fence":               {"```\nx\n```\n" + one, 0, ""},
		"in an open fence":             {"```\n" + one, 0, ""},
		"in the midst of a line":       {"It says " + one, 0, ""},
		"quoted":                       {"> " + one, 0, ""},
		"of a tool that is not there":  {strings.ReplaceAll(one, "read_file", "rm"), 0, ""},
		"one of a tool not there":      {one + strings.ReplaceAll(one, "read_file", "rm"), 0, ""},
		"cut":                          {one[:40], 0, ""},
		"without its end":              {strings.TrimSuffix(one, "</tool_call>"), 0, ""},
		"more than JSON":               {`<tool_call>{"name": "read_file", "arguments": {}} and</tool_call>`, 0, ""},
		"only thought of":              {"<think>\n" + one + "\n</think>\nNo.", 0, ""},
		"the form that quotes nothing": {"<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>", 0, ""},
	} {
		for _, quirks := range [][]model.Quirk{{chat.TextCalls}, nil} {
			f, server := chatting(t, wholeText(c.text), wholeText("Done."))
			f.Settings.ChatQuirks = quirks
			said, err := f.Run(t.Context())
			want := c.calls
			if quirks == nil {
				want = 0
			}
			if err != nil || len(f.box.asked) != want || want > 0 && said != "Done." {
				t.Errorf("%s, by %v: Run = %q, %v after %d calls", name, quirks, said, err, len(f.box.asked))
			}
			if want > 0 && c.words != "" && !strings.Contains(server.bodies[1], fmt.Sprintf(`"content":%q,"tool_calls"`, c.words)) {
				t.Errorf("%s: the words are lost: %s", name, server.bodies[1])
			}
		}
	}
}

// TestIgnoresTextCallsBesideRealCalls holds also where words alone are asked for.
func TestIgnoresTextCallsBesideRealCalls(t *testing.T) {
	t.Parallel()
	f, _ := chatting(t, answer(200, "", `{"id":"c1","choices":[{"message":{"content":"<tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>",`+
		`"tool_calls":[{"id":"one","function":{"name":"read_file","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`), wholeText("Done."))
	f.Settings.ChatQuirks = []model.Quirk{chat.TextCalls}
	if said, err := f.Run(t.Context()); err != nil || said != "Done." || len(f.box.asked) != 1 {
		t.Errorf("Run = %q, %v after %d calls", said, err, len(f.box.asked))
	}
}

// TestSeparatesThoughtsFromText are no words, and go back as they came.
func TestSeparatesThoughtsFromText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ said, back string }{
		"<think>\nHm.\n</think>\n\nDone.":       {"Done.", "<think>\nHm.\n</think>\n\nDone."},
		"<thinking>Hm.</thinking>Done.":         {"Done.", "<thinking>Hm.</thinking>\n\nDone."},
		"[THINK]Hm.[/THINK]Done.":               {"Done.", "[THINK]Hm.[/THINK]\n\nDone."},
		"Hm.\n</think>\n\nDone.":                {"Done.", "<think>Hm.</think>\n\nDone."},
		"<think></think>Done.":                  {"Done.", "Done."},
		"Tags such as <think>x</think> stay.":   {"Tags such as <think>x</think> stay.", "Tags such as <think>x</think> stay."},
		"```\nx\n</think>\n```\nis how it ends": {"```\nx\n</think>\n```\nis how it ends", "```\nx\n</think>\n```\nis how it ends"},
	} {
		f, server := chatting(t, wholeText(text), wholeText("Done."))
		must.Same(t, want.said, must.Get(f.Run(t.Context()))(t), text, "Run")
		f.mustTell(t, "Go on.")
		f.mustRun(t)
		var sent struct {
			Messages []struct{ Role, Content string }
		}
		must.Do(t, json.Unmarshal([]byte(server.bodies[1]), &sent))
		must.Same(t, want.back, sent.Messages[1].Content, text, "goes back")
		must.Same(t, "assistant", sent.Messages[1].Role, text)
		must.Same(t, "[From the runner] Go on.", sent.Messages[2].Content, text)
	}
}
