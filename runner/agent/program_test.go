package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// programs lets programs call the tools of a conversation that change nothing, and others.
func programs(t *testing.T, f fixture, more ...string) {
	t.Helper()
	if err := f.Tools.Registry.LetPrograms(more); err != nil {
		t.Fatal(err)
	}
	f.Tools.Observer, f.Tools.Offered = f.Conversation, f.Tools.Registry.Names()
	var err error
	if f.Settings.Tools, err = agent.Definitions(f.Tools.Registry.Specs(f.Tools.Offered)); err != nil {
		t.Fatal(err)
	}
}

// program is an item of a script that is a program.
func program(id string) string {
	return fmt.Sprintf("{item: {type: program, id: prog_%s, call_id: %s, code: 'text(1)', fingerprint: 'f\"%s'}}", id, id, id)
}

// calls is one that is a call of a tool by a program.
func calls(program, id, tool string) string {
	return fmt.Sprintf("{item: {type: function_call, id: fc_%s, call_id: %s, name: %s, arguments: '{}', status: completed, caller: {type: program, caller_id: %s}}}", id, id, tool, program)
}

// ends is one that is the end of a program.
func ends(program string) string {
	return fmt.Sprintf("{item: {type: program_output, id: progo_%s, call_id: %s, result: '1', status: completed}}", program, program)
}

// session is a script of answers.
func session(answers ...string) string {
	return "version: 1\nturns:\n  - output: [" + strings.Join(answers, "]\n  - output: [") + "]\n"
}

const patching = `{item: {type: apply_patch_call, id: apc_1, call_id: change, status: completed, operation: {type: delete_file, path: a}, caller: {type: program, caller_id: p}}}`

func TestAProgramCallsTools(t *testing.T) {
	t.Parallel()
	f, server := talk(t, session(
		program("p")+","+calls("p", "one", "read_file")+","+
			`{item: {type: shell_call, id: sh_1, call_id: two, status: completed, action: {commands: [ls]}, caller: {type: program, caller_id: p}}},`+
			`{item: {type: custom_tool_call, id: ctc_1, call_id: three, name: apply, input: x, caller: {type: program, caller_id: p}}},`+
			`{item: {type: function_call, id: fc_4, call_id: four, name: read_file, arguments: '{}', status: completed, caller: {type: direct}}}`,
		patching+","+calls("p", "five", "nothing"), ends("p")+",{say: Done.}"), modeltest.Options{})
	programs(t, f)
	if said, err := f.Run(t.Context()); err != nil || said != "Done." {
		t.Fatalf("Run = %q, %v", said, err)
	}
	for _, fault := range server.Faults() {
		t.Error(fault)
	}
	requests := server.Requests()
	for _, part := range []string{
		`{"type":"programmatic_tool_calling"}`, `{"type":"apply_patch"}`,
		`"name":"read_file","strict":false,"parameters":{"type":"object"},"allowed_callers":["direct","programmatic"]`, `{"type":"shell","environment":{"type":"local"},"allowed_callers":["direct","programmatic"]}`,
	} {
		if body := string(requests[0].Body); !strings.Contains(body, part) {
			t.Errorf("the first request lacks %s:\n%s", part, body)
		}
	}
	last := string(requests[2].Body)
	for _, part := range []string{
		`"type":"program"`, `"fingerprint":"f\"p"`,
		`{"type":"function_call_output","call_id":"one","caller":{"type":"program","caller_id":"p"},"output":"hello"}`,
		`{"type":"shell_call_output","call_id":"two","caller":{"type":"program","caller_id":"p"},"status":`,
		`{"type":"custom_tool_call_output","call_id":"three","caller":{"type":"program","caller_id":"p"},"output":""}`,
		`{"type":"function_call_output","call_id":"four","output":"hello"}`,
		`"call_id":"change","caller":{"type":"program","caller_id":"p"},"output":"apply_patch cannot be called from a program in this run. Call it yourself.","status":"failed"}`,
		`{"type":"function_call_output","call_id":"five","caller":{"type":"program","caller_id":"p"},"output":"unsupported call: nothing.`,
	} {
		if !strings.Contains(last, part) {
			t.Errorf("the last request lacks %s:\n%s", part, last)
		}
	}
	if names := f.names(); !slices.Equal(names, []string{"one", "two", "three", "four"}) {
		t.Errorf("calls that ran: %q", names)
	}
	if got := f.Spent(); got.Calls != 7 || got.Hosted != 1 {
		t.Errorf("%d calls and %d of the API count, want 7 and 1", got.Calls, got.Hosted)
	}
	var told []string
	for _, e := range f.events(t) {
		var d transcript.ToolStarted
		if e.Type == transcript.TypeToolStarted && json.Unmarshal(e.Data, &d) == nil {
			told = append(told, d.CallID+" "+d.Program)
		}
	}
	if diff := cmp.Diff([]string{"one p", "two p", "three p", "four ", "change p", "five p"}, told); diff != "" {
		t.Errorf("recorded calls (-want +got):\n%s", diff)
	}
}

