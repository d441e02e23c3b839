package progress

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

func TestCallsOfScriptsAreIndented(t *testing.T) {
	var got []string
	for _, h := range transcripttest.Scripts() {
		raw, err := json.Marshal(h.Data)
		if err != nil {
			t.Fatal(err)
		}
		if h.Kind == transcript.TypeToolStarted {
			got = append(got, Line(transcript.Event{Type: h.Kind, Data: raw}))
		}
	}
	want := `  exec const names = await tools.exec_command({cmd: "ls"}); …
    exec_command ls
    read_file a
    read_file b
  wait
    apply_patch greet/greet.go`
	if told := strings.Join(got, "\n"); told != want {
		t.Errorf("got\n%s\nwant\n%s", told, want)
	}
}
