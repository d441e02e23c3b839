package worker

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

func TestWhatScriptsLeftIsKnownAfterARestart(t *testing.T) {
	var p Past
	for _, e := range []transcript.Event{
		{Type: transcript.TypeToolStarted, Data: json.RawMessage(`{"number":1,"tool":"exec"}`)},
		{Type: transcript.TypeToolFinished, Data: json.RawMessage(`{"number":1,"tool":"exec","detail":{"stored":{"a":"1","b":"2"}}}`)},
		{Type: transcript.TypeToolFinished, Data: json.RawMessage(`{"number":2,"tool":"wait","detail":{"stored":{"b":"3"}}}`)},
		{Type: transcript.TypeToolStarted, Data: json.RawMessage(`{"number":1,"caller":1,"tool":"lookup"}`)},
		{Type: transcript.TypeToolFinished, Data: json.RawMessage(`{"number":1,"caller":1,"tool":"lookup","detail":{"stored":{"a":"of a tool of the job"}}}`)},
		{Type: transcript.TypeToolStarted, Data: json.RawMessage(`{"number":3,"tool":"exec"}`)},
	} {
		if err := p.Take(e); err != nil {
			t.Fatal(err)
		}
	}
	if want := map[string]string{"a": "1", "b": "3"}; p.scripts.cells != 2 || !maps.Equal(p.scripts.stored, want) {
		t.Errorf("left is %+v", p.scripts)
	}
}
