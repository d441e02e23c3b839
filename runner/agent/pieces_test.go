package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// Events of the Responses API.
func ev(kind, fields string) string {
	return fmt.Sprintf("data: {\"type\":\"response.%s\",%s}\n\n", kind, fields)
}

const (
	emptyCall   = `"item":{"type":"function_call","id":"fc_1","call_id":"one","name":"read_file","arguments":""}`
	emptyCustom = `"item":{"type":"custom_tool_call","id":"ctc_1","call_id":"one","name":"read_file","input":""}`
	argsDone    = `"item_id":"fc_1","output_index":0,"arguments":"{\"file_path\":\"a\"}"`
)

// TestJoinsCallTextFromEvents has the text of an item anywhere but in the item. gpt-5.3-codex-spark:
// https://github.com/BerriAI/litellm/issues/27144
func TestJoinsCallTextFromEvents(t *testing.T) {
	t.Parallel()
	const want = `{"file_path":"a"}`
	pieces := ev("function_call_arguments.delta", `"item_id":"fc_1","output_index":0,"delta":"{\"file_path\":"`) +
		ev("function_call_arguments.delta", `"item_id":"fc_1","output_index":0,"delta":"\"a\"}"`)
	for name, c := range map[string]struct{ wire, events, want string }{
		"arguments.done":             {"responses", ev("function_call_arguments.done", argsDone) + ev("output_item.done", `"output_index":0,`+emptyCall) + completed, want},
		"arguments.done behind it":   {"responses", ev("output_item.done", `"output_index":0,`+emptyCall) + ev("function_call_arguments.done", argsDone) + completed, want},
		"deltas alone":               {"responses", pieces + ev("output_item.done", `"output_index":0,`+emptyCall) + completed, want},
		"no item.done":               {"responses", ev("output_item.added", `"output_index":0,`+emptyCall) + ev("function_call_arguments.done", argsDone) + completed, want},
		"no item.done, deltas alone": {"responses", ev("output_item.added", `"output_index":0,`+emptyCall) + pieces + completed, want},
		"ids that change":            {"responses", strings.ReplaceAll(pieces, "fc_1", "fc_x") + ev("output_item.done", `"output_index":0,`+emptyCall) + completed, want},
		"no arguments field":         {"responses", ev("function_call_arguments.done", argsDone) + ev("output_item.done", `"item":{"type":"function_call","call_id":"one","name":"read_file"}`) + completed, want},
		"in the last event": {
			"responses", ev("output_item.done", `"output_index":0,`+emptyCall) +
				ev("completed", `"response":{"id":"resp","status":"completed","output":[`+look("one")+`]}`), `{"file_path":"one"}`,
		},
		"in the last event alone, behind words": {
			"responses", ev("output_item.done", `"output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Look."}]}`) +
				ev("completed", `"response":{"id":"resp","status":"completed","output":[{"type":"message","id":"n","role":"assistant","content":[]},`+look("one")+`]}`), `{"file_path":"one"}`,
		},
		"input.done": {
			"responses", ev("custom_tool_call_input.done", `"item_id":"ctc_1","output_index":0,"input":"{\"file_path\":\"a\"}"`) + ev("output_item.done", `"output_index":0,`+emptyCustom) + completed, want,
		},
		"input in deltas": {
			"responses", ev("custom_tool_call_input.delta", `"item_id":"ctc_1","output_index":0,"delta":"{\"file_path\":"`) +
				ev("custom_tool_call_input.delta", `"item_id":"ctc_1","output_index":0,"delta":"\"a\"}"`) + ev("output_item.done", `"output_index":0,`+emptyCustom) + completed, want,
		},
		"an argument that is none": {"responses", ev("output_item.done", `"output_index":0,`+emptyCall) + completed, "{}"},
		"the whole message at the end": {
			"chat", `data: {"id":"c","choices":[{"delta":{"tool_calls":[{"index":0,"id":"one","function":{"name":"read_file","arguments":""}}]}}]}` + "\n\n" +
				`data: {"id":"c","choices":[{"message":{"tool_calls":[{"id":"one","function":{"name":"read_file","arguments":"{\"file_path\":\"a\"}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n", want,
		},
		"the whole message twice": {
			"chat", `data: {"id":"c","choices":[{"delta":{"tool_calls":[{"index":0,"id":"one","function":{"name":"read_file","arguments":"{\"file_path\":\"a\"}"}}]}}]}` + "\n\n" +
				`data: {"id":"c","choices":[{"message":{"tool_calls":[{"id":"one","function":{"name":"read_file","arguments":"{\"file_path\":\"a\"}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n", want,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, server := oddly(t, c.wire, stream(c.events), saying(c.wire, "Done."))
			f.mustSay(t, "Done.")
			var inputs []string
			for _, call := range f.box.asked {
				inputs = append(inputs, call.Input)
			}
			must.Same(t, []string{c.want}, inputs, "calls")
			f.rebuilds(t, c.wire, server.bodies)
		})
	}
}

// TestJoinsMessageTextFromEvents has the text of a message in its events alone.
func TestJoinsMessageTextFromEvents(t *testing.T) {
	t.Parallel()
	empty := ev("output_item.done", `"output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}`)
	for name, events := range map[string]string{
		"done":          ev("output_text.done", `"item_id":"m","output_index":0,"content_index":0,"text":"Done."`) + empty,
		"deltas":        ev("output_text.delta", `"item_id":"m","output_index":0,"content_index":0,"delta":"Do"`) + ev("output_text.delta", `"item_id":"m","output_index":0,"content_index":0,"delta":"ne."`) + empty,
		"two parts":     ev("output_text.done", `"item_id":"m","output_index":0,"content_index":1,"text":"ne."`) + ev("output_text.done", `"item_id":"m","output_index":0,"content_index":0,"text":"Do"`) + empty,
		"an empty part": ev("output_text.done", `"item_id":"m","output_index":0,"content_index":0,"text":"Done."`) + strings.Replace(empty, `[]`, `[{"type":"output_text","text":""}]`, 1),
	} {
		f, _ := oddly(t, "responses", stream(events+completed))
		must.Same(t, "Done.", must.Get(f.Run(t.Context()))(t), name, "Run")
	}
}

// TestNeverRunsCutCall breaks an answer off before its call is known to be whole. Command Code:
// https://github.com/CommandCodeAI/command-code/issues/785
func TestNeverRunsCutCall(t *testing.T) {
	t.Parallel()
	piece := ev("function_call_arguments.delta", `"item_id":"fc_1","output_index":0,"delta":"{\"file_path\":\"a"`)
	chunk := `data: {"id":"c","choices":[{"delta":{"tool_calls":[{"index":0,"id":"one","function":{"name":"read_file","arguments":"{\"file_path\":\"a"}}]}}]}` + "\n\n"
	for name, c := range map[string]struct{ wire, events string }{
		"deltas":                      {"responses", piece},
		"deltas, then an empty item":  {"responses", piece + ev("output_item.done", `"output_index":0,`+emptyCall)},
		"an empty item, [DONE]":       {"responses", ev("output_item.done", `"output_index":0,`+emptyCall) + "data: [DONE]\n\n"},
		"pieces":                      {"chat", chunk},
		"pieces, then [DONE]":         {"chat", chunk + "data: [DONE]\n\n"},
		"pieces, then an error":       {"chat", chunk + finish("error")},
		"pieces, then it is aborted":  {"chat", chunk + finish("abort")},
		"pieces, and no room is left": {"chat", chunk + finish("insufficient_system_resource")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, server := oddly(t, c.wire, stream(c.events), saying(c.wire, "Done."))
			if said, err := f.Run(t.Context()); err != nil || said != "Done." || len(server.bodies) != 2 {
				t.Errorf("Run = %q, %v after %d requests", said, err, len(server.bodies))
			}
			must.None(t, f.box.asked, "calls that ran")
			must.Contain(t, f.text(t), "stream_cut")
		})
	}
}
