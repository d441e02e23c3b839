package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// live answers each request by the next of its functions, which hand over items
// themselves.
type live []func(context.Context, model.Observer) (*model.Response, error)

func (l *live) Respond(ctx context.Context, _ model.Request, o model.Observer) (*model.Response, error) {
	next := (*l)[0]
	*l = (*l)[1:]
	return next(ctx, o)
}

func cut() error { return &model.Failure{Kind: model.StreamCut, Message: "cut"} }

// whole answers with items.
func whole(items ...string) func(context.Context, model.Observer) (*model.Response, error) {
	return func(_ context.Context, o model.Observer) (*model.Response, error) {
		response := &model.Response{ID: "resp", Status: "completed"}
		for _, item := range items {
			response.Output = append(response.Output, json.RawMessage(item))
			o.TakeItem(json.RawMessage(item))
		}
		return response, nil
	}
}

func says(text string) func(context.Context, model.Observer) (*model.Response, error) {
	return whole(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}`)
}

func look(id string) string {
	return `{"type":"function_call","id":"fc_` + id + `","call_id":"` + id + `","name":"read_file","arguments":"{\"file_path\":\"` + id + `\"}"}`
}

const change = `{"type":"apply_patch_call","id":"apc_1","call_id":"change","status":"completed","operation":{"type":"delete_file","path":"a"}}`

// started tells of each call that starts.
type started chan string

func (s started) Started(call tools.Started) error { s <- call.Call.ID; return nil }
func (started) Finished(tools.Finished)            {}

func conversing(t *testing.T, answers ...func(context.Context, model.Observer) (*model.Response, error)) (fixture, started) {
	t.Helper()
	f := converse(t, "version: 1\nturns: [{output: []}]\n")
	seen := make(started, 16)
	f.Tools = f.box.dispatcher(seen)
	l := live(answers)
	f.requests.next = &model.Retrying{Next: &l, FirstPause: time.Microsecond}
	t.Cleanup(func() {
		must.None(t, l, "answers were not asked for")
	})
	return f, seen
}

func (f fixture) names() []string {
	var names []string
	for _, call := range f.box.asked {
		names = append(names, call.ID)
	}
	return names
}

func TestRunsCallsWhileAnswerArrives(t *testing.T) {
	t.Parallel()
	var seen started
	f, seen := conversing(t, func(ctx context.Context, o model.Observer) (*model.Response, error) {
		o.TakeItem(json.RawMessage(look("one")))
		if id := <-seen; id != "one" { // before the answer is whole
			t.Errorf("started %s", id)
		}
		return &model.Response{ID: "resp", Status: "completed", Output: []json.RawMessage{json.RawMessage(look("one"))}}, nil
	}, says("Done."))
	f.mustSay(t, "Done.")
	must.Same(t, []string{"one"}, f.names())
}

func TestContinuesFromInterruptedAnswer(t *testing.T) {
	t.Parallel()
	var seen started
	f, seen := conversing(t, whole(look("zero")), func(_ context.Context, o model.Observer) (*model.Response, error) {
		<-seen // zero
		o.TakeItem(json.RawMessage(`{"type":"reasoning","id":"rs_1","encrypted_content":"first"}`))
		o.TakeItem(json.RawMessage(look("one")))
		<-seen
		o.TakeItem(json.RawMessage(`{"type":"reasoning","id":"rs_2","encrypted_content":"second"}`))
		o.TakeItem(json.RawMessage(change))
		o.TakeItem(json.RawMessage(look("two")))
		return nil, cut()
	}, whole(look("two")), says("Done."))
	f.mustSay(t, "Done.")
	must.Same(t, []string{"zero", "one", "two"}, f.names(), "calls that ran")
	third := f.requests.bodies[2]
	rest := `{"type":"reasoning","id":"rs_1","encrypted_content":"first"},` + look("one") + `,{"type":"function_call_output","call_id":"one","output":"hello"}]}`
	if !strings.HasSuffix(third, rest) || strings.Contains(third, "second") {
		t.Errorf("the third request does not go on behind the call that ran:\n%s", third)
	}
	must.Contain(t, third, look("zero"))
	if spent := f.Spent(); spent.Calls != 3 || spent.Turns != 4 {
		t.Errorf("spent %+v", spent)
	}
	must.Same(t, true, slices.Contains(f.types(t), "model.retry"), "nothing is recorded of the break")
}

func TestRetriesAnswerWithoutStartedCall(t *testing.T) {
	t.Parallel()
	f, _ := conversing(t, func(_ context.Context, o model.Observer) (*model.Response, error) {
		o.TakeItem(json.RawMessage(change))
		o.TakeItem(json.RawMessage(look("one")))
		return nil, cut()
	}, whole(look("two"), change), says("Done."))
	f.mustRun(t)
	must.Same(t, []string{"two", "change"}, f.names(), "calls that ran")
	must.Same(t, 1, f.box.asked[0].Number, "the first call that ran has number")
	if spent := f.Spent(); spent.Turns != 2 || spent.Calls != 2 {
		t.Errorf("spent %+v", spent)
	}
}

func TestEndsWhenAnswerCannotBeRepeated(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"refused":   &model.Failure{Kind: model.Refused, Message: "no"},
		"cancelled": context.Canceled,
	} {
		t.Run(name, func(t *testing.T) {
			running := make(chan struct{}, 1)
			f, _ := conversing(t, func(_ context.Context, o model.Observer) (*model.Response, error) {
				o.TakeItem(json.RawMessage(look("one")))
				<-running
				o.TakeItem(json.RawMessage(change))
				return nil, failure
			})
			f.box.hold = func(context.Context) { running <- struct{}{} }
			if _, err := f.Run(t.Context()); err == nil || name == "cancelled" && !errors.Is(err, context.Canceled) {
				t.Errorf("Run ended in %v", err)
			}
			must.Same(t, []string{"one"}, f.names(), "calls that ran")
		})
	}
}

func TestStopsCallsOfFinalAnswer(t *testing.T) {
	t.Parallel()
	var seen started
	f, seen := conversing(t, func(_ context.Context, o model.Observer) (*model.Response, error) {
		o.TakeItem(json.RawMessage(look("one")))
		<-seen
		return nil, &model.Failure{Kind: model.Refused, Message: "no"}
	})
	f.box.hold = func(ctx context.Context) { <-ctx.Done() }
	must.Fail(t, "no", must.Err(f.Run(t.Context())), "Run ended in")
}

func TestRunsNoIncompleteCall(t *testing.T) {
	t.Parallel()
	half := strings.Replace(look("half"), `"type"`, `"status":"incomplete","type"`, 1)
	f, _ := conversing(t, whole(look("one"), half, look("two")), says("Done."))
	f.mustRun(t)
	must.Same(t, []string{"one"}, f.names(), "calls that ran")
	for _, id := range []string{"half", "two"} {
		if part := `"call_id":"` + id + `","output":"Not run: the answer breaks off`; !strings.Contains(f.requests.bodies[1], part) {
			t.Errorf("no answer to %s in\n%s", id, f.requests.bodies[1])
		}
	}
}

