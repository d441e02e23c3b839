package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/callitem"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
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

// equip gives a conversation three tools that have to be looked for, and more.
func equip(t *testing.T, f fixture, by string, more ...tools.Spec) {
	t.Helper()
	var deferred []search.Candidate
	all := []tools.Tool{f.box.tool(tools.Spec{Name: "read_file", Parameters: json.RawMessage(`{"type":"object"}`)})}
	for _, name := range []string{"weather_now", "weather_tomorrow", "tide_table"} {
		spec := tools.Spec{Name: name, Description: "Tells it.", Parameters: json.RawMessage(`{"type":"object","properties":{"place":{"type":"string"}}}`)}
		deferred = append(deferred, search.Candidate{Tool: tools.Tool{Spec: spec}, Source: "sky"})
		all = append(all, f.box.tool(spec))
	}
	for _, spec := range more {
		deferred = append(deferred, search.Candidate{Tool: tools.Tool{Spec: spec}, Source: "sea"})
		all = append(all, f.box.tool(spec))
	}
	registry := tools.New(append(all, search.Tools(deferred)...)...)
	f.Tools = &tools.Dispatcher{Observer: f.Conversation, Outputs: new(tools.Outputs), Registry: registry, Offered: []string{"read_file", by}}
	definitions := must.Get(callitem.Definitions(registry.Specs(f.Tools.Offered)))(t)
	f.Settings.Tools = definitions
}

// sent is what of a request a test looks at.
type sent struct {
	Tools []struct{ Type, Name string }
	Input []struct {
		Tools []struct{ Name string }
	}
}

