package agent_test

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// TestHandlesEndsOfStreams has both wires end, and break, their lines in other ways. new-api:
// https://github.com/earendil-works/pi/issues/9513
func TestHandlesEndsOfStreams(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"responses": ev("output_item.done", `"output_index":0,`+`"item":`+look("one")) + completed,
		"chat": `data: {"id":"c","choices":[{"delta":{"tool_calls":[{"index":0,"id":"one","function":{"name":"read_file","arguments":"{}"}}]}}]}` + "\n\n" +
			`data: {"id":"c","choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n",
	}
	for name, c := range map[string]struct {
		change func(string) string
		cut    bool
	}{
		"no blank line at the end":        {func(s string) string { return strings.TrimSuffix(s, "\n") }, false},
		"no line end at the end":          {func(s string) string { return strings.TrimSuffix(s, "\n\n") }, false},
		"[DONE] without a line end":       {func(s string) string { return s + "data: [DONE]" }, false},
		"CR":                              {func(s string) string { return strings.ReplaceAll(s, "\n", "\r") }, false},
		"CR, no blank line at the end":    {func(s string) string { return strings.TrimSuffix(strings.ReplaceAll(s, "\n", "\r"), "\r") }, false},
		"CR LF":                           {func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }, false},
		"CR LF, no blank line at the end": {func(s string) string { return strings.TrimSuffix(strings.ReplaceAll(s, "\n", "\r\n"), "\r\n") }, false},
		"no blank lines at all":           {func(s string) string { return strings.ReplaceAll(s, "\n\n", "\n") }, false},
		"a mark of the byte order":        {func(s string) string { return "\ufeff" + s }, false},
		"comments and names":              {func(s string) string { return ": hello\n\nevent: x\nid: 1\n" + s + ": bye\n" }, false},
		"no space behind the colon":       {func(s string) string { return strings.ReplaceAll(s, "data: ", "data:") }, false},
		"a last event that is cut":        {func(s string) string { return strings.TrimRight(s, "}\n") }, true},
		"no last event":                   {func(s string) string { return s[:strings.LastIndex(s, "data: ")] }, true},
		"the first event alone, unended":  {func(s string) string { return s[:strings.Index(s, "\n")] }, true},
	} {
		for _, wire := range wires {
			t.Run(name+" on "+wire, func(t *testing.T) {
				t.Parallel()
				f, server := oddly(t, wire, stream(c.change(answers[wire])), saying(wire, "Done."))
				if said, err := f.Run(t.Context()); err != nil || said != "Done." || len(server.bodies) != 2 {
					t.Fatalf("Run = %q, %v after %d requests", said, err, len(server.bodies))
				}
				must.Same(t, c.cut, strings.Contains(f.text(t), "stream_cut"), "stream_cut")
				if wire == "chat" || !c.cut {
					if ran := len(f.box.asked) == 1; ran == c.cut {
						t.Errorf("calls that ran: %+v", f.box.asked)
					}
				}
			})
		}
	}
}
