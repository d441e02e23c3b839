package hooks

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
)

// asked are hooks in a folder, which nothing confines, and what is recorded of them.
func asked(t *testing.T, dir string, of map[string]job.Hook) (*Hooks, *[]transcript.HookAnswer) {
	t.Helper()
	for name, h := range of {
		if h.Timeout == 0 {
			h.Timeout = job.Duration(60e9)
		}
		of[name] = h
	}
	all := must.Get(Combine(nil, of, func(name string, _ int64) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) }, os.Getenv("HOME")))(t)
	var events []transcript.HookAnswer
	rec := record.New("run-1", nil)
	must.Do(t, rec.Make(filepath.Join(t.TempDir(), "run"), func(_ *transcript.View, e transcript.Event) {
		if d, isAnswer := e.Content.(transcript.HookAnswer); isAnswer {
			events = append(events, d)
		}
	}))
	t.Cleanup(rec.Close)
	h := &Hooks{All: all, Record: rec, Facts: Facts{WorkDir: "/nowhere", Path: "."}, Sandboxes: SandboxProvider{
		Environ:  os.Environ(),
		BaseTree: func(context.Context) (string, error) { return dir, nil },
		Open:     func(context.Context, *sandbox.Sandbox) (*sandbox.Sandbox, error) { return new(sandbox.Sandbox), nil },
	}}
	t.Cleanup(h.CloseSandbox)
	return h, &events
}

// The example of docs/reference/hooks.md is written for Claude Code and runs as it is there.
func TestExampleOfDocsRuns(t *testing.T) {
	raw := must.Get(os.ReadFile("../../../docs/reference/hooks.md"))(t)
	block := regexp.MustCompile("(?s)```python\n# (\\S+)\n(.*?)```").FindSubmatch(raw)
	dir, name := t.TempDir(), string(block[1])
	must.Do(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, name), block[2], 0o600))
	h, events := asked(t, dir, map[string]job.Hook{"guard": {On: job.OnPreToolUse, Run: []string{"python3", name}, Tools: []string{"Bash|Edit|Write"}}})
	for cmd, want := range map[string]string{
		"rm -rf /": "rm -r is not allowed here", "rm -r -f x": "rm -r is not allowed here", "rm -f -r x": "rm -r is not allowed here", "ls; rm -fR x": "rm -r is not allowed here", "ls": "",
	} {
		if v, _ := judge(t, h, "exec_command", `{"cmd":"`+cmd+`"}`); !strings.Contains(v.Refusal, want) || (want == "") != (v.Refusal == "") {
			t.Errorf("%s: %+v", cmd, v)
		}
	}
	if v, made := judge(t, h, "exec_command", `{"cmd":"cd . && npm  install left"}`); made != `{"cmd":"cd . && npm ci left"}` {
		t.Errorf("%s, %+v", made, v)
	}
	for _, edit := range []tree.Change{{Op: v4a.Add, Path: "migrations/1.sql"}, {Op: v4a.Update, Path: "x.sql", MovedFrom: "migrations/1.sql"}, {Op: v4a.Update, Path: "a.go"}} {
		refusal, _ := h.ReviewPatch(t.Context(), []tree.Edit{{Change: edit}}, "")
		if (edit.Path == "a.go") != (refusal == "") || refusal != "" && !strings.Contains(refusal, "Migrations are written by hand.") {
			t.Errorf("%+v: %s", edit, refusal)
		}
	}
	if v, _ := judge(t, h, "write", `{"filePath":"migrations/2.sql","content":"x"}`); !strings.Contains(v.Refusal, "Migrations are written by hand.") {
		t.Errorf("%+v", v)
	}
	if said := decisions(*events); slices.ContainsFunc(said, func(one string) bool { return strings.HasSuffix(one, "failed") }) {
		t.Errorf("%q", said)
	}
}

