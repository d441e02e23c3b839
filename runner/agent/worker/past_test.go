package worker

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/question"
)

func TestANudgeIsKnownAfterARestart(t *testing.T) {
	request := func(item string) transcript.Event {
		return transcript.Event{Type: transcript.TypeModelRequest, Data: json.RawMessage(`{"turn":1,"settings":{},"input":[` + item + `]}`)}
	}
	compacted := transcript.Event{Type: transcript.TypeCompaction, Data: json.RawMessage(`{"items":[]}`)}
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
			var p Past
			for _, e := range c.events {
				if err := p.Take(e); err != nil {
					t.Fatal(err)
				}
			}
			if p.told[nudgeWords] != c.want {
				t.Errorf("told: %v", p.told)
			}
		})
	}
	for _, head := range []string{refusedWords, claimedWords, unprovenWords} {
		text, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		var p Past
		if err := p.Take(request(`{"type":"message","role":"developer","content":[{"type":"input_text","text":` + string(text) + `}]}`)); err != nil || !p.told[head] || p.told[nudgeWords] {
			t.Errorf("%s: %v, %v", head, p.told, err)
		}
	}
}

func TestQuestionsAreKnownAfterARestart(t *testing.T) {
	call := func(data string) transcript.Event {
		return transcript.Event{Type: transcript.TypeToolFinished, Data: json.RawMessage(data)}
	}
	var p Past
	for _, e := range []transcript.Event{
		call(`{"number":1,"tool":"request_user_input","detail":{"questions":[{"question":"Which?"}]}}`),
		call(`{"number":2,"tool":"request_user_input","failed":true,"detail":{"questions":[{"question":"Nobody heard"}]}}`),
		call(`{"number":3,"tool":"exec_command","detail":{"questions":[{"question":"A tool's own"}]}}`),
		call(`{"number":4,"tool":"request_user_input"}`),
		call(`{"number":5,"tool":"request_user_input","detail":{"questions":[{"question":"When?","options":[{"label":"now"}]}]}}`),
	} {
		if err := p.Take(e); err != nil {
			t.Fatal(err)
		}
	}
	want := []question.Question{{Question: "Which?"}, {Question: "When?", Options: []question.Option{{Label: "now"}}}}
	if diff := cmp.Diff(want, p.questions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := p.Take(call(`{"tool":"request_user_input","detail":{"questions":7}}`)); err == nil {
		t.Error("questions that are none were taken")
	}
}

func TestACallThatWasBrokenOffIsAnswered(t *testing.T) {
	for _, test := range []struct {
		name string
		tool string
		e    Earlier
		want string
		ok   bool
	}{
		{"a command", "exec_command", Earlier{}, "It was not run again.", false},
		{"a script", "exec", Earlier{}, "The script is gone, with what it stored, and was not run again.", false},
		{"a wait", "wait", Earlier{}, "All scripts are gone", false},
		{"a patch on another machine", "apply_patch", Earlier{Found: workspace.Found{Away: workspace.InPatches}}, "Some of its files may be changed", false},
		{"a patch", "apply_patch", Earlier{}, "Some of its files may be changed", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.e.interrupted(tools.Call{Name: test.tool})
			if !strings.Contains(got.Output, test.want) || got.Failed == test.ok {
				t.Errorf("failed: %t, %q", got.Failed, got.Output)
			}
		})
	}
}

func TestWhatIsNotAsItWasIsTold(t *testing.T) {
	quiet, running := &Past{}, &Past{}
	request := `{"turn":1,"settings":{},"input":[{"type":"function_call_output","call_id":"c","output":"Process running with session ID 3"}]}`
	if err := running.Take(transcript.Event{Type: transcript.TypeModelRequest, Data: json.RawMessage(request)}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		e    Earlier
		want []string // beginnings
	}{
		{"killed in its checkout", Earlier{Past: quiet}, nil},
		{"with a command that ran on", Earlier{Past: running}, []string{"The runner was started again"}},
		{"stopped", Earlier{Past: quiet, Ended: true}, []string{"The run was stopped"}},
		{"put into a fresh checkout", Earlier{Past: running, Ended: true, Found: workspace.Found{Away: workspace.InChange}}, []string{"The run was stopped", "Your work so far was put"}},
		{"on another machine", Earlier{Past: running, Found: workspace.Found{Away: workspace.InPatches}}, []string{"The run goes on on another machine."}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.e.words()
			if len(got) != len(test.want) {
				t.Fatalf("told %q", got)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], test.want[i]) {
					t.Errorf("told %q, want %q", got[i], test.want[i])
				}
			}
		})
	}
}
