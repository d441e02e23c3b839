package body

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/transcripttest"
)

func TestBodyTellsOfToolsOfTheJob(t *testing.T) {
	run := transcripttest.Greeting()
	for i, h := range run {
		if started, is := h.Data.(transcript.RunStarted); is {
			started.Job = json.RawMessage(`{"tools":{"dynamic":[` +
				`{"name":"lookup","run":["./a|b","c"]},{"name":"long","run":"one\ntwo\n"},{"name":"short","run":"echo <b>"}]}}`)
			run[i].Data = started
		}
	}
	run = append(run, transcripttest.Called(9, "nine", "lookup", "{}"), transcripttest.Happening{
		Kind: transcript.TypeToolFinished, Data: transcript.ToolFinished{Turn: 9, CallID: "nine", Tool: "lookup", Failed: true, Output: "no"},
	})
	got, err := alone(projected(t, run), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n## Tools of the job\n", "| `lookup` | <code>./a&#124;b c</code> | 1, 1 failed |\n", "| `long` | a script of 2 lines | 0 |\n",
		"| `short` | `echo <b>` | 0 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the body has no %q:\n%s", want, got)
		}
	}
	if got, err = alone(projected(t, transcripttest.Greeting()), Options{}); err != nil || strings.Contains(got, "Tools of the job") {
		t.Errorf("the body of a run without tools of its own tells of some: %v\n%s", err, got)
	}
}