func TestAProgramPatchesWhereTheJobSaysSo(t *testing.T) {
	t.Parallel()
	f, server := talk(t, session(program("p")+","+patching, ends("p")+",{say: Done.}"), modeltest.Options{})
	programs(t, f, "apply_patch")
	if _, err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names := f.names(); !slices.Equal(names, []string{"change"}) {
		t.Errorf("calls that ran: %q", names)
	}
	if body := string(server.Requests()[0].Body); !strings.Contains(body, `{"type":"apply_patch","allowed_callers":["direct","programmatic"]}`) {
		t.Errorf("the first request is\n%s", body)
	}
}

func TestCallsOfAProgramThatNobodyLetAreRefused(t *testing.T) {
	t.Parallel()
	f := converse(t, session(program("p")+","+calls("p", "one", "read_file"), ends("p")+",{say: Done.}"))
	if _, err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if body := f.requests.bodies[1]; len(f.box.asked) > 0 || !strings.Contains(body, "read_file cannot be called from a program in this run") {
		t.Errorf("%d calls ran, and the second request is\n%s", len(f.box.asked), body)
	}
}

// What a program calls over and over again the model has not seen, and cannot learn from.
func TestAProgramThatRepeatsACallIsNotStuck(t *testing.T) {
	t.Parallel()
	var same, others []string
	for n := range 7 {
		id := fmt.Sprintf("c%d", n)
		if same = append(same, calls("p", id, "broken")); n == 0 {
			same[0] = program("p") + "," + same[0]
		}
		p := fmt.Sprintf("p%d", n)
		answer := program(p) + "," + calls(p, id, "broken")
		if n > 0 {
			answer = ends(fmt.Sprintf("p%d", n-1)) + "," + answer
		}
		others = append(others, answer)
	}
	f := converse(t, session(append(same, ends("p")+",{say: Gave up.}")...))
	programs(t, f)
	if said, err := f.Run(t.Context()); err != nil || said != "Gave up." {
		t.Errorf("Run = %q, %v", said, err)
	}
	f = converse(t, session(others...))
	programs(t, f)
	var stop *outcome.Stop
	if _, err := f.Run(t.Context()); !errors.As(err, &stop) || stop.Reason != "stuck_loop" {
		t.Errorf("a model that writes the same program again and again ends in %v", err)
	}
}

func TestAProgramGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	f := converse(t, "version: 1\nturns: [{output: [{say: Done.}]}]\n")
	programs(t, f)
	of := func(id string) string {
		return strings.Replace(look(id), `"type"`, `"caller":{"type":"program","caller_id":"p"},"type"`, 1)
	}
	const item = `{"type":"program","id":"prog","call_id":"p","code":"text( 1 )","fingerprint":"f"}`
	p := pastOf(
		t,
		event(transcript.TypeModelRequest, `{"turn":1,"settings":{"store":false},"input":[]}`),
		event(transcript.TypeModelResponse, `{"turn":1,"id":"r","status":"completed","output":[`+item+`,`+of("one")+`,`+of("two")+`]}`),
		event(transcript.TypeToolStarted, `{"turn":1,"number":1,"program":"p","call_id":"one","tool":"read_file","input":"{}"}`),
		event(transcript.TypeToolFinished, `{"turn":1,"number":1,"program":"p","call_id":"one","tool":"read_file","output":"before"}`),
	)
	f.Restore(p, nil, 0)
	if err := f.Resume(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		item, `{"type":"function_call_output","call_id":"one","caller":{"type":"program","caller_id":"p"},"output":"before"}`,
		`{"type":"function_call_output","call_id":"two","caller":{"type":"program","caller_id":"p"},"output":"hello"}`,
	} {
		if !strings.Contains(f.requests.bodies[0], part) {
			t.Errorf("the request lacks %s:\n%s", part, f.requests.bodies[0])
		}
	}
	if names := f.names(); !slices.Equal(names, []string{"two"}) {
		t.Errorf("calls that ran: %q", names)
	}
	if got := f.Spent(); got.Calls != 3 || got.Hosted != 1 {
		t.Errorf("%d calls and %d of the API count, want 3 and 1", got.Calls, got.Hosted)
	}
}