func requestsOf(t *testing.T, server *modeltest.Server) (all []sent) {
	t.Helper()
	noFaults(t, server)
	for _, body := range bodiesOf(server) {
		var one sent
		must.Do(t, json.Unmarshal([]byte(body), &one))
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

func TestAppendsFoundTools(t *testing.T) {
	t.Parallel()
	f, server := looking(t, search.FunctionName, byFunction, modeltest.Options{})
	f.mustSay(t, "Done.")
	requests := requestsOf(t, server)
	first := []string{"function read_file", "function search_tool_bm25"}
	then := append(slices.Clone(first), "function weather_tomorrow", "function weather_now")
	for i, want := range [][]string{first, then, then, then} {
		must.Same(t, want, requests[i].names(), "request", i+1)
	}
	bodies := server.Requests()
	before, _, _ := strings.Cut(string(bodies[0].Body), `],"tool_choice"`)
	must.Same(t, true, strings.HasPrefix(string(bodies[1].Body), before+","), "the definitions before those that were found are not as they were")
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

// TestCompactionKeepsUsedTools makes the conversation shorter in each way: of what was found
// the model is told of that which it calls, and no more of the rest.
func TestCompactionKeepsUsedTools(t *testing.T) {
	t.Parallel()
	for by, begin := range map[string]string{search.FunctionName: byFunction, search.BuiltinName: byItem} {
		session := strings.Replace(begin, done, "", 1)
		for n := range 10 {
			session += fmt.Sprintf("  - output: [{call: read_file, arguments: {n: %d}}, {call: weather_now, arguments: {place: here}}]\n    usage: {input: %d}\n", n, 1000*(n+1))
		}
		for _, compacts := range []bool{true, false} {
			f, server := looking(t, by, session+done, modeltest.Options{Compacts: compacts})
			f.Window = 9_000
			f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("x", 2000)}
			if !compacts {
				f.Window = 4_000
			}
			must.Do(t, must.Err(f.Run(t.Context())), by, compacts)
			if found := f.compactions(t); len(found) == 0 {
				t.Fatal("the conversation was not made shorter")
			}
			requests := requestsOf(t, server)
			for i, r := range requests[2:] {
				if !slices.Contains(r.found(), "weather_now") {
					t.Errorf("%s, compacts %t: request %d tells of %q", by, compacts, i+3, r.found())
				}
			}
			if last := requests[len(requests)-1].found(); slices.Contains(last, "weather_tomorrow") && (compacts || by == search.FunctionName) {
				t.Errorf("%s, compacts %t: the last request tells of %q", by, compacts, last)
			}
		}
	}
}

// large is a tool whose definition has about so many bytes.
func large(name string, bytes int) tools.Spec {
	return tools.Spec{Name: name, Description: strings.Repeat("whale ", bytes/6), Parameters: json.RawMessage(`{"type":"object"}`)}
}

// TestCountsTokensOfFoundTools has a large definition fill the window: the model is told of it once, and
// as it does not call it, no more.
func TestCountsTokensOfFoundTools(t *testing.T) {
	t.Parallel()
	f, server := talk(t, "version: 1\nturns:\n"+
		"  - output: [{call: search_tool_bm25, arguments: {query: whale}}]\n    usage: {input: 14000}\n"+
		"  - output: [{say: So far.}]\n"+ // a summary
		"  - output: [{call: read_file, arguments: {n: 1}}]\n    usage: {input: 19000}\n"+
		"  - output: [{say: So far.}]\n"+done, modeltest.Options{})
	equip(t, f, search.FunctionName, large("weather_of_whales", 18_000))
	f.Window = 20_000
	f.mustRun(t)
	compactions := f.compactions(t)
	if len(compactions) != 2 || compactions[0].TokensBefore < 18_000 || compactions[1].TokensAfter > 10_000 {
		t.Errorf("compactions: %+v", compactions)
	}
	var told [][]string
	for _, r := range requestsOf(t, server) {
		if len(r.Tools) > 0 {
			told = append(told, r.found())
		}
	}
	must.Same(t, [][]string{nil, {"weather_of_whales"}, {"weather_of_whales"}, {"weather_of_whales"}, nil}, told)
}

// TestBoundsFoundTools finds more than the model can be told of at once.
func TestBoundsFoundTools(t *testing.T) {
	t.Parallel()
	for by, call := range map[string]string{
		search.FunctionName: "{call: search_tool_bm25, arguments: {query: whale}}",
		search.BuiltinName:  "{item: {type: tool_search_call, id: ts_1, call_id: look, status: completed, execution: client, arguments: {query: whale}}}",
	} {
		f, server := talk(t, "version: 1\nturns:\n  - output: ["+call+"]\n"+done, modeltest.Options{})
		equip(t, f, by, large("weather_a", 40_000), large("weather_b", 40_000), large("weather_c", 60_000), large("weather_d", 9_000))
		f.Window = 100_000
		f.mustRun(t)
		if got := requestsOf(t, server)[1].found(); len(got) != 2 || !slices.Contains(got, "weather_c") || !slices.Contains(got, "weather_d") {
			t.Errorf("%s: the request tells of %q", by, got)
		}
	}
}

// found are the names of the tools that a request tells of since they were looked for.
func (s sent) found() (names []string) {
	for _, tool := range s.Tools {
		if strings.HasPrefix(tool.Name, "weather") {
			names = append(names, tool.Name)
		}
	}
	for _, item := range s.Input {
		for _, tool := range item.Tools {
			names = append(names, tool.Name)
		}
	}
	return names
}

// TestResumeKeepsFoundTools stops a run behind each of its events, and goes on: its
// requests are those of the run that was not stopped.
func TestResumeKeepsFoundTools(t *testing.T) {
	t.Parallel()
	for by, session := range map[string]string{search.FunctionName: byFunction, search.BuiltinName: byItem} {
		f, server := looking(t, by, session, modeltest.Options{})
		f.mustRun(t)
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
			again.mustResume(t, p, 1)
			again.mustRun(t)
			if got, want := string(another.Requests()[0].Body), string(all[requests].Body); got != want {
				t.Errorf("%s, behind event %d: sent\n%s\nand without a restart\n%s", by, n+1, got, want)
			}
		}
	}
}
