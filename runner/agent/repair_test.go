package agent_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

const (
	sealedThought = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}`
	refusedSeal   = `The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed.`
)

func refused(message string) http.HandlerFunc {
	return answer(400, "", fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, message))
}

// signed is an answer of Gemini with a call that has the signature of a thought.
var signed = stream(`data: {"id":"c","choices":[{"delta":{"tool_calls":[{"index":0,"id":"one","function":{"name":"read_file","arguments":"{}"},` +
	`"extra_content":{"google":{"thought_signature":"gAAA"}}}]}}]}` + "\n\n" + finish("tool_calls"))

// TestDropsUndecryptableItems has what an API can't open left out, and the request made once more; resume does
// so too. LiteLLM before Azure: https://github.com/openai/codex/issues/9045
func TestDropsUndecryptableItems(t *testing.T) {
	t.Parallel()
	thinking := answering(sealedThought, look("one"))
	for name, c := range map[string]struct {
		wire           string
		first, refusal http.HandlerFunc
		gone           []string
	}{
		"by its code":               {"responses", thinking, answer(400, "", `{"error":{"code":"invalid_encrypted_content","message":"No."}}`), []string{"gAAA", "rs_1"}},
		"by its words":              {"responses", thinking, refused(refusedSeal), []string{"gAAA", "rs_1"}},
		"of another item":           {"responses", thinking, refused("Encrypted content item_id did not match the target item id."), []string{"gAAA"}},
		"in a stream":               {"responses", thinking, failed("invalid_encrypted_content", refusedSeal), []string{"gAAA"}},
		"in a stream, without code": {"responses", thinking, failed("", refusedSeal), []string{"gAAA"}},
		"an item that is not kept": {
			"responses", thinking, answer(404, "", `{"error":{"message":"Item with id 'rs_1' not found. Items are not persisted when `+"`store`"+` is set to false."}}`), []string{"rs_1"},
		},
		"a call without its reasoning": {
			"responses", thinking, refused("Item 'fc_one' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."), []string{"fc_one", "rs_1"},
		},
		"a compaction":            {"responses", answering(`{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA"}`, `{"type":"function_call","call_id":"one","name":"read_file","arguments":"{}"}`), refused(refusedSeal), []string{"gAAA"}},
		"a signature of Gemini":   {"chat", signed, refused("Corrupted thought signature."), []string{"gAAA"}},
		"a signature of Vertex's": {"chat", signed, answer(400, "", `[{"error":{"code":400,"message":"Thought signature is not valid.","status":"INVALID_ARGUMENT"}}]`), []string{"gAAA"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, server := oddly(t, c.wire, c.first, c.refusal, saying(c.wire, "Done."))
			var warned []string
			f.Warn = func(code, _ string, _ ...any) { warned = append(warned, code) }
			f.mustSay(t, "Done.")
			must.Same(t, 1, len(slices.DeleteFunc(warned, func(code string) bool { return code != "sealed_reasoning" })), "the run warned")
			for _, words := range c.gone {
				if !strings.Contains(server.bodies[1], words) || strings.Contains(server.bodies[2], words) {
					t.Errorf("%s: requests are %s\n%s", words, server.bodies[1], server.bodies[2])
				}
			}
			must.Contain(t, server.bodies[2], `"one"`)
			f.rebuilds(t, c.wire, server.bodies)

			again, asked := oddly(t, c.wire, c.refusal, saying(c.wire, "Done."))
			events := f.events(t)
			at := slices.IndexFunc(events, func(e transcript.Event) bool { return e.Type == transcript.TypeCompaction })
			p := pastOf(t, events[:at]...)
			again.mustResume(t, p, 0)
			if said, err := again.Run(t.Context()); err != nil || said != "Done." || len(asked.bodies) != 2 {
				t.Errorf("the run that goes on ends in %q, %v after %d requests", said, err, len(asked.bodies))
			}
		})
	}
}

// TestEndsOnRepeatedRefusal ends the run.
func TestEndsOnRepeatedRefusal(t *testing.T) {
	t.Parallel()
	f, server := oddly(t, "responses", answering(sealedThought, look("one")), refused(refusedSeal), refused(refusedSeal))
	if _, err := f.Run(t.Context()); err == nil || len(server.bodies) != 3 {
		t.Errorf("Run = %v after %d requests", err, len(server.bodies))
	}
}

// TestDropsUnstoredReasoning has an API that would look for reasoning by its name. OpenAI without include:
// https://github.com/vercel/ai/issues/7543
func TestDropsUnstoredReasoning(t *testing.T) {
	t.Parallel()
	for reasoning, sent := range map[string]bool{
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null}`:                                                         false,
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I think."}]}`:                                         false,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"","content":[]}`:                                              false,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null,"content":null}`:                                          false,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}`:                                                       true,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null,"content":[{"type":"reasoning_text","text":"I think."}]}`: true,
	} {
		f, server := oddly(t, "responses", answering(reasoning, look("one")), saying("responses", "Done."))
		if said, err := f.Run(t.Context()); err != nil || said != "Done." {
			t.Fatalf("%s: Run = %q, %v", reasoning, said, err)
		}
		must.Same(t, sent, strings.Contains(server.bodies[1], "rs_1"), reasoning, "the request")
		f.rebuilds(t, "responses", server.bodies)
		must.Same(t, true, strings.Contains(f.text(t), "rs_1"), reasoning, "is not on record")
	}
}