func TestAnEndpointThatKnowsNoPrograms(t *testing.T) {
	t.Parallel()
	f, server := talk(t, session("{say: Done.}"), modeltest.Options{})
	server.Replace(1, answer(400, "", `{"error":{"message":"Unknown tool type programmatic_tool_calling"}}`))
	programs(t, f)
	_, err := f.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "model.programmatic is on, which not every model and endpoint knows; leave it out if this one does not.") {
		t.Errorf("Run ended in %v", err)
	}
	f, server = talk(t, session("{say: Done.}"), modeltest.Options{})
	server.Replace(1, answer(400, "", `{"error":{"message":"no"}}`))
	if _, err = f.Run(t.Context()); err == nil || strings.Contains(err.Error(), "programmatic") {
		t.Errorf("without programs Run ended in %v", err)
	}
}

// A program that has not come to its end is in every request with all of its calls and whole
// outputs, however long the conversation is; of one that has, all is there or nothing.
func TestTrimmingKeepsPrograms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var answers []string
		running := []string{""} // by request, from the first on
		for n := range rapid.IntRange(1, 4).Draw(rt, "programs") {
			id := fmt.Sprintf("p%d", n)
			for turn := range rapid.IntRange(1, 4).Draw(rt, "turns") {
				var items []string
				switch {
				case turn == 0 && rapid.Bool().Draw(rt, "thinks"):
					items = append(items, fmt.Sprintf("{item: {type: reasoning, id: rs_%d, summary: [], encrypted_content: %s}}", n, strings.Repeat("o", 400)), program(id))
				case turn == 0:
					items = append(items, program(id))
				}
				for i := range rapid.IntRange(1, 3).Draw(rt, "calls") {
					items = append(items, calls(id, fmt.Sprintf("c%d_%d_%d", n, turn, i), "read_file"))
				}
				answers, running = append(answers, strings.Join(items, ",")), append(running, id)
			}
			answers, running = append(answers, ends(id)+",{call: read_file, arguments: {}}"), append(running, "")
		}
		answers = append(answers, "{say: Done.}")
		f, server := talk(t, session(answers...), modeltest.Options{Compacts: rapid.Bool().Draw(rt, "compacts")})
		programs(t, f)
		f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("y", rapid.IntRange(0, 3000).Draw(rt, "output"))}
		f.Window = int64(rapid.IntRange(1500, 8000).Draw(rt, "window"))
		if _, err := f.Run(t.Context()); err != nil {
			rt.Fatalf("Run ended in %v", err)
		}
		for _, fault := range server.Faults() {
			rt.Error(fault)
		}
		turn := 0
		for _, request := range server.Requests() {
			body := string(request.Body)
			if strings.Contains(body, `"tool_choice":"none"`) { // for a summary
				if turn < len(running) && running[turn] != "" {
					rt.Errorf("a summary is asked for while %s runs", running[turn])
				}
				continue
			}
			if turn < len(running) && running[turn] != "" {
				wantWhole(rt, body, running[turn], strings.Join(answers[:turn], ","), f.box.answers["read_file"].Output)
			}
			turn++
		}
	})
}

// wantWhole fails unless a request has all that answers say of a program, and its outputs whole.
func wantWhole(rt *rapid.T, body, id, answers, output string) {
	if !strings.Contains(body, `"id":"prog_`+id+`"`) {
		rt.Fatalf("the program %s is gone from\n%s", id, body)
	}
	made := strings.Count(answers, "caller_id: "+id+"}")
	whole := strings.Count(body, `"caller":{"type":"program","caller_id":"`+id+`"},"output":"`+output+`"`)
	if whole != made {
		rt.Fatalf("of %d outputs of %s %d are whole in\n%s", made, id, whole, body)
	}
}
