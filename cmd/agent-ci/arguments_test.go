package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/tools"
)

// A call with more arguments than a call may have is answered, and goes neither
// into the transcript nor into a request.
func TestDropsOverlongArguments(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.repository(w.dir)
	long := strings.Repeat("true ", tools.MaxInput/5+1)
	w.write("session.yml", "version: 1\nturns:\n"+
		"  - output: [{call: exec_command, arguments: {cmd: \""+long+"\"}}, {call: apply_patch, input: \""+long+"\"}]\n"+
		"  - expect: [\"more than the 4194304 that a call may have\", \"several smaller calls\"]\n    output: [{say: Done.}]\n")
	told, err := w.agent("run", "--prompt", "x", "--publish", "none", "--out", "../run", "--quiet", "--replay", "session.yml", "--set", "task.expects=answer")
	if err != nil || !strings.HasPrefix(told, "no_changes/answered") {
		t.Fatalf("%v\n%s", err, told)
	}
	out := filepath.Join(filepath.Dir(w.dir), "run")
	t.Cleanup(func() { os.RemoveAll(out) })
	if info, err := os.Stat(filepath.Join(out, "transcript.jsonl")); err != nil || info.Size() > 1<<20 {
		t.Errorf("the transcript has %d bytes, %v", info.Size(), err)
	}
	w.replays(t, "", out, "--frozen")
}
