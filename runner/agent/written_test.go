package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/outcome"
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

func TestWhatIsWrittenIsCalledAndAnsweredInOneMessage(t *testing.T) {
	f := converse(t, `
version: 1
turns:
  - output: [{say: "I look.\n!read_file\n!read_file"}]
  - expect: ["What came of your last answer", "read_file written_1", "read_file written_2"]
    output: [{say: Done.}]
`)
	f.Written, f.Settings.Wordy, f.Tools = writes, true, f.box.dispatcher(f.Conversation)
	if said, err := f.Run(t.Context()); err != nil || said != "Done." {
		t.Fatalf("Run = %q, %v", said, err)
	}
	if got := f.Spent().Calls; got != 2 {
		t.Errorf("%d calls are counted, want 2", got)
	}
	if log := f.text(t); strings.Contains(log, `"tool_choice"`) || strings.Contains(log, "parallel_tool_calls") || strings.Count(log, `"written":true`) != 2 {
		t.Errorf("the record is wrong: %s", log)
	}
}

func TestEditsThatFailOverAndOverEndTheRun(t *testing.T) {
	turn := func(n string) string { return "  - output: [{say: \"!apply_patch\\n" + n + "\"}]\n" }
	f := converse(t, "version: 1\nturns:\n"+turn("a")+turn("b")+"  - output: [{say: \"!read_file\"}]\n"+turn("c")+turn("d")+turn("e"))
	f.Written = func(text string) []tools.Call {
		calls := writes(text)
		calls[0].Input = text // each is another
		return calls
	}
	f.box.answers["apply_patch"] = tools.Refuse("it does not fit")
	f.Tools = f.box.dispatcher(f.Conversation)
	var stop *outcome.Stop
	if _, err := f.Run(t.Context()); !errors.As(err, &stop) || stop.Reason != "failed_edits" {
		t.Fatalf("the run ends as %v", err)
	}
	if got := f.Spent().Turns; got != 5 {
		t.Errorf("it ends after %d turns, want 5: four answers with edits, and one without", got)
	}
}
