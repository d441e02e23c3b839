package job

import (
	"fmt"
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

func TestRefusesInvalidHooks(t *testing.T) {
	for _, test := range []struct{ hook, want string }{
		{"{on: Stop, run: [x], tools: [Bash]}", "job.yml:3:40: hooks.x.tools: has no effect with on: Stop, an event without a tool; remove it"},
		{"{on: pre_patch, run: [x], argv: [git]}", "job.yml:3:44: hooks.x.argv: has no effect with on: pre_patch, an event without a command; remove it"},
		{"{on: PreToolUse, run: [x], trusted: operator}", "job.yml:3:48: hooks.x.trusted: is allowed only in the operator's file (--operator-file); remove it"},
		{"{on: PreToolUse, run: []}", "job.yml:3:34: hooks.x.run: is an empty list; give at least one"},
		{"{on: PreToolUse, run: ['python3 guard.py', --strict]}", "job.yml:3:34: hooks.x.run: has a program and its arguments in one word, which no shell takes apart; write [python3, guard.py, --strict]."},
		{"{on: PreToolUse, run: [$HOME/guard]}", "job.yml:3:34: hooks.x.run: begins with $HOME, and no shell fills that in; write [~/guard]"},
		{"{on: PreToolUse, run: [x], timeout: 1h}", "job.yml:3:48: hooks.x.timeout: must be 10m at most"},
		{"{on: PreToolUse, run: [x], tools: [apply_patch], argv: [apply_patch]}", `job.yml:3:67: hooks.x.argv: needs a tool that runs commands, and tools lists none, so the hook would never run; remove argv or tools`},
		{"{on: PreToolUse, run: [x], tools: [BASH]}", `job.yml:3:47: hooks.x.tools[0]: "BASH" fits no tool, so that the hook would never be asked; say bash`},
		{"{on: PreToolUse, run: [x], tools: ['Bash(git push:*)']}", `job.yml:3:47: hooks.x.tools[0]: "Bash(git push:*)" fits no tool, so that the hook would never be asked; say Bash, and the words of commands as argv`},
		{"{on: PreToolUse, run: [x], tools: ['(Bash']}", `job.yml:3:47: hooks.x.tools[0]: "(Bash" is no regular expression`},
		{"{on: PreToolUse, run: [x], tools: [Merge_agent]}", `job.yml:3:47: hooks.x.tools[0]: "Merge_agent" fits no tool, so that the hook would never be asked; say merge_agent`},
		{"{on: PreToolUse, run: [x], tools: ['^shel$']}", `job.yml:3:47: hooks.x.tools[0]: "^shel$" fits no tool`},
		{"{on: PreTool, run: [x]}", `job.yml:3:17: hooks.x.on: "PreTool" is not one of`},
		{"{on: pre_tool, run: [x]}", `job.yml:3:17: hooks.x.on: "pre_tool" is not one of`},
		{"{on: PreToolUse, run: [x], compat: claude}", `job.yml:3:39: hooks.x.compat: unknown key`},
	} {
		for _, layer := range []config.Layer{{Name: "job.yml", Kind: config.FileLayer}, {Name: "job.yml", Kind: config.DefaultsLayer}} {
			layer.Data = []byte("version: 1\nlimits: {turns: 1}\nhooks: {x: " + test.hook + "}\n")
			_, err := LoadTemplate(layer)
			if err == nil || len(err.Error()) < len(test.want) || err.Error()[:len(test.want)] != test.want {
				t.Errorf("%s\n%v\nwant %s", test.hook, err, test.want)
			}
		}
	}
}

func TestOperatorFileHoldsOnlyHooks(t *testing.T) {
	got, err := LoadOperator("op.yml", []byte("version: 1\nhooks: {audit: {on: PreToolUse, run: [/usr/bin/audit], trusted: operator}}\n"))
	must.Do(t, err)
	want := map[string]Hook{"audit": {
		On: OnPreToolUse, Run: []string{"/usr/bin/audit"}, Tools: []string{}, Argv: []string{}, Timeout: Duration(10e9), OnError: "fail", Trusted: TrustedOperator,
	}}
	must.Same(t, want, got, "the result")
	_, err = LoadOperator("op.yml", []byte("version: 1\nlimits: {turns: 5}\n"))
	must.Same(t, "op.yml:2:1: limits: does not belong in an operator's file, which may contain only hooks", fmt.Sprint(err))
}

func TestChecksAndAppliesHookMatchers(t *testing.T) {
	for _, test := range []struct {
		matcher, name string
		want          bool
	}{
		{"exec_.*", "exec_command", true},
		{"shell|apply_patch", "apply_patch", true},
		{"shell", "shell_command", false},
		{"Bash", "Bash", true},
		{"Bash", "BashOutput", false},
		{"Edit|Write", "Write", true},
		{"^Bash$", "Bash", true},
		{"(Bash|Edit)", "Bash", true},
		{"Ba.h", "Bash", true},
		{"B.+", "Bash", true},
		{"[Bb]ash", "Bash", true},
		{"^mcp__", "mcp__a__b", true},
		{"mcp__a__*", "mcp__a__b", true},
		{"mcp__.*", "Bash", false},
		{"*", "Bash", true},
		{"", "Bash", true},
	} {
		must.Same(t, test.want, FitsTools([]string{test.matcher}, test.name), test.matcher, test.name)
		must.Same(t, "", matcherMistake(test.matcher, nil, true), test.matcher)
	}
	for _, test := range []struct {
		matcher         string
		wrong, operator bool
	}{
		{"Bahs", true, false},
		{"NotebookEdit|WebFetch", true, false},
		{"Edit|NotebookEdit", false, false},
		{"incidents", false, false},
		{"^bahs$", true, true},
	} {
		must.Same(t, test.wrong, matcherMistake(test.matcher, []string{"incidents"}, true) != "", test.matcher)
		must.Same(t, test.operator, matcherMistake(test.matcher, nil, false) != "", test.matcher, "of the operator")
	}
}

// Any tool of agent-ci can be named by a hook, by its own name and by that which hooks read.
func TestHooksMayNameEveryTool(t *testing.T) {
	for _, tool := range dialect.Tools {
		for _, name := range []string{tool.Name, tool.Hooked()} {
			must.Same(t, "", matcherMistake(name, nil, true), name)
		}
	}
}

func TestHooksSetNoSecretVariables(t *testing.T) {
	j := mustLoad(t, jobFile(start+"model: {api_key_env: TEAM_KEY}\npolicy: {secrets: [{name: NPM, hosts: [a.example.com]}]}\n"))
	must.Do(t, j.CheckVariable("STEP", "two\nlines"))
	for name, want := range map[string]string{
		"NPM": "is a secret", "a b": "is not the name", "ACTIONS_RUNTIME_TOKEN": "holds a credential", "gh_token": "holds a credential", "TEAM_KEY": "holds a credential",
	} {
		must.Fail(t, want, j.CheckVariable(name, "x"), name)
	}
	must.Fail(t, "has a value", j.CheckVariable("STEP", "a\x00b"))
}
