package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEventsOfHooksHaveOtherNames(t *testing.T) {
	for other, own := range hookAliases {
		j := mustLoad(t, Layer{Name: "job.yml", Kind: File, Data: []byte("version: 1\ntask: {prompt: x}\nhooks: {x: {on: " + other + ", run: [x]}}\n")})
		if got := j.Hooks["x"].On; got != own {
			t.Errorf("%s is %s", other, got)
		}
	}
}

func TestWhatDoesNotFitAHook(t *testing.T) {
	for _, test := range []struct{ hook, want string }{
		{"{on: stop, run: [x], tools: [Bash]}", "job.yml:3:40: hooks.x.tools: does not go with on: stop, which is of no tool; leave it out"},
		{"{on: pre_patch, run: [x], argv: [git]}", "job.yml:3:44: hooks.x.argv: does not go with on: pre_patch, which is of no command; leave it out"},
		{"{on: pre_publish, run: [x], compat: claude}", "job.yml:3:48: hooks.x.compat: does not go with on: pre_publish, which claude has no form for; leave it out"},
		{"{on: pre_tool, run: [x], trusted: operator}", "job.yml:3:46: hooks.x.trusted: may be said by the operator's file alone (--operator-file); leave it out"},
		{"{on: pre_tool, run: []}", "job.yml:3:32: hooks.x.run: names no program"},
		{"{on: pre_tool, run: ['python3 guard.py', --strict]}", "job.yml:3:32: hooks.x.run: has a program and its arguments in one word, which no shell takes apart; write [python3, guard.py, --strict]."},
		{"{on: pre_tool, run: [$HOME/guard]}", "job.yml:3:32: hooks.x.run: begins with $HOME, and no shell fills that in; write [~/guard]"},
		{"{on: pre_tool, run: [x], timeout: 1h}", "job.yml:3:46: hooks.x.timeout: must be 10m0s at most"},
		{"{on: pre_tool, run: [x], tools: [Bash]}", `job.yml:3:44: hooks.x.tools: "Bash" fits no tool, so that the hook would never be asked; Bash is a name of Claude Code, which goes with compat: claude`},
		{"{on: pre_tool, run: [x], tools: [apply_patch], argv: [apply_patch]}", `job.yml:3:65: hooks.x.argv: goes with tools that run commands, and tools names none, so that the hook would never be asked; leave one of both out`},
		{"{on: pre_tool, run: [x], compat: claude, tools: [bash]}", `job.yml:3:60: hooks.x.tools: "bash" fits no tool, so that the hook would never be asked; say Bash`},
		{"{on: pre_tool, run: [x], compat: claude, tools: ['Bash(git push:*)']}", `job.yml:3:60: hooks.x.tools: "Bash(git push:*)" fits no tool, so that the hook would never be asked; say Bash, and the words of commands as argv`},
		{"{on: pre_tool, run: [x], compat: claude, tools: ['(Bash']}", `job.yml:3:60: hooks.x.tools: "(Bash" is no regular expression`},
		{"{on: pre_tool, run: [x], tools: [Merge_agent]}", `job.yml:3:44: hooks.x.tools: "Merge_agent" fits no tool, so that the hook would never be asked; say merge_agent`},
		{"{on: pre_tool, run: [x], tools: ['^shell$']}", `job.yml:3:44: hooks.x.tools: "^shell$" fits no tool`},
		{"{on: PreTool, run: [x]}", `job.yml:3:17: hooks.x.on: "PreTool" is not one of`},
	} {
		for _, layer := range []Layer{{Name: "job.yml", Kind: File}, {Name: "job.yml", Kind: Defaults}} {
			layer.Data = []byte("version: 1\nlimits: {turns: 1}\nhooks: {x: " + test.hook + "}\n")
			_, err := LoadTemplate(layer)
			if err == nil || len(err.Error()) < len(test.want) || err.Error()[:len(test.want)] != test.want {
				t.Errorf("%s\n%v\nwant %s", test.hook, err, test.want)
			}
		}
	}
}

func TestTheOperatorsFile(t *testing.T) {
	got, err := LoadOperator("op.yml", []byte("version: 1\nhooks: {audit: {on: PreToolUse, run: [/usr/bin/audit], trusted: operator}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Hook{"audit": {
		On: OnPreTool, Run: []string{"/usr/bin/audit"}, Tools: []string{}, Argv: []string{}, Timeout: Duration(10e9), OnError: "fail", Trusted: TrustedOperator,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = LoadOperator("op.yml", []byte("version: 1\nlimits: {turns: 5}\n"))
	if err == nil || err.Error() != "op.yml:2:1: limits: does not belong in an operator's file, which has hooks alone" {
		t.Errorf("err = %v", err)
	}
}

func TestMatchersOfHooks(t *testing.T) {
	for _, test := range []struct {
		compat, pattern, name string
		want                  bool
	}{
		{"", "exec_*", "exec_command", true},
		{"", "shell|apply_patch", "apply_patch", true},
		{"", "shell", "shell_command", false},
		{CompatClaude, "Bash", "Bash", true},
		{CompatClaude, "Bash", "BashOutput", false},
		{CompatClaude, "Edit|Write", "Write", true},
		{CompatClaude, "^Bash$", "Bash", true},
		{CompatClaude, "(Bash|Edit)", "Bash", true},
		{CompatClaude, "Ba.h", "Bash", true},
		{CompatClaude, "B.+", "Bash", true},
		{CompatClaude, "[Bb]ash", "Bash", true},
		{CompatClaude, "^mcp__", "mcp__a__b", true},
		{CompatClaude, "mcp__a__*", "mcp__a__b", true},
		{CompatClaude, "mcp__.*", "Bash", false},
		{CompatCodex, "*", "Bash", true},
	} {
		h := Hook{Compat: test.compat, Tools: []string{test.pattern}}
		if got := h.For(test.name); got != test.want {
			t.Errorf("%s %q of %s: %t", test.compat, test.pattern, test.name, got)
		}
		if wrong := h.mistaken(test.pattern, nil, true); wrong != "" {
			t.Errorf("%s %q: %s", test.compat, test.pattern, wrong)
		}
	}
	for _, test := range []struct {
		compat, pattern string
		wrong, operator bool
	}{
		{CompatClaude, "Bahs", true, false},
		{CompatClaude, "NotebookEdit|WebFetch", true, false},
		{CompatClaude, "Edit|NotebookEdit", false, false},
		{"", "incidents", false, false},
		{"", "", true, true},
		{"", "Bash", true, true},
	} {
		h := Hook{Compat: test.compat, Tools: []string{test.pattern}}
		if wrong := h.mistaken(test.pattern, []string{"incidents"}, true); (wrong != "") != test.wrong {
			t.Errorf("%s %q: %s", test.compat, test.pattern, wrong)
		}
		if wrong := h.mistaken(test.pattern, nil, false); (wrong != "") != test.operator {
			t.Errorf("%s %q of the operator: %s", test.compat, test.pattern, wrong)
		}
	}
}
