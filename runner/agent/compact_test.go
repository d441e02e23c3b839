package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// long is a session in which each answer counts 1,000 tokens more.
func long(turns int, last string) string {
	var s strings.Builder
	s.WriteString("version: 1\nturns:\n")
	for n := range turns {
		fmt.Fprintf(&s, "  - output: [{call: read_file, arguments: {n: %d}}]\n    usage: {input: %d}\n", n, 1000*(n+1))
	}
	return s.String() + last
}

const done = "  - output: [{say: Done.}]\n"

// compactions are the events of that type in a log.
func (f fixture) compactions(t *testing.T) []transcript.Compaction {
	t.Helper()
	return decoded[transcript.Compaction](t, f, transcript.TypeCompaction)
}

// survives checks what every compaction keeps word for word.
func survives(t *testing.T, items []json.RawMessage) {
	t.Helper()
	if n := strings.Count(string(slices.Concat(items...)), "The task."); n != 1 || !strings.Contains(string(items[0]), "The task.") {
		t.Errorf("the task is there %d times, and first is %s", n, items[0])
	}
	must.Same(t, 1, strings.Count(string(slices.Concat(items...)), "- [pending] mend it"), "the plan is there", items)
	raw, err := rawitem.Encode(kept()[0])
	if n := strings.Count(string(slices.Concat(items...)), strings.Trim(string(raw), `"`)); err != nil || n != 1 {
		t.Errorf("what is kept is there %d times (%v): %s", n, err, items)
	}
}

// kept is a text that every compaction keeps.
func kept() []string { return []string{"Say \"please\" <first> & \\ last."} }

// TestCompacts makes a conversation shorter in each way, with tools in their field and in the input.
func TestCompacts(t *testing.T) {
	t.Parallel()
	for method, c := range map[string]struct {
		answers string
		options modeltest.Options
		kept    string // words of the items
		longest int64  // tokens after it; 0 for fewer than before
	}{
		"endpoint": {long(10, done), modeltest.Options{Compacts: true}, `"encrypted_content":"opaque"`, 0},
		"summary": {
			long(8, "  - expect: [replaced by your summary]\n    output: [{say: I read nine files.}]\n    usage: {input: 9500}\n"+done), modeltest.Options{}, "I read nine files.", 0,
		},
		"trimming": {long(8, "  - fail: {status: 400, code: invalid_request_error, message: no summaries here}\n"+done), modeltest.Options{}, "The runner", 5_500},
	} {
		for _, inInput := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, tools in the input %t", method, inInput), func(t *testing.T) {
				f, server := talk(t, c.answers, c.options)
				f.Window, f.Plan, f.KeptTexts = 10_000, func() string { return "- [pending] mend it\n" }, kept
				f.Settings.ToolsInInput = inInput
				f.Settings.Tools = []json.RawMessage{json.RawMessage(`{"type":"function","name":"read_file","strict":false,"parameters":{"type":"object"}}`)}
				f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("x", 4000)}
				f.mustSay(t, "Done.")
				found := f.compactions(t)
				if len(found) == 0 || c.options.Compacts == (len(found) == 1) {
					t.Fatalf("compactions: %+v", found)
				}
				for _, one := range found {
					if one.Method != method || one.Reason != "window" || one.TokensBefore < 8500 || one.TokensAfter >= one.TokensBefore || c.longest > 0 && one.TokensAfter > c.longest {
						t.Errorf("compaction: %+v", one)
					}
					survives(t, one.Items)
					must.Contain(t, string(slices.Concat(one.Items...)), c.kept)
				}
				must.Same(t, 5*int64(server.Compactions()), f.Spent().Usage.Output)
				noFaults(t, server)
				bodies := bodiesOf(server)
				f.rebuilds(t, "responses", bodies)
				for i, body := range bodies {
					var sent struct {
						Instructions *string
						Input        []struct{ Type string }
					}
					must.Do(t, json.Unmarshal([]byte(body), &sent))
					if inInput && (sent.Instructions != nil || sent.Input[0].Type != rawitem.AdditionalToolsType || sent.Input[1].Type != "message") {
						t.Errorf("request %d has instructions %t, and begins with %+v", i+1, sent.Instructions != nil, sent.Input[:2])
					}
				}
			})
		}
	}
}

// bodiesOf are the requests of a server for answers, without those for compactions.
func bodiesOf(server *modeltest.Server) (all []string) {
	for _, r := range server.Requests() {
		if body := string(r.Body); strings.Contains(body, `"stream"`) {
			all = append(all, body)
		}
	}
	return all
}

// TestEndpointCompactionKeepsRunnerMessages keeps what only messages tell: a red
// check that was given back, a budget.
func TestEndpointCompactionKeepsRunnerMessages(t *testing.T) {
	t.Parallel()
	f, server := talk(t, long(12, done), modeltest.Options{Compacts: true})
	f.Window, f.Plan, f.KeptTexts = 4_000, func() string { return "- [pending] mend it\n" }, kept
	f.mustTell(t, "The check lint is red.")
	f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("x", 2000)}
	f.mustSay(t, "Done.")
	found := f.compactions(t)
	if len(found) < 2 {
		t.Fatalf("compactions: %+v", found)
	}
	for _, one := range found {
		survives(t, one.Items)
		must.Contain(t, string(slices.Concat(one.Items...)), "The check lint is red.")
	}
	f.rebuilds(t, "responses", bodiesOf(server))
	noFaults(t, server)
}

func TestBudgetsReserveLastTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tokens int64
		last   string
		asked  string // in the last request
	}{
		"no summary before the last turn":            {37_500, done, "This is your last turn: 36000 of 37500"},
		"no turn after a summary that took the rest": {40_000, "  - output: [{say: I read.}]\n    usage: {input: 9500}\n" + done, "will be replaced by your summary"},
	} {
		t.Run(name, func(t *testing.T) {
			f, server := talk(t, long(8, c.last), modeltest.Options{})
			f.Window, f.Limits.Tokens = 10_000, c.tokens
			f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("x", 5000)}
			_, err := f.Run(t.Context())
			must.Same(t, c.last != done, outcometest.Reason(err) == "tokens", "Run ended in", err)
			requests := server.Requests()
			must.Contain(t, string(requests[len(requests)-1].Body), c.asked)
			must.Same(t, 9, strings.Count(strings.Join(f.types(t), " "), "model.request"))
		})
	}
}

func TestRepeatsKeptTextsOnlyIfMissing(t *testing.T) {
	t.Parallel()
	session := long(8, "  - fail: {status: 400, code: invalid_request_error, message: no summaries here}\n"+done)
	f, _ := talk(t, session, modeltest.Options{})
	f.Window, f.KeptTexts = 10_000, func() []string { return append(kept(), "gone") }
	f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("x", 4000) + kept()[0]}
	f.mustSay(t, "Done.")
	items := string(slices.Concat(f.compactions(t)[0].Items...))
	const told = "You had loaded this before the conversation was made shorter:"
	must.Same(t, 1, strings.Count(items, told), "items", items)
	must.Contain(t, items, told+`\ngone"`)
}

func TestShortensOverlongRequest(t *testing.T) {
	t.Parallel()
	tooLong := answer(400, "", `{"error":{"message":"Your input exceeds the context window","code":"context_length_exceeded"}}`)
	f, server := talk(t, long(6, done), modeltest.Options{})
	f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("x", 4000)}
	server.Replace(6, tooLong) // then the endpoint is asked, which is request 7
	server.Replace(8, tooLong)
	f.mustSay(t, "Done.")
	found := f.compactions(t)
	if len(found) != 2 || found[0].Reason != "context_length" || found[1].TokensAfter >= found[0].TokensAfter {
		t.Fatalf("compactions: %+v", found)
	}
	requests := server.Requests()
	if a, b := len(requests[5].Body), len(requests[8].Body); b > a/2 {
		t.Errorf("a request of %d bytes became one of %d", a, b)
	}
	noFaults(t, server)
}

// TestRemovedShellOutputKeepsForm makes a conversation with the API's own
// shell too long: the API takes the output of a shell_call only as a list.
func TestRemovedShellOutputKeepsForm(t *testing.T) {
	t.Parallel()
	session := "version: 1\nturns:\n  - output: [{item: {type: shell_call, id: sh_1, call_id: c1, status: completed, action: {commands: [make]}}}]\n" + done
	f, server := talk(t, session, modeltest.Options{})
	f.box.answers["shell"] = tools.Result{Commands: []tools.Ran{{Output: strings.Repeat("x", 4000), ExitCode: 2}}}
	server.Replace(2, answer(413, "", "<html>"))
	f.mustSay(t, "Done.")
	requests := server.Requests()
	last := string(requests[len(requests)-1].Body)
	const want = `"output":[{"stdout":"[The runner removed this output`
	must.Contain(t, last, want, `"outcome":{"type":"exit","exit_code":2}`)
	noFaults(t, server)
}

func TestEndsOnOverlongTask(t *testing.T) {
	t.Parallel()
	f, server := talk(t, "version: 1\nturns: [{output: [{say: never}]}]\n", modeltest.Options{})
	server.Replace(1, answer(400, "", `{"error":{"message":"too long","code":"context_length_exceeded"}}`))
	_, err := f.Run(t.Context())
	must.Same(t, "context_length", outcometest.Reason(err), "Run ended in", err)
}

// TestTrimmingKeepsPairs makes conversations of all kinds too long; the server
// checks that every call has its output.
func TestTrimmingKeepsPairs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var s strings.Builder
		s.WriteString("version: 1\nturns:\n")
		for n := range rapid.IntRange(1, 12).Draw(rt, "turns") {
			s.WriteString("  - output:\n")
			if rapid.Bool().Draw(rt, "thinks") {
				fmt.Fprintf(&s, "      - item: {type: reasoning, id: rs_%d, summary: [], encrypted_content: %s}\n", n, strings.Repeat("o", 400))
			}
			if rapid.Bool().Draw(rt, "speaks") {
				s.WriteString("      - say: Words.\n")
			}
			for range rapid.IntRange(1, 3).Draw(rt, "calls") {
				s.WriteString("      - " + rapid.SampledFrom([]string{"{call: read_file, arguments: {}}", "{call: apply, input: x}"}).Draw(rt, "call") + "\n")
			}
		}
		s.WriteString(done)
		f, server := talk(t, s.String(), modeltest.Options{})
		f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("y", rapid.IntRange(0, 3000).Draw(rt, "output"))}
		f.box.answers["apply"] = f.box.answers["read_file"]
		tooLong := answer(400, "", `{"error":{"message":"too long","code":"context_length_exceeded"}}`)
		for range rapid.IntRange(1, 3).Draw(rt, "refused") {
			server.Replace(rapid.IntRange(2, 14).Draw(rt, "request"), tooLong)
		}
		_, err := f.Run(t.Context())
		if err != nil && outcometest.Reason(err) != "context_length" {
			rt.Fatalf("Run ended in %v", err)
		}
		for _, fault := range server.Faults() {
			must.Contain(rt, fault, "were not asked for")
		}
	})
}
