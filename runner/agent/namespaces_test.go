package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/callitem"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// led gives a conversation, besides a tool of its own, two in a namespace, which say what they were
// called with.
func led(t *testing.T, f fixture) {
	t.Helper()
	tool := func(name, group string) tools.Tool {
		spec := tools.Spec{Name: name, Description: "Does.", Parameters: json.RawMessage(`{"type":"object"}`), Namespace: tools.Namespace{Name: group, Description: "Others."}}
		return tools.Tool{Spec: spec, Run: func(_ context.Context, call tools.Call) (tools.Result, error) {
			return tools.Result{Output: name + " got " + call.Input}, nil
		}}
	}
	f.Tools.Registry = tools.New(tool("spawn_agent", "collaboration"), tool("look", ""), tool("wait", ""), tool("wait_agent", "collaboration"))
	f.Tools.Observer, f.Tools.Offered = f.Conversation, f.Tools.Registry.Names()
	var err error
	if f.Settings.Tools, err = callitem.Definitions(f.Tools.Registry.Specs(f.Tools.Offered)); err != nil {
		t.Fatal(err)
	}
}

const (
	inGroup = `{"type":"namespace","name":"collaboration","description":"Others.","tools":[` +
		`{"type":"function","name":"spawn_agent","description":"Does.","strict":false,"parameters":{"type":"object"}},` +
		`{"type":"function","name":"wait_agent","description":"Does.","strict":false,"parameters":{"type":"object"}}]}`
	alone = `[{"type":"function","name":"spawn_agent","description":"Does.","strict":false,"parameters":{"type":"object"}},` +
		`{"type":"function","name":"wait_agent",`
)

const theTask = `{"type":"message","role":"user","content":[{"type":"input_text","text":"The task."}]}`

// named is an item of a script that is a call of a tool in a namespace.
func named(id, group, name string) string {
	return "{item: {type: function_call, id: fc_" + id + ", call_id: " + id + ", namespace: " + group + ", name: " + name + ", arguments: '{}', status: completed}}"
}

func TestOffersAndCallsToolsInNamespaces(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		"tools": `"tools":[` + inGroup + `,{"type":"function","name":"look",`,
		"input": `{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","description":"Tools of the runner.","tools":[{"type":"function","name":"look",` +
			`"description":"Does.","strict":false,"parameters":{"type":"object"}},{"type":"function","name":"wait","description":"Does.","strict":false,"parameters":{"type":"object"}}]},` + inGroup + `]}`,
	} {
		t.Run(form, func(t *testing.T) {
			f, server := talk(t, session(named("one", "collaboration", "spawn_agent")+","+named("two", "functions", "look")+","+
				named("three", "collaboration", "wait")+","+named("four", "functions", "wait")+",{call: collaboration.wait_agent, id: five, arguments: {}}", "{say: Done.}"), modeltest.Options{})
			led(t, f)
			f.Settings.ToolsInInput = form == "input"
			f.mustSay(t, "Done.")
			for _, fault := range server.Faults() {
				t.Error(fault)
			}
			requests := server.Requests()
			must.Contain(t, string(requests[0].Body), want)
			last := string(requests[1].Body)
			must.Contain(t, last,
				`"call_id":"one","output":"spawn_agent got {}"`, `"call_id":"two","output":"look got {}"`, `"call_id":"three","output":"wait_agent got {}"`,
				`"call_id":"four","output":"wait got {}"`, `"call_id":"five","output":"wait_agent got {}"`, `"namespace":"collaboration"`,
			)
		})
	}
}

// TestAdaptsToEndpointWithoutNamespaces refuses them once: from then on tools stand by themselves, after
// a restart too.
func TestAdaptsToEndpointWithoutNamespaces(t *testing.T) {
	t.Parallel()
	f, server := talk(t, "version: 1\nturns:\n  - fail: {status: 400, message: \"Invalid value: 'namespace'. Supported values are: 'function' and 'custom'.\"}\n"+
		"  - output: [{call: spawn_agent, id: one, arguments: {}}]\n  - output: [{say: Done.}]\n", modeltest.Options{})
	led(t, f)
	f.mustSay(t, "Done.")
	for _, fault := range server.Faults() {
		t.Error(fault)
	}
	requests := server.Requests()
	if len(requests) != 3 || !strings.Contains(string(requests[0].Body), inGroup) {
		t.Fatalf("%d requests, the first %s", len(requests), requests[0].Body)
	}
	for _, request := range requests[1:] {
		if body := string(request.Body); !strings.Contains(body, alone) || strings.Contains(body, `"namespace"`) {
			t.Errorf("a request is %s", body)
		}
	}
	must.Contain(t, string(requests[2].Body), `"call_id":"one","output":"spawn_agent got {}"`)

	settings := must.Get(f.Settings.SettingsJSON())(t)
	resumed, again := talk(t, session("{say: Done.}"), modeltest.Options{})
	led(t, resumed)
	resumed.Restore(pastOf(t, event(transcript.TypeModelRequest, `{"turn":1,"settings":`+string(settings)+`,"input":[`+theTask+`]}`)), nil, 0)
	must.Do(t, must.Err(resumed.Run(t.Context())), again.Faults())
	must.Contain(t, string(again.Requests()[0].Body), alone)
}

// TestResumeKeepsNamespaces is of one whose endpoint knows them.
func TestResumeKeepsNamespaces(t *testing.T) {
	t.Parallel()
	for _, additional := range []bool{false, true} {
		f, server := talk(t, session("{say: Done.}"), modeltest.Options{})
		led(t, f)
		f.Settings.ToolsInInput = additional
		settings := must.Get(f.Settings.SettingsJSON())(t)
		f.Restore(pastOf(t, event(transcript.TypeModelRequest, `{"turn":1,"settings":`+string(settings)+`,"input":[`+theTask+`]}`)), nil, 0)
		f.mustRun(t)
		must.Contain(t, string(server.Requests()[0].Body), inGroup)
	}
}

// session returns a scripted session with one turn for each list of items.
func session(answers ...string) string {
	return "version: 1\nturns:\n  - output: [" + strings.Join(answers, "]\n  - output: [") + "]\n"
}
