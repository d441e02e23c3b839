package agent_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// wrong is something that endpoints get wrong, with a report of it. On each wire a run gets to its
// end all the same.
type wrong struct {
	what, seen string                  // what it is, and a link to where it was seen
	on         map[string]wrongAnswers // by wire
	calls      []string                // the arguments of those that run; nil for one of the file a
	told       string                  // words of the transcript
}

// wrongAnswers are answers of an endpoint, before it says Done.
type wrongAnswers struct {
	answers []http.HandlerFunc
	sent    []string // the last request has these words
	absent  []string // and none of these
}

func issue(text, repository string, number int) string {
	return fmt.Sprintf("[%s](https://github.com/%s/issues/%d)", text, repository, number)
}

// oneCall is the events of an answer with one call.
func oneCall(wire, arguments string) string {
	if wire == "chat" {
		return fmt.Sprintf(`data: {"id":"c","choices":[{"delta":{"tool_calls":[{"index":0,"id":"one","function":{"name":"read_file","arguments":%q}}]}}]}`+"\n\n", arguments) + finish("tool_calls")
	}
	return ev("output_item.done", fmt.Sprintf(`"output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"one","name":"read_file","arguments":%q}`, arguments)) + completed
}

// onBoth are the same answers on each wire.
func onBoth(answers func(wire string) []http.HandlerFunc, sent ...string) map[string]wrongAnswers {
	on := map[string]wrongAnswers{}
	for _, wire := range wires {
		on[wire] = wrongAnswers{answers: answers(wire), sent: sent}
	}
	return on
}

const ofA = `{"file_path":"a"}`

