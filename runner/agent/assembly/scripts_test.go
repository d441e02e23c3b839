package assembly

import (
	"maps"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

func TestResumeKeepsScriptState(t *testing.T) {
	var p ResumeState
	for _, e := range []transcript.Event{
		decoded(transcript.TypeToolStarted, `{"number":1,"tool":"exec"}`),
		decoded(transcript.TypeToolFinished, `{"number":1,"tool":"exec","detail":{"stored":{"a":"1","b":"2"}}}`),
		decoded(transcript.TypeToolFinished, `{"number":2,"tool":"wait","detail":{"stored":{"b":"3"}}}`),
		decoded(transcript.TypeToolStarted, `{"number":1,"caller":1,"tool":"lookup"}`),
		decoded(transcript.TypeToolFinished, `{"number":1,"caller":1,"tool":"lookup","detail":{"stored":{"a":"of a tool of the job"}}}`),
		decoded(transcript.TypeToolStarted, `{"number":3,"tool":"exec"}`),
	} {
		must.Do(t, p.Apply(e))
	}
	if want := map[string]string{"a": "1", "b": "3"}; p.scriptState.Cells != 2 || !maps.Equal(p.scriptState.Stored, want) {
		t.Errorf("left is %+v", p.scriptState)
	}
}
