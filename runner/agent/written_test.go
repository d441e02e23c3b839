package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// writes takes each line of an answer that begins with a bang for a call of the tool behind it.
func writes(text string) []tools.Call {
	var calls []tools.Call
	for line := range strings.Lines(text) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "!"); is {
			calls = append(calls, tools.Call{Name: name, Input: "{}"})
		}
	}
	return calls
}

// An answer that the API stopped is not asked for again as it was: the model is told, and writes less.
func TestReportsStoppedAnswer(t *testing.T) {
	t.Parallel()
	const stopped = "data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}," +
		"\"output\":[{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"!apply_patch\"}]}]}}\n\n"
	for name, test := range map[string]struct {
		stopped int
		asks    int
		ends    string
	}{
		"three times": {3, 5, ""},
		"once more":   {4, 4, "set model.tools: aider-diff where whole files are too long"},
	} {
		t.Run(name, func(t *testing.T) {
			f, server := talk(t, "version: 1\nturns:\n  - output: [{say: \"!read_file\"}]\n  - output: [{say: Done.}]\n", modeltest.Options{})
			f.ParseWritten, f.Settings.NoTools, f.Tools = writes, true, f.box.dispatcher(f.Conversation)
			for n := range test.stopped {
				server.Replace(n+1, stream(stopped))
			}
			_, err := f.Run(t.Context())
			if test.ends == "" && err != nil || test.ends != "" && (err == nil || !strings.Contains(err.Error(), test.ends)) {
				t.Fatalf("the run ends in %v", err)
			}
			requests := server.Requests()
			must.Same(t, test.asks, len(requests), "requests")
			for n, request := range requests[min(1, len(requests)):] {
				must.Same(t, min(n+1, test.stopped), strings.Count(string(request.Body), "Your last answer was stopped before its end (the answer is incomplete: max_output_tokens)"), n+2)
			}
			for _, call := range f.box.asked {
				must.Same(t, "read_file", call.Name, "of an answer that was stopped is run")
			}
		})
	}
}

// What came of words is emptied and left out like outputs of calls, never without the words that it
// answers, and the summary of a model that writes is words.
func TestCompactsWrittenConversation(t *testing.T) {
	t.Parallel()
	var session strings.Builder
	session.WriteString("version: 1\nturns:\n")
	for n := range 8 {
		fmt.Fprintf(&session, "  - output: [{say: \"!read_file %d\"}]\n    usage: {input: %d}\n", n, 1000*(n+1))
	}
	for name, test := range map[string]struct {
		summary, method string
	}{
		"trimming": {"  - fail: {status: 400, code: invalid_request_error, message: no summaries here}\n", "trimming"},
		"summary":  {"  - output: [{say: \"All was read.\\n!apply_patch\"}]\n", "summary"},
	} {
		t.Run(name, func(t *testing.T) {
			f, server := talk(t, session.String()+test.summary+done, modeltest.Options{})
			f.ParseWritten, f.Settings.NoTools, f.Window, f.Tools = func(text string) []tools.Call {
				name, _, is := strings.Cut(strings.TrimPrefix(text, "!"), " ")
				if is && strings.HasPrefix(text, "!") {
					return []tools.Call{{Name: name, Input: "{}"}}
				}
				return writes(text)
			}, true, 10_000, f.box.dispatcher(f.Conversation)
			f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("x", 4000)}
			f.mustSay(t, "Done.")
			found := f.compactions(t)
			if len(found) != 1 || found[0].Method != test.method || found[0].TokensAfter > 5_500 {
				t.Fatalf("compactions: %+v", found)
			}
			for i, item := range found[0].Items {
				if strings.Contains(string(item), "What came of your last answer") && !strings.Contains(string(found[0].Items[i-1]), `"!read_file`) {
					t.Errorf("item %d answers %s", i, found[0].Items[i-1])
				}
			}
			noFaults(t, server)
			for _, call := range f.box.asked {
				must.Same(t, "read_file", call.Name, "of a summary is run")
			}
		})
	}
}

