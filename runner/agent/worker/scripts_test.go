package worker

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/agent-ci/agent-ci/runner/agent/model/catalog"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
)

func TestWhichModelsCallToolsInScripts(t *testing.T) {
	made := catalog.Profile{Code: true, Commands: "shell", Shell: "local_shell", Patch: "function"}
	for _, test := range []struct {
		form string
		p    catalog.Profile
		m    job.Model
		want bool
	}{
		{"auto", made, job.Model{}, true},
		{"auto", catalog.Profile{}, job.Model{}, false},
		{"code", catalog.Profile{}, job.Model{}, true},
		{"freeform", made, job.Model{}, false},
		{"auto", made, job.Model{Wire: "chat"}, false},
	} {
		s := toolsetOf(adjusted(test.p, test.m), test.form)
		if s.code != test.want || s.code && (s.runs[0] != "exec_command" || s.patch != tools.Freeform) {
			t.Errorf("%+v: %+v", test, s)
		}
	}
}

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
