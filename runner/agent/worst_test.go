package agent_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// worst is an answer with one call, in the worst way that an endpoint was seen to give it.
func worst(wire string, turn int) http.HandlerFunc {
	arguments := fmt.Sprintf("%q", fmt.Sprintf("%q", fmt.Sprintf(`{"path":"%d"}`, turn))) // an object in a text
	id := []string{`"terminal:0"`, `""`, `null`}[turn%3]
	var events string
	if wire == "chat" {
		call := `data: {"id":"c","choices":[{"delta":{"tool_calls":[{"index":0,"id":%s,"function":{"name":"read_file","arguments":%s},"extra_content":{"google":{"thought_signature":"gAAA"}}}]}}]}` + "\n\n"
		if turn%2 == 1 { // the arguments come at the end of the stream
			call = strings.Replace(call, `"arguments":%s`, `"arguments":""`, 1)
			whole := `data: {"id":"c","choices":[{"message":{"tool_calls":[{"id":%s,"function":{"name":"read_file","arguments":%s}}]},"finish_reason":"tool_calls"}]}` + "\n\n"
			return stream(strings.TrimRight(fmt.Sprintf(call+whole, id, id, arguments), "\n"))
		}
		events = fmt.Sprintf(call, id, arguments) + `data: {"id":"c","choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n"
	} else {
		thought := strings.Replace(sealedThought, `"gAAA"`, []string{`"gAAA"`, `null`}[turn%2], 1)
		events = ev("output_item.done", `"output_index":0,"item":`+thought) +
			ev("function_call_arguments.done", `"item_id":"fc_1","output_index":1,"arguments":`+arguments) +
			ev("output_item.done", fmt.Sprintf(`"output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":%s,"name":"read_file","arguments":""}`, id)) + completed
	}
	if turn%2 == 0 {
		events = strings.ReplaceAll(events, "\n", "\r")
	}
	return stream(strings.TrimRight(events, "\r\n"))
}

// TestThirtyTurnsAtTheWorstEndpoint has an endpoint do all at once that endpoints get wrong.
func TestThirtyTurnsAtTheWorstEndpoint(t *testing.T) {
	t.Parallel()
	for _, wire := range wires {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			var answers []http.HandlerFunc
			for turn := range 29 {
				switch turn {
				case 7:
					answers = append(answers, answer(429, "", `{"error":{"code":"429","message":"Please retry after 3 milliseconds."}}`))
				case 12, 20:
					refusal := refusedSeal
					if wire == "chat" {
						refusal = "Thought signature is not valid."
					}
					answers = append(answers, refused(refusal))
				case 24:
					answers = append(answers, stream(oneCall(wire, `{"file_path":"cut`)))
				case 16:
					answers = append(answers, stream(`data: {"id":"c"`))
				}
				answers = append(answers, worst(wire, turn))
			}
			f, server := oddly(t, wire, append(answers, saying(wire, "Done."))...)
			if said, err := f.Run(t.Context()); err != nil || said != "Done." {
				t.Fatalf("Run = %q, %v after %d requests", said, err, len(server.bodies))
			}
			seen := map[string]bool{}
			for n, call := range f.box.asked {
				if want := fmt.Sprintf(`{"file_path":"%d"}`, n); call.Input != want || seen[call.ID] {
					t.Errorf("call %d is %+v, want the arguments %s", n, call, want)
				}
				seen[call.ID] = true
			}
			if len(f.box.asked) != 29 || len(server.bodies) != len(answers)+1 {
				t.Errorf("%d calls ran, by %d requests", len(f.box.asked), len(server.bodies))
			}
			f.rebuilds(t, server)
		})
	}
}
