package agent_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// fallbacks are those that the transcript tells of.
func (f fixture) fallbacks(t *testing.T) []transcript.ModelFallback {
	t.Helper()
	return decoded[transcript.ModelFallback](t, f, transcript.TypeModelFallback)
}

// begun is a conversation of which the first model kept the beginning for itself.
const begun = `[{"type":"message","role":"user","content":[{"type":"input_text","text":"The task."}]},
	{"type":"compaction","id":"c","encrypted_content":"opaque"},
	{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"thoughts"},
	{"type":"unheard_of","id":"p"},
	{"type":"web_search_call","id":"ws","status":"completed"},
	{"type":"function_call_output","call_id":"one","output":"found"}]`

func TestFallbackKeepsReadableItems(t *testing.T) {
	t.Parallel()
	f := converse(t, "version: 1\nturns: [{fail: {status: 404, code: model_not_found, message: gone}}, {output: [{say: Done.}], usage: {input: 1000000, output: 3}}]\n")
	f.UseModel(agent.ModelOptions{Model: "first", Effort: "high", Window: 9, Price: &price.List{Rates: price.Rates{Input: 1}}})
	f.Settings.SerialCalls = true
	f.Fallbacks = []agent.ModelOptions{{Model: "second", Window: 1 << 30, Price: &price.List{Rates: price.Rates{Input: 5}}}, {Model: "third"}}
	past := pastOf(t, event(transcript.TypeModelRequest, `{"turn":1,"settings":{"store":false},"input":`+begun+`}`))
	f.Restore(past, []transcript.ModelUse{{Model: "first", Usage: transcript.Usage{Input: 2_000_000}, CostUSD: 2, Price: &price.List{Rates: price.Rates{Input: 1}}}}, 6)
	f.mustSay(t, "Done.")
	first, second := f.requests.bodies[0], f.requests.bodies[1]
	for _, part := range []string{`"model":"first"`, `"effort":"high"`, "opaque", "thoughts", `"unheard_of"`} {
		must.Contain(t, first, part)
		must.Lack(t, second, part)
	}
	must.Contain(t, second, `"model":"second"`, `"parallel_tool_calls":false`, "The task.", "web_search_call", `"output":"found"`, "look at the checkout and its changes")
	want := []transcript.ModelFallback{{
		Turn: 2, From: "first", To: "second", Reason: "not_found", Message: "model request: not_found (HTTP 404): gone", OmittedItems: []int{1, 2, 3}, Price: &price.List{Rates: price.Rates{Input: 5}},
	}}
	must.Same(t, want, f.fallbacks(t), "fallbacks")
	if cost, known := transcript.CostOf(f.Spent().Models); !known || cost != 2+5 {
		t.Errorf("it cost %v, %t", cost, known)
	}
	must.Same(t, 1, len(f.Fallbacks), "models are left, the window")
	must.Same(t, 1<<30, f.Window, "models are left, the window")
}

func TestResumeKeepsFallbackModel(t *testing.T) {
	t.Parallel()
	f := converse(t, "version: 1\nturns: [{output: [{say: Done.}]}]\n")
	f.UseModel(agent.ModelOptions{Model: "first"})
	f.Settings.ServiceTier = model.FlexTier
	f.Fallbacks = []agent.ModelOptions{{Model: "second"}, {Model: "third"}, {Model: "fourth"}}
	past := pastOf(t,
		event(transcript.TypeModelRequest, `{"turn":1,"settings":{"store":false,"service_tier":"default"},"input":`+begun+`}`),
		event(transcript.TypeModelFallback, `{"turn":1,"from":"first","to":"second","left_out":[1]}`),
		event(transcript.TypeModelFallback, `{"turn":1,"from":"second","to":"third","left_out":[1,2]}`),
	)
	f.Restore(past, nil, 1)
	f.mustRun(t)
	body := f.requests.bodies[0]
	must.Contain(t, body, `"model":"third"`, `"service_tier":"default"`, "web_search_call")
	for _, gone := range []string{"opaque", "thoughts", `"unheard_of"`} {
		must.Lack(t, body, gone)
	}
	if len(f.Fallbacks) != 1 || f.Fallbacks[0].Model != "fourth" {
		t.Errorf("left are %+v", f.Fallbacks)
	}
}
