package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/must"
)

// noting denies what it is told to and keeps what it was asked.
type noting struct {
	denies bool
	asked  []policy.Request
}

func (n *noting) judge(asked policy.Request) policy.Decision {
	n.asked = append(n.asked, asked)
	if n.denies {
		return policy.Decision{Action: policy.Refuse, Command: "x", Rule: "a.rules:3", Reason: "Really.", Remedy: "No."}
	}
	return policy.Decision{Action: policy.Run}
}

func TestJudgesCommandBeforeStart(t *testing.T) {
	const line = "echo x > mark"
	for _, test := range []struct {
		name, tool string
		arguments  map[string]any
		want       policy.Request
	}{
		{"exec_command", "exec_command", map[string]any{"cmd": line}, policy.Request{Script: line}},
		{"in a folder", "exec_command", map[string]any{"cmd": line, "workdir": "sub"}, policy.Request{Script: line, Dir: "sub"}},
		{"in a login shell", "exec_command", map[string]any{"cmd": line, "login": true}, policy.Request{Script: line}},
		{"in a shell of its own", "exec_command", map[string]any{"cmd": line, "shell": "sh"}, policy.Request{Argv: []string{"sh", "-c", line}}},
		{"shell_command", "shell_command", map[string]any{"command": line}, policy.Request{Script: line}},
		{"shell", "shell", map[string]any{"command": []string{"sh", "-c", line}}, policy.Request{Argv: []string{"sh", "-c", line}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, denies := range []bool{true, false} {
				judge := &noting{denies: denies}
				b := newBench(t, func(o *Options) { o.Judge = judge.judge })
				result := b.call(t.Context(), test.tool, test.arguments)
				want := test.want
				want.Dir = filepath.Join(b.dir, want.Dir)
				must.Same(t, []policy.Request{want}, judge.asked, "asked")
				_, err := os.Stat(filepath.Join(want.Dir, "mark"))
				if ran := err == nil; ran == denies {
					t.Errorf("denied %v, ran %v", denies, ran)
				}
				if !denies {
					continue
				}
				if result.Output != "`x` was not run (a.rules:3). Really. No." || !result.Failed || b.seen.last.Result.Detail["denied"] != "a.rules:3" {
					t.Errorf("result %+v", b.seen.last.Result)
				}
			}
		})
	}
}