// Another model goes on with what the first one wrote, and by writing.
func TestFallbackToTextEditModelContinues(t *testing.T) {
	t.Parallel()
	f := converse(t, `
version: 1
turns:
  - output: [{say: "!read_file"}]
  - fail: {status: 404, code: model_not_found, message: gone}
  - expect: ["read_file written_1"]
    output: [{say: "!read_file"}]
  - expect: ["read_file written_2"]
    output: [{say: Done.}]
`)
	f.UseModel(agent.ModelOptions{Model: "first", Window: 1 << 30})
	f.Fallbacks = []agent.ModelOptions{{Model: "second", Window: 1 << 30}}
	f.ParseWritten, f.Settings.NoTools, f.Tools = writes, true, f.box.dispatcher(f.Conversation)
	if said, err := f.Run(t.Context()); err != nil || said != "Done." || len(f.fallbacks(t)) != 1 {
		t.Fatalf("Run = %q, %v", said, err)
	}
	if last := f.requests.bodies[3]; !strings.Contains(last, `"model":"second"`) || strings.Contains(last, `"tools"`) {
		t.Errorf("the last request is %s", last)
	}
	must.Same(t, 2, strings.Count(f.text(t), `"written":true`), "the record does not tell which calls are in the text")
}

// A remark does not end the work, with a block in it that is done; a refusal ends it.
func TestHandlesRemarksAndRefusalsInText(t *testing.T) {
	t.Parallel()
	f := converse(t, `
version: 1
turns:
  - output: [{item: {type: message, role: assistant, phase: commentary, content: [{type: output_text, text: "First this.\n!read_file"}]}}]
  - expect: ["read_file written_1"]
    output: [{item: {type: message, role: assistant, phase: commentary, content: [{type: output_text, text: "And now."}]}}]
  - expect: ["Your last answer was commentary"]
    output: [{item: {type: message, role: assistant, content: [{type: refusal, refusal: "I won't."}]}}]
`)
	f.ParseWritten, f.Settings.NoTools, f.Tools = writes, true, f.box.dispatcher(f.Conversation)
	must.Same(t, "refused", outcometest.Reason(must.Err(f.Run(t.Context()))), "the run ends as")
	must.Same(t, 1, len(f.box.asked), "calls are run")
}

// A run that was killed between an answer and its first call finds the same calls in its words.
func TestResumeRunsWrittenCalls(t *testing.T) {
	t.Parallel()
	f := converse(t, "version: 1\nturns: [{expect: [read_file written_2, 'Not run: the edits', 'Not run: limits.tool_calls'], output: [{say: Done.}]}]\n")
	f.ParseWritten, f.Settings.NoTools, f.Tools = writes, true, f.box.dispatcher(f.Conversation)
	f.box.answers["apply_patch"] = tools.Refuse("it does not fit")
	p := &agent.ResumeState{ParseWritten: writes, CallLimit: 3}
	said := func(text string) string {
		return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}`
	}
	applied(t, p,
		event(transcript.TypeModelRequest, `{"turn":1,"settings":{"store":false},"input":[]}`),
		event(transcript.TypeModelResponse, `{"turn":1,"id":"s","status":"completed","aside":true,"output":[`+said(`!shell_command`)+`]}`),
		event(transcript.TypeModelRequest, `{"turn":2,"input":[]}`),
		event(transcript.TypeModelResponse, `{"turn":2,"id":"r","status":"completed","output":[`+said(`!apply_patch\n!read_file\n!shell_command\n!read_file`)+`]}`),
	)
	f.mustResume(t, p, 0)
	f.mustSay(t, "Done.")
	var names []string
	for _, call := range f.box.asked {
		names = append(names, call.ID+" "+call.Name)
	}
	must.Same(t, []string{"written_1 apply_patch", "written_2 read_file"}, names, "calls that were run")
}
