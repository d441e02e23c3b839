package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/search"
)

// looking is a conversation whose model looks for tools by the tool of a name.
func looking(t *testing.T, by, session string, o modeltest.Options) (fixture, *modeltest.Server) {
	t.Helper()
	f, server := talk(t, session, o)
	equip(t, f, by)
	return f, server
}

// equip gives a conversation three tools that have to be looked for.
func equip(t *testing.T, f fixture, by string) {
	t.Helper()
	var deferred []search.Candidate
	all := []tools.Tool{f.box.tool(tools.Spec{Name: "read_file", Parameters: json.RawMessage(`{"type":"object"}`)})}
	for _, name := range []string{"weather_now", "weather_tomorrow", "tide_table"} {
		spec := tools.Spec{Name: name, Description: "Tells it.", Parameters: json.RawMessage(`{"type":"object","properties":{"place":{"type":"string"}}}`)}
		deferred = append(deferred, search.Candidate{Spec: spec, From: "sky"})
		all = append(all, f.box.tool(spec))
	}
	registry := tools.New(append(all, search.Tools(deferred)...)...)
	f.Tools = &tools.Dispatcher{Observer: f.Conversation, Outputs: new(tools.Outputs), Registry: registry, Offered: []string{"read_file", by}}
	definitions, err := agent.Definitions(registry.Specs(f.Tools.Offered))
	if err != nil {
		t.Fatal(err)
	}
	f.Settings.Tools = definitions
}

// sent is what of a request a test looks at.
type sent struct {
	Tools []struct{ Type, Name, Execution string }
	Input []struct {
		Type, Status, Execution string
		CallID                  string `json:"call_id"`
		Content                 []struct{ Text string }
		Tools                   []struct {
			Type, Name string
			Defer      bool `json:"defer_loading"`
		}
	}
}

