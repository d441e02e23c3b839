package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/tools"
)

// pastOf folds events as they stand in a transcript.
func pastOf(t *testing.T, events ...transcript.Event) *agent.ResumeState {
	t.Helper()
	p := &agent.ResumeState{}
	applied(t, p, events...)
	return p
}

func applied(t *testing.T, p *agent.ResumeState, events ...transcript.Event) {
	t.Helper()
	for i, e := range events {
		e.Seq = int64(i + 1)
		must.Do(t, p.Apply(e))
	}
}

func event(kind transcript.Type, data string) transcript.Event {
	return transcript.Decode(eventlog.Event{Type: kind, Data: json.RawMessage(data)})
}

func TestReportsCallsOfLostAnswer(t *testing.T) {
	t.Parallel()
	lost := []transcript.Event{
		event(transcript.TypeModelRequest, `{"turn":1,"settings":{"store":false},"input":[]}`),
		event(transcript.TypeToolStarted, `{"turn":1,"number":1,"call_id":"one","tool":"shell_command","input":"{\"command\":\"make all\"}"}`),
	}
	for expect, past := range map[string][]transcript.Event{
		"make all": lost, "": append(slices.Clip(lost), event(transcript.TypeModelRequest, `{"turn":2,"input":[]}`)), // it was told before
	} {
		f := converse(t, "version: 1\nturns: [{expect: ['"+expect+"'], output: [{call: read_file, id: two}]}, {output: [{say: Done.}]}]\n")
		f.mustResume(t, pastOf(t, past...), 0)
		f.mustSay(t, "Done.")
		must.Same(t, 2, f.box.asked[0].Number, "the next call has number")
	}
}

func TestReplacesUnrecordedImageByText(t *testing.T) {
	t.Parallel()
	f := converse(t, "version: 1\nturns: [{output: [{say: Done.}]}]\n")
	image := `{"type":"input_image","image_url":"sha256:` + strings.Repeat("a", 64) + ` (image/png, 6 bytes)","detail":"auto"}`
	p := pastOf(t, event(transcript.TypeModelRequest,
		`{"turn":1,"settings":{"store":false},"input":[{"type":"function_call_output","call_id":"one","output":[`+image+`]}]}`))
	f.Restore(p, nil, 0)
	f.mustTell(t, "Go on.")
	f.mustRun(t)
	if body := f.requests.bodies[0]; strings.Contains(body, "sha256:") || !strings.Contains(body, "The image is gone") {
		t.Errorf("the request is\n%s", body)
	}
}

// TestResumeRunsOnlyAllowedCalls is of calls that ran neither before the run was killed nor may run now.
func TestResumeRunsOnlyAllowedCalls(t *testing.T) {
	t.Parallel()
	half := strings.Replace(look("half"), `"type"`, `"status":"incomplete","type"`, 1)
	requested := event(transcript.TypeModelRequest, `{"turn":1,"settings":{"store":false},"input":[]}`)
	for name, c := range map[string]struct {
		limit  int // of calls, which is raised since
		events []transcript.Event
		ran    []string
		calls  int // spent
		told   string
	}{
		"incomplete": {0, []transcript.Event{
			requested, event(transcript.TypeModelResponse, `{"turn":1,"id":"r","status":"completed","output":[`+look("one")+`,`+half+`]}`),
		}, []string{"one"}, 1, `"call_id":"half","output":"Not run: the answer breaks off`},
		"beyond the limit": {5, []transcript.Event{
			requested, event(transcript.TypeModelResponse, `{"turn":1,"id":"r","status":"completed","output":[`+look("one")+`,`+look("two")+`]}`),
			event(transcript.TypeModelRequest, `{"turn":2,"input":[]}`),
			event(transcript.TypeModelResponse, `{"turn":2,"id":"s","status":"completed","output":[`+look("three")+`,`+look("four")+`]}`),
		}, []string{"three"}, 3, `"call_id":"four","output":"Not run: limits.tool_calls is used up`},
		"in an answer that was to be words": {0, []transcript.Event{
			event(transcript.TypeModelRequest, `{"turn":1,"settings":{"store":false},"input":[],"aside":true}`),
			event(transcript.TypeModelResponse, `{"turn":1,"id":"r","status":"completed","aside":true,"output":[`+look("one")+`]}`),
		}, nil, 0, `"call_id":"one","output":"Not run: this answer was to be words alone.`},
	} {
		f := converse(t, "version: 1\nturns: [{output: [{say: Done.}]}]\n")
		p := &agent.ResumeState{CallLimit: c.limit, SubagentCalls: 2}
		applied(t, p, c.events...)
		f.Limits.Calls = 9
		f.mustResume(t, p, 0)
		must.Same(t, c.ran, f.names(), name)
		must.Same(t, c.calls, f.Spent().Calls, name)
		f.mustRun(t)
		must.Contain(t, f.requests.bodies[0], c.told)
	}
}