// Tools that Claude Code lacks keep their names and arguments, and can be asked about.
func TestMatchesToolsMissingInClaudeCode(t *testing.T) {
	for tool, input := range map[string]string{
		"wait": `{"cell_id":"1"}`, "load_skill": `{"name":"release"}`, "get_memory": `{}`, "propose_lesson": `{"claim":"x"}`, "mcp__docs__search": `{"text":"a"}`,
	} {
		h, _ := asked(t, t.TempDir(), map[string]job.Hook{"a": {On: job.OnPreToolUse, Tools: []string{tool}, Run: []string{"sh", "-c", `grep -q '"tool_name":"` + tool + `"' && exit 2`}}})
		if v, _ := judge(t, h, tool, input); !strings.Contains(v.Refusal, "refuses this") {
			t.Errorf("%s: %+v", tool, v)
		}
	}
	for _, tool := range []string{"exec", "js_repl"} { // scripts, which are text
		h, _ := asked(t, t.TempDir(), map[string]job.Hook{"a": {On: job.OnPreToolUse, Tools: []string{tool}, Run: []string{
			"python3", "-c",
			"import json, sys; print(json.dumps({'hookSpecificOutput': {'updatedInput': {'input': json.load(sys.stdin)['tool_input']['input'] + '!'}}}))",
		}}})
		call := tools.Call{Number: 1, Name: tool, Input: `{}`, Form: tools.Freeform}
		must.Same(t, "", h.Before(t.Context(), tool, call, func(input string) (tools.Call, bool) { call.Input = input; return call, input == "{}!" }).Refusal, tool)
		must.Same(t, "{}!", call.Input, tool)
	}
}

// What a hook gives back as it was shown stays as the model wrote it.
func TestRewritesInputsInNamesOfTool(t *testing.T) {
	for _, test := range []struct{ tool, input, by, want string }{
		{"read", `{"filePath":"a.go","limit":5}`, `{"file_path":"/nowhere/a.go","limit":9}`, `{"filePath":"a.go","limit":9}`},
		{"grep_files", `{"pattern":"x"}`, `{"pattern":"x","glob":"*.go"}`, `{"include":"*.go","pattern":"x"}`},
		{"edit", `{"filePath":"a","oldString":"x","newString":"y"}`, `{"file_path":"b","old_string":"x","new_string":"z"}`, `{"filePath":"b","newString":"z","oldString":"x"}`},
		{"js_repl", `{"n":12345678901234567890}`, `{"n":12345678901234567890,"m":1}`, `{"m":1,"n":12345678901234567890}`},
	} {
		h := &Hooks{Facts: Facts{WorkDir: "/nowhere"}}
		call := tools.Call{Input: test.input}
		if got, err := rewrite(test.tool, call, h.toClaudeCall(test.tool, call), json.RawMessage(test.by)); got != test.want || err != nil {
			t.Errorf("%s: %s, %v", test.tool, got, err)
		}
	}
}