func TestAnswersBuiltInCallsInTheirForm(t *testing.T) {
	t.Parallel()
	const action = `{"commands":["ls","false"],"timeout_ms":null,"max_output_length":4096}`
	ran := []tools.Ran{{Output: "a\n"}, {Output: "late", ExitCode: 124, TimedOut: true}}
	for _, test := range []struct {
		name, item string
		result     tools.Result
		want       string
	}{
		{
			"shell_call", `{"type":"shell_call","id":"sh_1","call_id":"c","status":"completed","environment":null,"action":` + action + `}`,
			tools.Result{Commands: ran, Failed: true},
			`{"type":"shell_call_output","call_id":"c","status":"completed","max_output_length":4096,"output":[{"stdout":"a\n","stderr":"","outcome":{"type":"exit","exit_code":0}},{"stdout":"late","stderr":"","outcome":{"type":"timeout"}}]}`,
		},
		{
			"shell_call here, without a length", `{"type":"shell_call","id":"sh_1","call_id":"c","status":"completed","environment":{"type":"local"},"action":{"commands":["ls"]}}`,
			tools.Result{Commands: ran[:1]},
			`{"type":"shell_call_output","call_id":"c","status":"completed","output":[{"stdout":"a\n","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`,
		},
		{
			"shell_call that is refused", `{"type":"shell_call","id":"sh_1","call_id":"c","status":"completed","environment":null,"action":{"commands":["ls"]}}`,
			tools.Refuse("no"),
			`{"type":"shell_call_output","call_id":"c","status":"incomplete","output":[{"stdout":"no","stderr":"","outcome":{"type":"exit","exit_code":1}}]}`,
		},
		{
			"local_shell_call", `{"type":"local_shell_call","id":"ls_1","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}}`,
			tools.Result{Commands: []tools.Ran{{Output: "a\n", ExitCode: 2, Took: 1240 * time.Millisecond}}, Failed: true},
			`{"id":"c","type":"local_shell_call_output","call_id":"c","output":"{\"output\":\"a\\n\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":1.2}}","status":"completed"}`,
		},
		{"apply_patch_call", change, tools.Result{Output: "done"}, `{"type":"apply_patch_call_output","call_id":"change","output":"done","status":"completed"}`},
		{"apply_patch_call that is refused", change, tools.Refuse("no"), `{"type":"apply_patch_call_output","call_id":"change","output":"no","status":"failed"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, _ := conversing(t, whole(test.item), says("Done."))
			f.box.answers["shell"], f.box.answers["apply_patch"] = test.result, test.result
			f.mustRun(t)
			if !strings.HasSuffix(f.requests.bodies[1], test.want+"]}") {
				t.Errorf("the second request does not end in %s:\n%s", test.want, f.requests.bodies[1])
			}
		})
	}
}

func TestCountsHostedCalls(t *testing.T) {
	t.Parallel()
	search := `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`
	container := `{"type":"shell_call","id":"sh_1","call_id":"far","status":"completed","environment":{"type":"container_reference","container_id":"c"},"action":{"commands":["ls"]}}`
	output := `{"type":"shell_call_output","id":"sho_1","call_id":"far","status":"completed","output":[],"max_output_length":null}`
	f, _ := conversing(t, whole(search, container, output, look("one")))
	f.Limits.Calls = 3
	must.Fail(t, "limits.tool_calls", must.Err(f.Run(t.Context())), "Run ended in")
	must.Same(t, []string{"one"}, f.names(), "calls that ran here")
	must.Same(t, agent.Spent{Turns: 1, Calls: 3, Models: []transcript.ModelUse{{}}}, f.Spent(), "spent")
}

func TestDeniesApprovalRequests(t *testing.T) {
	t.Parallel()
	f, _ := conversing(t, whole(`{"type":"mcp_approval_request","id":"mcpr_1","server_label":"docs","name":"ask","arguments":"{}"}`), says("Done."))
	f.mustSay(t, "Done.")
	must.Contain(t, f.requests.bodies[1], `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false,`)
}