func TestResumeKeepsLastTurn(t *testing.T) {
	t.Parallel()
	first := []transcript.Event{
		event(transcript.TypeModelRequest, `{"turn":1,"settings":{"store":false},"input":[]}`),
		event(transcript.TypeModelResponse, `{"turn":1,"id":"r","status":"completed","output":[`+look("one")+`],"usage":{"input":96}}`),
		event(transcript.TypeModelRequest, `{"turn":2,"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"This is your last turn: 96 of 100 tokens are used (limits.tokens)."}]}]}`),
	}
	answered := append(first, event(transcript.TypeModelResponse, `{"turn":2,"id":"s","status":"completed","output":[`+look("two")+`],"usage":{"input":1}}`))
	for name, c := range map[string]struct {
		past  []transcript.Event
		used  int64
		limit int64
		turns int // that are still taken
	}{
		"was answered":                       {answered, 97, 100, 0},
		"was not answered":                   {first, 96, 100, 1},
		"was answered, and there is more":    {answered, 97, 1000, 1},
		"was answered, and ended in the end": {append(answered, event(transcript.TypeRunFinished, `{"outcome":"budget_exceeded","reason":"tokens"}`)), 97, 101, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := converse(t, "version: 1\nturns: [{output: [{say: Done.}]}]\n")
			f.Limits.Tokens = c.limit
			p := pastOf(t, c.past...)
			f.mustResume(t, p, 0, transcript.ModelUse{Usage: transcript.Usage{Input: c.used}})
			_, err := f.Run(t.Context())
			if ended := outcometest.Reason(err) == "tokens"; ended != (c.turns == 0) || len(f.requests.bodies) != c.turns {
				t.Errorf("%d turns were taken, and Run ended in %v", len(f.requests.bodies), err)
			}
		})
	}
}

// TestResumeDropsUnfinishedSummary stops a run at each event of a
// compaction, and resumes it twice.
func TestResumeDropsUnfinishedSummary(t *testing.T) {
	t.Parallel()
	f, _ := talk(t, long(8, "  - output: [{say: I read nine files.}, {call: read_file, id: aside}]\n    usage: {input: 9500}\n"+done), modeltest.Options{})
	f.Window = 10_000
	f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("x", 2000)}
	f.mustRun(t)
	events := f.events(t)
	at := slices.IndexFunc(events, func(e transcript.Event) bool { return e.Type == transcript.TypeCompaction })
	if at < 2 || events[at-1].Type != transcript.TypeModelResponse || !strings.Contains(string(events[at-2].Data), `"aside":true`) {
		t.Fatalf("no summary was asked for: %s", f.types(t))
	}
	for name, upTo := range map[string]int{"before the answer": at - 1, "after the answer": at} {
		t.Run(name, func(t *testing.T) {
			first := converse(t, "version: 1\nturns: [{expect: [replaced by your summary], output: [{say: I read.}]}, {output: [{say: Done.}]}]\n")
			first.Window = 10_000
			p := pastOf(t, events[:upTo]...)
			first.mustResume(t, p, 1)
			again := converse(t, "version: 1\nturns: [{output: [{say: Done.}]}]\n")
			p = pastOf(t, append(slices.Clone(events[:upTo]), first.events(t)...)...)
			first.mustRun(t)
			if found := first.compactions(t); len(found) != 2 || found[0].Method != "none" || found[1].Method != "summary" {
				t.Errorf("the conversation was not made shorter after all: %+v", found)
			}
			again.mustResume(t, p, 1)
			again.mustRun(t)
			body := again.requests.bodies[0]
			must.Lack(t, body, "Call nothing", "I read nine files.", `"aside"`)
			must.Same(t, 8, strings.Count(body, strings.Repeat("x", 2000)))
		})
	}
}