func TestParsesAnswers(t *testing.T) {
	for _, test := range []struct {
		name string
		on   string
		said hookOutput
		want transcript.HookAnswer
		bad  string // part of the error; empty for none
	}{
		{"nothing", job.OnPreToolUse, hookOutput{}, transcript.HookAnswer{}, ""},
		{"blanks", job.OnPreToolUse, hookOutput{stdout: []byte(" \n")}, transcript.HookAnswer{}, ""},
		{"a refusal by status", job.OnPreToolUse, hookOutput{stderr: []byte("no\n"), exitStatus: 2}, transcript.HookAnswer{Decision: transcript.HookDeny, Reason: "no"}, ""},
		{"another status", job.OnPreToolUse, hookOutput{stderr: []byte("boo"), exitStatus: 3}, transcript.HookAnswer{}, "it ended with exit status 3: boo"},
		{"text", job.OnPreToolUse, hookOutput{stdout: []byte("fine")}, transcript.HookAnswer{}, ""},
		{"text at a start for others", job.OnSessionStart, hookOutput{stdout: []byte("Mind it.")}, transcript.HookAnswer{Context: "Mind it."}, ""},
		{"bad JSON for others", job.OnPreToolUse, hookOutput{stdout: []byte(`{"decision":`)}, transcript.HookAnswer{}, "no JSON"},
		{"two objects", job.OnPreToolUse, hookOutput{stdout: []byte(`{} {}`)}, transcript.HookAnswer{}, "more than one"},
		{"a decision that is none", job.OnPreToolUse, hookOutput{stdout: []byte(`{"decision":"maybe"}`)}, transcript.HookAnswer{}, "maybe"},
		{"old approval", job.OnPreToolUse, hookOutput{stdout: []byte(`{"decision":"approve"}`)}, transcript.HookAnswer{}, ""},
		{"old block", job.OnPreToolUse, hookOutput{stdout: []byte(`{"decision":"block","reason":"r"}`)}, transcript.HookAnswer{Decision: transcript.HookDeny, Reason: "r"}, ""},
		{"permission", job.OnPreToolUse, hookOutput{stdout: []byte(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"r"}}`)}, transcript.HookAnswer{Decision: transcript.HookDeny, Reason: "r"}, ""},
		{"permission that is none", job.OnPreToolUse, hookOutput{stdout: []byte(`{"hookSpecificOutput":{"permissionDecision":"perhaps"}}`)}, transcript.HookAnswer{}, "perhaps"},
		{"permission later", job.OnPreToolUse, hookOutput{stdout: []byte(`{"hookSpecificOutput":{"permissionDecision":"defer"}}`)}, transcript.HookAnswer{Decision: decisionAsk}, ""},
		{"a log before JSON", job.OnPreToolUse, hookOutput{stdout: []byte("checking\n" + `{"decision":"block"}`)}, transcript.HookAnswer{}, "may be JSON"},
		{"a list", job.OnPreToolUse, hookOutput{stdout: []byte(`[{"decision":"block"}]`)}, transcript.HookAnswer{}, "may be JSON"},
		{"a byte order mark", job.OnPreToolUse, hookOutput{stdout: []byte("\ufeff" + `{"decision":"block","reason":"r"}`)}, transcript.HookAnswer{Decision: transcript.HookDeny, Reason: "r"}, ""},
		{"a key of the inner object", job.OnPreToolUse, hookOutput{stdout: []byte(`{"permissionDecision":"deny"}`)}, transcript.HookAnswer{}, "means nothing"},
		{"a key of the outer object", job.OnPreToolUse, hookOutput{stdout: []byte(`{"hookSpecificOutput":{"decision":"block"}}`)}, transcript.HookAnswer{}, "means nothing"},
		{"another case", job.OnPreToolUse, hookOutput{stdout: []byte(`{"Decision":"block"}`)}, transcript.HookAnswer{}, "means nothing"},
		{"no known key", job.OnPreToolUse, hookOutput{stdout: []byte(`{"verdict":"deny"}`)}, transcript.HookAnswer{}, "no key that is known"},
		{"a newer key beside", job.OnPreToolUse, hookOutput{stdout: []byte(`{"suppressOutput":true,"newer":1}`)}, transcript.HookAnswer{}, ""},
		{"a mistyped key beside, at a point of ours", job.OnPrePublish, hookOutput{stdout: []byte(`{"suppressOutput":true,"descision":"block"}`)}, transcript.HookAnswer{}, `"descision", which is no key of pre_publish`},
		{"one in the inner object", job.OnShellEnv, hookOutput{stdout: []byte(`{"hookSpecificOutput":{"hookEventName":"shell_env","enw":{}}}`)}, transcript.HookAnswer{}, `"enw", which is no key of shell_env`},
		{"an empty object", job.OnPreToolUse, hookOutput{stdout: []byte(`{}`)}, transcript.HookAnswer{}, ""},
		{"text with code at a start", job.OnSessionStart, hookOutput{stdout: []byte("func f() {\n}")}, transcript.HookAnswer{Context: "func f() {\n}"}, ""},
		{"JSON in text at a start", job.OnSessionStart, hookOutput{stdout: []byte("log\n" + `{"continue":false}`)}, transcript.HookAnswer{}, "may be JSON"},
		{"null", job.OnPreToolUse, hookOutput{stdout: []byte(`{"hookSpecificOutput":null}`)}, transcript.HookAnswer{}, ""},
		{"a permission of another event", job.OnPostToolUse, hookOutput{stdout: []byte(`{"hookSpecificOutput":{"permissionDecision":"deny"}}`)}, transcript.HookAnswer{}, "PostToolUse has no place for"},
		{"text of a prompt", job.OnUserPrompt, hookOutput{stdout: []byte("Mind it.")}, transcript.HookAnswer{Context: "Mind it."}, ""},
		{"a block of a prompt", job.OnUserPrompt, hookOutput{stdout: []byte(`{"decision":"block","reason":"r"}`)}, transcript.HookAnswer{Decision: transcript.HookDeny, Reason: "r"}, ""},
		{"a key twice", job.OnPreToolUse, hookOutput{stdout: []byte(`{"decision":"deny","decision":"allow"}`)}, transcript.HookAnswer{}, "more than once"},
		{"a key in two cases", job.OnPreToolUse, hookOutput{stdout: []byte(`{"DECISION":"deny","Decision":"allow"}`)}, transcript.HookAnswer{}, "means nothing"},
		{"a stop without words", job.OnStop, hookOutput{exitStatus: 2}, transcript.HookAnswer{Decision: transcript.HookMore, Reason: "It gives no reason. Look whether the task is done."}, ""},
		{"a stop with context", job.OnStop, hookOutput{stdout: []byte(`{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"test it"}}`)}, transcript.HookAnswer{Decision: transcript.HookMore, Reason: "test it"}, ""},
		{"another event", job.OnPreToolUse, hookOutput{stdout: []byte(`{"hookSpecificOutput":{"hookEventName":"Stop"}}`)}, transcript.HookAnswer{}, "was asked about PreToolUse"},
		{"a stop that blocks", job.OnStop, hookOutput{stdout: []byte(`{"decision":"block","reason":"test it"}`)}, transcript.HookAnswer{Decision: transcript.HookMore, Reason: "test it"}, ""},
		{"a stop that lets end", job.OnStop, hookOutput{stdout: []byte(`{"continue":false,"decision":"block","reason":"x"}`)}, transcript.HookAnswer{}, ""},
		{"an end of all", job.OnPostToolUse, hookOutput{stdout: []byte(`{"continue":false,"stopReason":"x"}`)}, transcript.HookAnswer{Decision: transcript.HookDeny, Reason: "x", Stop: true}, ""},
		{"feedback", job.OnPostToolUse, hookOutput{stderr: []byte("tab"), exitStatus: 2}, transcript.HookAnswer{Decision: transcript.HookDeny, Reason: "tab"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Hook{ActiveHook: transcript.ActiveHook{Event: test.on}}.parseAnswer(test.said)
			if test.bad != "" {
				must.Fail(t, test.bad, err)
				return
			}
			must.Do(t, err)
			must.Same(t, reply{HookAnswer: test.want}, got)
		})
	}
}

// A mandatory hook that the record does not list never answered.
func TestUnlistedHookNeverAnswered(t *testing.T) {
	h := Hooks{Record: record.New("", nil), All: []Hook{{ActiveHook: transcript.ActiveHook{Name: "a", Event: job.OnStop, MustFire: true}}}}
	must.Fail(t, "hook_never_ran", h.RequireAnswered())
}

func TestParsesReplacedOutputs(t *testing.T) {
	for raw, want := range map[string]string{
		`"x"`: "x", `{"stdout":"a","stderr":"b"}`: "ab", `{"content":"c"}`: "c", `{"content":[{"type":"text","text":"d"}]}`: "d", `[{"text":"e"},{"text":"f"}]`: "e\nf",
	} {
		if got, err := outputText(json.RawMessage(raw)); got != want || err != nil {
			t.Errorf("%s: %q, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`7`, `[{"type":"image"}]`, `{"other":1}`} {
		must.Fail(t, "", must.Err(outputText(json.RawMessage(raw))), raw)
	}
}

func TestMatchesCalls(t *testing.T) {
	call := func(cmd string) tools.Call {
		raw, _ := json.Marshal(map[string]string{"cmd": cmd})
		return tools.Call{Input: string(raw)}
	}
	for _, test := range []struct {
		hook transcript.ActiveHook
		cmd  string
		want bool
	}{
		{transcript.ActiveHook{}, "ls", true},
		{transcript.ActiveHook{Tools: []string{"exec_.*"}}, "ls", true},
		{transcript.ActiveHook{Tools: []string{"Edit|Bash"}}, "ls", true},
		{transcript.ActiveHook{Tools: []string{"Edit|Write"}}, "ls", false},
		{transcript.ActiveHook{Tools: []string{".*"}}, "ls", true},
		{transcript.ActiveHook{Tools: []string{"mcp__.*"}}, "ls", false},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, "git push origin", true},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, "true && sudo /usr/bin/git push", true},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, "bash -c 'git push'", true},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, "git -C . push", true},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, "$X push", true},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, "git pull", false},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, "echo git push", false},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, `bash -c "git push $X"`, true},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, `eval "$X"`, true},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, "sudo $X push", true},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, "./bash -c true", true},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, "timeout 9 go test $X", false},
		{transcript.ActiveHook{Argv: []string{"git", "push"}}, "make", false},
	} {
		one := Hook{ActiveHook: test.hook}
		must.Same(t, test.want, one.matches("exec_command", call(test.cmd)), test.hook.Tools, test.hook.Argv, test.cmd)
	}
}

func TestRewrittenCommandsKeepFormOfCall(t *testing.T) {
	by := json.RawMessage(`{"command":"make"}`)
	for _, test := range []struct {
		tool string
		call tools.Call
		want string
	}{
		{"exec_command", tools.Call{Input: `{"cmd":"x","tty":true}`}, `{"cmd":"make","tty":true}`},
		{"shell", tools.Call{Input: `{"command":["x"]}`}, `{"command":["bash","-lc","make"]}`},
		{"shell_command", tools.Call{Input: `{"command":"x"}`}, `{"command":"make"}`},
		{"shell", tools.Call{Input: `{"commands":["x","y"]}`, Form: tools.ShellAction}, `{"commands":["make"]}`},
		{"shell", tools.Call{Input: `{"command":["x"]}`, Form: tools.LocalShellAction}, `{"command":["bash","-lc","make"]}`},
		{"write_stdin", tools.Call{Input: `{"chars":"x","session_id":1}`}, `{"chars":"make","session_id":1}`},
	} {
		if got, err := rewrite(test.tool, test.call, claudeCall{}, by); got != test.want || err != nil {
			t.Errorf("%s: %s, %v", test.call.Input, got, err)
		}
	}
	for _, bad := range []string{`{}`, `{"command":" "}`, `[]`, `{"command":7}`} {
		must.Fail(t, "", must.Err(rewrite("exec_command", tools.Call{Input: `{"cmd":"x"}`}, claudeCall{}, json.RawMessage(bad))), bad)
	}
}

func TestShowsCommandsAsRun(t *testing.T) {
	for _, test := range []struct {
		tool, input string
		form        tools.Form
		want        string
	}{
		{"shell", `{"command":["bash","-lc","a b"]}`, tools.Function, "a b"},
		{"shell", `{"command":["printf","%s","a b","it's"]}`, tools.Function, `printf '%s' 'a b' 'it'\''s'`},
		{"shell", `{"command":["bash","-c","bad","-c","good"]}`, tools.Function, "bash -c bad -c good"},
		{"shell", `{"command":["bash","-c","bad","abc","good"]}`, tools.Function, "bash -c bad abc good"},
		{"shell", `{"command":["./bash","-c","good"]}`, tools.Function, "./bash -c good"},
		{"shell", `{"commands":["a","b"],"cmd":"good"}`, tools.ShellAction, "a\nb"},
		{"shell", `{"commands":["cat <<E","git push"]}`, tools.ShellAction, "bash -c 'cat <<E'\ngit push"},
		{"shell", `{"type":"exec","command":["sh","-c","bad"],"cmd":"good"}`, tools.LocalShellAction, "bad"},
		{"shell", `{"type":"other","command":["sh"]}`, tools.LocalShellAction, `{"type":"other","command":["sh"]}`},
		{"exec_command", `{"cmd":"a"}`, tools.Function, "a"},
		{"exec_command", `{"cmd":"true","shell":"./bash"}`, tools.Function, "./bash -c true"},
	} {
		call := tools.Call{Input: test.input, Form: test.form}
		if got := commandText(test.tool, call); test.want != got && strings.ReplaceAll(test.want, "'%s'", "%s") != got {
			t.Errorf("%s: %s", test.input, got)
		}
	}
}

