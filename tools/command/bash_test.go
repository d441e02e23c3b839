package command

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

func TestBash(t *testing.T) {
	b := newBench(t)
	b.d.Registry = tools.New(b.commands.Bash())
	for _, test := range []struct {
		name      string
		arguments map[string]any
		want      string
		failed    bool
	}{
		{"output", map[string]any{"command": "echo out; echo err >&2", "description": "Speaks"}, "out\nerr\n", false},
		{"no output", map[string]any{"command": "true"}, "(no output)", false},
		{"a status", map[string]any{"command": "echo out; exit 3"}, "<bash_metadata>\nexit code 3\n</bash_metadata>\nout\n", true},
		{"a status alone", map[string]any{"command": "exit 3"}, "<bash_metadata>\nexit code 3\n</bash_metadata>\n", true},
		{"a directory", map[string]any{"command": "pwd", "workdir": "."}, b.dir + "\n", false},
		{"a directory that is not there", map[string]any{"command": "pwd", "workdir": "gone"}, "bash failed: ", true},
		{"by the arguments of others", map[string]any{"cmd": []string{"echo", "a b"}, "timeout_ms": 60000}, "a b\n", false},
		{"no command", map[string]any{}, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := b.call(t.Context(), "bash", test.arguments)
			if got.Failed != test.failed || got.Output != test.want && !(test.failed && (test.want == "" || strings.HasSuffix(test.want, ": ") && strings.HasPrefix(got.Output, test.want))) {
				t.Errorf("it is %q (failed %t), want %q", got.Output, got.Failed, test.want)
			}
		})
	}
	must.Contain(t, toolstest.Failure(t, b.call(t.Context(), "bash", map[string]any{"command": "echo begun; exec tail -f /dev/null", "timeout": 50})), "timed out")
}
