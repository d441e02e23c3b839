package runner

import (
	"encoding/json"
	"testing"

	"github.com/agent-ci/agent-ci/runner/transcript"
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
			p := &past{}
			for _, e := range c.events {
				if err := p.take(e); err != nil {
					t.Fatal(err)
				}
			}
			if p.nudged != c.want {
				t.Errorf("nudged is %t", p.nudged)
			}
		})
	}
}