func TestSortsAndDigestsHooks(t *testing.T) {
	files := map[string]string{"a.sh": "one"}
	base := func(name string, _ int64) ([]byte, error) {
		if text, there := files[name]; there {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
	home := t.TempDir()
	one := map[string]job.Hook{"c": {On: job.OnStop, Run: []string{"~/c.sh"}}, "b": {On: job.OnStop, Run: []string{"sh", "a.sh"}}, "a": {On: job.OnStop, Run: []string{"./a.sh"}, Trusted: job.TrustedOperator}}
	collect := func() []Hook {
		return must.Get(Combine(map[string]job.Hook{"z": {On: job.OnStop, Run: []string{"true"}, Trusted: job.TrustedOperator}}, one, base, home))(t)
	}
	before := collect()
	if before[0].Name != "operator/z" || before[1].Name != "a" || before[2].Name != "b" {
		t.Errorf("%v", before)
	}
	if !before[0].Trusted || before[1].Trusted {
		t.Error("who is trusted is not by the operator alone")
	}
	files["a.sh"] = "two"
	must.Do(t, os.WriteFile(filepath.Join(home, "c.sh"), []byte("two"), 0o700))
	after := collect()
	if before[0].SHA256 != after[0].SHA256 || before[1].SHA256 == after[1].SHA256 || before[2].SHA256 == after[2].SHA256 || before[3].SHA256 == after[3].SHA256 {
		t.Error("a digest is not by the files")
	}
}