func requestsOf(t *testing.T, server *modeltest.Server) (all []sent) {
	t.Helper()
	if faults := server.Faults(); len(faults) > 0 {
		t.Error(faults)
	}
	for _, r := range server.Requests() {
		if !strings.Contains(string(r.Body), `"stream"`) {
			continue // to the endpoint that compacts
		}
		var one sent
		if err := json.Unmarshal(r.Body, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func (s sent) names() (names []string) {
	for _, tool := range s.Tools {
		names = append(names, tool.Type+" "+tool.Name)
	}
	return names
}

const byFunction = "version: 1\nturns:\n" +
	"  - output: [{call: search_tool_bm25, arguments: {query: tomorrow, limit: 1}}, {call: search_tool_bm25, arguments: {query: weather}}]\n" +
	"  - expect: [weather_tomorrow, Tells it.]\n    output: [{call: weather_now, arguments: {place: here}}]\n" +
	"  - output: [{call: search_tool_bm25, arguments: {query: weather}}]\n" + done

func TestAFunctionPutsWhatItFindsBehindTheTools(t *testing.T) {
	f, server := looking(t, search.FunctionName, byFunction, modeltest.Options{})
	if said, err := f.Run(t.Context()); err != nil || said != "Done." {
		t.Fatalf("Run = %q, %v", said, err)
	}
	requests := requestsOf(t, server)
	first := []string{"function read_file", "function search_tool_bm25"}
	then := append(slices.Clone(first), "function weather_tomorrow", "function weather_now")
	for i, want := range [][]string{first, then, then, then} {
		if diff := cmp.Diff(want, requests[i].names()); diff != "" {
			t.Errorf("request %d (-want +got):\n%s", i+1, diff)
		}
	}
	bodies := server.Requests()
	before, _, _ := strings.Cut(string(bodies[0].Body), `],"tool_choice"`)
	if !strings.HasPrefix(string(bodies[1].Body), before+",") {
		t.Error("the definitions before those that were found are not as they were")
	}
	if got := f.box.asked; len(got) != 1 || got[0].Name != "weather_now" {
		t.Errorf("asked: %+v", got)
	}
}

const byItem = "version: 1\nturns:\n" +
	"  - output:\n" +
	"      - item: {type: tool_search_call, id: ts_1, call_id: look, status: completed, execution: client, arguments: {query: weather}}\n" +
	"      - item: {type: tool_search_call, id: ts_2, call_id: nothing, status: completed, execution: client, arguments: {query: zebra}}\n" +
	"      - item: {type: tool_search_call, id: ts_3, call_id: bad, status: completed, execution: client, arguments: {query: '', limit: 3}}\n" +
	"      - item: {type: tool_search_call, id: ts_4, call_id: null, status: completed, execution: server, arguments: {}}\n" +
	"  - expect: [query has no words, No tool has any of these words]\n    output: [{call: weather_now, arguments: {place: here}}]\n" + done

func TestToolSearchIsAnsweredInKind(t *testing.T) {
	f, server := looking(t, search.BuiltinName, byItem, modeltest.Options{})
	if said, err := f.Run(t.Context()); err != nil || said != "Done." {
		t.Fatalf("Run = %q, %v", said, err)
	}
	requests := requestsOf(t, server)
	for i, r := range requests {
		if diff := cmp.Diff([]string{"function read_file", "tool_search "}, r.names()); diff != "" || r.Tools[1].Execution != "client" {
			t.Errorf("request %d (-want +got):\n%s", i+1, diff)
		}
	}
	got := map[string]string{}
	for _, item := range requests[1].Input {
		if item.Type != "tool_search_output" {
			continue
		}
		for _, tool := range item.Tools {
			got[item.CallID] += fmt.Sprint(tool.Name, " ", tool.Defer, "; ")
		}
		got[item.CallID] += item.Status + " " + item.Execution
	}
	want := map[string]string{
		"look": "weather_now true; weather_tomorrow true; completed client", "nothing": "completed client", "bad": "incomplete client",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if spent := f.Spent(); spent.Hosted != 1 || spent.Calls != 5 {
		t.Errorf("spent: %+v", spent)
	}
}

// TestWhatWasFoundOutlivesCompactions makes the conversation shorter in each way.
func TestWhatWasFoundOutlivesCompactions(t *testing.T) {
	session := strings.Replace(byItem, done, "", 1)
	for n := range 10 {
		session += fmt.Sprintf("  - output: [{call: read_file, arguments: {n: %d}}]\n    usage: {input: %d}\n", n, 1000*(n+1))
	}
	for _, compacts := range []bool{true, false} {
		f, server := looking(t, search.BuiltinName, session+done, modeltest.Options{Compacts: compacts})
		f.Window = 9_000
		f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("x", 2000)}
		if !compacts {
			f.Window = 4_000
		}
		if _, err := f.Run(t.Context()); err != nil && compacts {
			t.Fatal(err)
		}
		if found := f.compactions(t); len(found) == 0 {
			t.Fatal("the conversation was not made shorter")
		}
		for i, r := range requestsOf(t, server)[1:] {
			told := ""
			for _, item := range r.Input {
				for _, tool := range item.Tools {
					told += tool.Name + " "
				}
			}
			if told != "weather_now weather_tomorrow " {
				t.Errorf("compacts %t: request %d tells of %q", compacts, i+2, told)
			}
		}
	}
}

// TestWhatWasFoundOutlivesARestart stops a run behind each of its events, and goes on: its
// requests are those of the run that was not stopped.
func TestWhatWasFoundOutlivesARestart(t *testing.T) {
	for by, session := range map[string]string{search.FunctionName: byFunction, search.BuiltinName: byItem} {
		f, server := looking(t, by, session, modeltest.Options{})
		if _, err := f.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, events, requests := server.Requests(), f.events(t), 0
		for n, e := range events {
			if e.Type == transcript.TypeModelRequest {
				requests++
			}
			if answered := n+1 < len(events) && e.Type == transcript.TypeToolFinished && events[n+1].Type == transcript.TypeModelRequest; !answered {
				continue
			}
			again, another := looking(t, by, "version: 1\nturns: [{output: [{say: Done.}]}]\n", modeltest.Options{})
			p := pastOf(t, events[:n+1]...)
			again.Restore(p, model.Usage{}, 1)
			if err := again.Resume(t.Context(), p, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := again.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := string(another.Requests()[0].Body), string(all[requests].Body); got != want {
				t.Errorf("%s, behind event %d: sent\n%s\nand without a restart\n%s", by, n+1, got, want)
			}
		}
	}
}