func wrongs() []wrong {
	return []wrong{
		{
			what: "calls whose ids are missing, or come twice in the conversation", seen: issue("Kimi and MiMo behind proxies", "can1357/oh-my-pi", 2055),
			on: onBoth(func(wire string) []http.HandlerFunc {
				return []http.HandlerFunc{calling(wire, `"terminal:0"`), calling(wire, `"terminal:0"`), calling(wire, "")}
			}, `"call_2_1"`, `"call_3_1"`),
			calls: []string{`{"file_path":"0"}`, `{"file_path":"0"}`, `{"file_path":"0"}`},
		},
		{
			what: "a refusal because the API can't open reasoning or a compaction that was sealed, can't find an item, or refuses the signature of a thought (another account, region or key, a late `resume`)",
			seen: issue("LiteLLM before Azure", "openai/codex", 9045),
			on: map[string]wrongAnswers{
				"responses": {answers: []http.HandlerFunc{answering(sealedThought, look("a")), refused(refusedSeal)}, absent: []string{"gAAA"}},
				"chat":      {answers: []http.HandlerFunc{stream(strings.Replace(oneCall("chat", ofA), `"function"`, `"extra_content":{"google":{"thought_signature":"gAAA"}},"function"`, 1)), refused("Thought signature is not valid.")}, absent: []string{"gAAA"}},
			},
		},
		{
			what: "reasoning with neither `encrypted_content` nor text, though nothing is stored", seen: issue("OpenAI without `include`", "vercel/ai", 7543),
			on: map[string]wrongAnswers{
				"responses": {answers: []http.HandlerFunc{answering(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null}`, look("a"))}, absent: []string{"rs_1"}},
				"chat":      {answers: []http.HandlerFunc{stream(`data: {"id":"c","choices":[{"delta":{"reasoning_content":""}}]}` + "\n\n" + oneCall("chat", ofA))}, absent: []string{"reasoning_content"}},
			},
		},
		{
			what: "the time to wait in the words of an error alone", seen: issue("Azure", "icereed/paperless-gpt", 814),
			on: onBoth(func(wire string) []http.HandlerFunc {
				return []http.HandlerFunc{answer(429, "", `{"error":{"code":"429","message":"Please retry after 3 milliseconds."}}`), stream(oneCall(wire, ofA))}
			}),
			told: `"wait_seconds":0.003`,
		},
		{
			what: "a call or message without its text, which came in events for it (`….done`, or `….delta` alone), in the last event, or in a message at the end of a stream",
			seen: issue("gpt-5.3-codex-spark", "BerriAI/litellm", 27144),
			on: map[string]wrongAnswers{
				"responses": {answers: []http.HandlerFunc{stream(ev("function_call_arguments.done", argsDone) + ev("output_item.done", `"output_index":0,`+emptyCall) + completed)}},
				"chat": {answers: []http.HandlerFunc{stream(`data: {"id":"c","choices":[{"delta":{"tool_calls":[{"index":0,"id":"one","function":{"name":"read_file","arguments":""}}]}}]}` + "\n\n" +
					`data: {"id":"c","choices":[{"message":{"tool_calls":[{"id":"one","function":{"name":"read_file","arguments":"{\"file_path\":\"a\"}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n")}},
			},
		},
		{
			what: "a stream that ends in the midst of a call, also with `[DONE]`, or with a reason such as `error` or `abort`", seen: issue("Command Code", "CommandCodeAI/command-code", 785),
			on: map[string]wrongAnswers{
				"responses": {answers: []http.HandlerFunc{stream(ev("output_item.done", `"output_index":0,`+emptyCall) + "data: [DONE]\n\n"), stream(oneCall("responses", ofA))}},
				"chat":      {answers: []http.HandlerFunc{stream(strings.Replace(oneCall("chat", ofA), `"tool_calls"}`, `"error"}`, 1)), stream(oneCall("chat", ofA))}},
			},
		},
		{
			what: "a call whose arguments end in the midst, in an answer that is complete", seen: issue("OpenRouter", "earendil-works/pi", 8501),
			on: onBoth(func(wire string) []http.HandlerFunc {
				return []http.HandlerFunc{stream(oneCall(wire, `{"file_path":"a`)), stream(oneCall(wire, ofA))}
			}, "unexpected end of JSON input"),
		},
		{
			what: "a stream whose last event lacks the blank line behind it, whose lines end in CR, or that has no blank lines", seen: issue("new-api", "earendil-works/pi", 9513),
			on: onBoth(func(wire string) []http.HandlerFunc {
				events := strings.TrimSuffix(oneCall(wire, ofA), "data: [DONE]\n\n")
				return []http.HandlerFunc{stream(strings.ReplaceAll(strings.TrimRight(events, "\n"), "\n", "\r"))}
			}),
		},
		{
			what: "arguments that are a JSON string with the object in it, or a command, plan or list of agents that is a JSON list in a string", seen: issue("vLLM with Granite 4", "vllm-project/vllm", 54964),
			on: onBoth(func(wire string) []http.HandlerFunc {
				return []http.HandlerFunc{stream(oneCall(wire, fmt.Sprintf("%q", ofA)))}
			}),
		},
	}
}

func TestToleratesEndpointErrors(t *testing.T) {
	t.Parallel()
	for _, row := range wrongs() {
		for _, wire := range wires {
			t.Run(row.what+" on "+wire, func(t *testing.T) {
				t.Log("seen at", row.seen)
				t.Parallel()
				on := row.on[wire]
				f, server := oddly(t, wire, append(on.answers, saying(wire, "Done."))...)
				if said, err := f.Run(t.Context()); err != nil || said != "Done." || len(on.answers) == 0 {
					t.Fatalf("Run = %q, %v", said, err)
				}
				var calls []string
				for _, call := range f.box.asked {
					calls = append(calls, call.Input)
				}
				want := row.calls
				if want == nil {
					want = []string{ofA}
				}
				if diff := gocmp.Diff(want, calls); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				last := server.bodies[len(server.bodies)-1]
				for _, words := range on.sent {
					if !strings.Contains(last, words) {
						t.Errorf("the last request lacks %s: %s", words, last)
					}
				}
				for _, words := range on.absent {
					if strings.Contains(last, words) {
						t.Errorf("the last request has %s: %s", words, last)
					}
				}
				if !strings.Contains(f.text(t), row.told) {
					t.Errorf("the transcript lacks %s", row.told)
				}
				f.rebuilds(t, server)
			})
		}
	}
}
