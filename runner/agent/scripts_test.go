package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

const wrote = `{"type":"custom_tool_call","id":"i","call_id":"script","name":"exec","input":"..."}`

func callStarted(number, caller int, tool, more string) transcript.Event {
	return event(transcript.TypeToolStarted, fmt.Sprintf(`{"turn":1,"number":%d,"caller":%d,"call_id":"c","tool":%q,"input":"the input"%s}`, number, caller, tool, more))
}

func callEnded(number, caller int, output, more string) transcript.Event {
	return event(transcript.TypeToolFinished, fmt.Sprintf(`{"turn":1,"number":%d,"caller":%d,"call_id":"c","tool":"t","output":%q%s}`, number, caller, output, more))
}

// TestReportsInterruptedScript kills a run while a script waits for its calls: one patch was
// being applied, and what stood behind it had not run, whatever the journal of patches says.
func TestReportsInterruptedScript(t *testing.T) {
	t.Parallel()
	f, server := talk(t, "version: 1\nturns: [{output: [{say: Done.}]}]\n", modeltest.Options{})
	p := pastOf(t,
		event(transcript.TypeModelRequest, `{"turn":1,"settings":{"store":false},"input":[]}`),
		event(transcript.TypeModelResponse, `{"turn":1,"id":"r","status":"completed","output":[`+wrote+`]}`),
		callStarted(1, 0, "exec", ""),
		callStarted(1, 1, "read_file", ""), callEnded(1, 1, "what it read", ""),
		callStarted(2, 1, "apply_patch", `,"mutates":true`),
		callStarted(3, 1, "apply_patch", `,"mutates":true`),
		callStarted(4, 1, "exec_command", ""),
	)
	f.Restore(p, nil, 0)
	var asked []string
	broken := func(call tools.Call) tools.Result {
		asked = append(asked, call.Name)
		return tools.Refuse(call.Name + " was broken off.")
	}
	must.Do(t, f.Resume(t.Context(), p, broken))
	f.mustSay(t, "Done.")
	must.Same(t, "apply_patch exec", strings.Join(asked, " "), "told what became of")
	want := `"output":"exec was broken off.\n\nThe calls that it made, and what came of each:\n- read_file the input: what it read\n- apply_patch the input: apply_patch was broken off.\n` +
		`- apply_patch the input: Not run: the runner was killed while a call before this one changed something, and this one waited for that.\n- exec_command the input: Not run: `
	must.Contain(t, string(server.Requests()[0].Body), want)
	if text := f.text(t); strings.Count(text, `"type":"tool.finished"`) != 4 { // three calls of the script, and its own
		t.Errorf("not all calls have ended:\n%s", text)
	}
	must.Same(t, 5, f.Spent().Calls)
}

// TestReportsContinuedScriptCalls is of a script whose own call was answered before.
func TestReportsContinuedScriptCalls(t *testing.T) {
	t.Parallel()
	f, server := talk(t, "version: 1\nturns: [{output: [{say: Done.}]}]\n", modeltest.Options{})
	p := pastOf(t,
		event(transcript.TypeModelRequest, `{"turn":1,"settings":{"store":false},"input":[]}`),
		event(transcript.TypeModelResponse, `{"turn":1,"id":"r","status":"completed","output":[`+wrote+`]}`),
		callStarted(1, 0, "exec", ""), callStarted(1, 1, "read_file", ""), callEnded(1, 1, "told of before", ""), callStarted(2, 1, "exec_command", ""),
		callStarted(3, 1, "list_dir", `,"refused":true`), callEnded(3, 1, "Not run: limits.tool_calls is used up, and the run ends here.", `,"not_run":true`),
		callStarted(4, 1, "exec", `,"refused":true`), callEnded(4, 1, "exec cannot be called from a script. Call it yourself.", `,"not_run":true`),
		callEnded(1, 0, "Script running with cell ID 1", ""),
		event(transcript.TypeModelRequest, `{"turn":2,"input":[{"type":"custom_tool_call_output","call_id":"script","output":"Script running with cell ID 1"}]}`),
	)
	f.Restore(p, nil, 0)
	must.Do(t, f.Resume(t.Context(), p, func(tools.Call) tools.Result { return tools.Refuse("It was broken off.") }))
	f.mustRun(t)
	body := string(server.Requests()[0].Body)
	must.Contain(t, body, `the scripts are gone. The last calls that they made, and what came of each:\n- exec_command the input: It was broken off."`)
	if calls := f.Spent().Calls; calls != 3 { // the script, and two of its calls: the others were refused
		t.Errorf("%d calls count", calls)
	}
}
