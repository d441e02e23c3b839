package assembly

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/question"
)

func decoded(kind transcript.Type, data string) transcript.Event {
	return transcript.Decode(eventlog.Event{Type: kind, Data: json.RawMessage(data)})
}

func TestResumeKeepsEarlyEndQuestion(t *testing.T) {
	request := func(item string) transcript.Event {
		return decoded(transcript.TypeModelRequest, `{"turn":1,"settings":{},"input":[`+item+`]}`)
	}
	compacted := decoded(transcript.TypeCompaction, `{"items":[]}`)
	nudge := `{"type":"message","role":"developer","content":[{"type":"input_text","text":"You ended, but nothing has changed."}]}`
	quoted := `{"type":"function_call_output","call_id":"c","output":"\"text\":\"You ended, but nothing"}`
	for name, c := range map[string]struct {
		events []transcript.Event
		want   bool
	}{
		"nudged":                           {[]transcript.Event{request(nudge)}, true},
		"nudged, and the words are gone":   {[]transcript.Event{request(nudge), compacted}, true},
		"the words stand in a tool's text": {[]transcript.Event{request(quoted)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var p ResumeState
			for _, e := range c.events {
				must.Do(t, p.Apply(e))
			}
			must.Same(t, c.want, p.sentOnce[nudgeHead], "told", p.sentOnce)
		})
	}
	for _, head := range []string{refusedHead, claimedHead, unprovenHead} {
		text := must.Get(json.Marshal(head))(t)
		var p ResumeState
		if err := p.Apply(request(`{"type":"message","role":"developer","content":[{"type":"input_text","text":` + string(text) + `}]}`)); err != nil || !p.sentOnce[head] || p.sentOnce[nudgeHead] {
			t.Errorf("%s: %v, %v", head, p.sentOnce, err)
		}
	}
}

func TestResumeKeepsQuestions(t *testing.T) {
	call := func(data string) transcript.Event {
		return decoded(transcript.TypeToolFinished, data)
	}
	var p ResumeState
	for _, e := range []transcript.Event{
		call(`{"number":1,"tool":"request_user_input","detail":{"questions":[{"question":"Which?"}]}}`),
		call(`{"number":2,"tool":"request_user_input","failed":true,"detail":{"questions":[{"question":"Nobody heard"}]}}`),
		call(`{"number":3,"tool":"exec_command","detail":{"questions":[{"question":"A tool's own"}]}}`),
		call(`{"number":4,"tool":"request_user_input"}`),
		call(`{"number":5,"tool":"request_user_input","detail":{"questions":[{"question":"When?","options":[{"label":"now"}]}]}}`),
	} {
		must.Do(t, p.Apply(e))
	}
	want := []question.Question{{Question: "Which?"}, {Question: "When?", Options: []question.Option{{Label: "now"}}}}
	must.Same(t, want, p.questions)
	must.Fail(t, "", p.Apply(call(`{"tool":"request_user_input","detail":{"questions":7}}`)), "questions that are none were taken")
}

func TestAnswersInterruptedCall(t *testing.T) {
	for _, test := range []struct {
		name string
		tool string
		e    StoppedAgent
		want string
		ok   bool
	}{
		{"a command", "exec_command", StoppedAgent{}, "It was not run again.", false},
		{"a script", "exec", StoppedAgent{}, "The script is gone, with what it stored, and was not run again.", false},
		{"a wait", "wait", StoppedAgent{}, "All scripts are gone", false},
		{"a patch on another machine", "apply_patch", StoppedAgent{WorkPlace: workspace.InPatches}, "Some of its files may be changed", false},
		{"a patch", "apply_patch", StoppedAgent{}, "Some of its files may be changed", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.e.interruptedResult(tools.Call{Name: test.tool})
			if !strings.Contains(got.Output, test.want) || got.Failed == test.ok {
				t.Errorf("failed: %t, %q", got.Failed, got.Output)
			}
		})
	}
}

func TestReportsChangesSinceStop(t *testing.T) {
	quiet, running := &ResumeState{}, &ResumeState{}
	request := `{"turn":1,"settings":{},"input":[{"type":"function_call_output","call_id":"c","output":"Process running with session ID 3"}]}`
	must.Do(t, running.Apply(decoded(transcript.TypeModelRequest, request)))
	for _, test := range []struct {
		name string
		e    StoppedAgent
		want []string // beginnings
	}{
		{"killed in its checkout", StoppedAgent{State: quiet}, nil},
		{"with a command that ran on", StoppedAgent{State: running}, []string{"The runner was started again"}},
		{"stopped", StoppedAgent{State: quiet, Ended: true}, []string{"The run was stopped"}},
		{"put into a fresh checkout", StoppedAgent{State: running, Ended: true, WorkPlace: workspace.InChange}, []string{"The run was stopped", "Your work so far was put"}},
		{"on another machine", StoppedAgent{State: running, WorkPlace: workspace.InPatches}, []string{"The run goes on on another machine."}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.e.describeChanges(); !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("told %q, want %q", got, test.want)
			}
		})
	}
}
