package hooks

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// asked are hooks in a folder, which nothing confines, and what is recorded of them.
func asked(t *testing.T, dir string, of map[string]job.Hook) (*Hooks, *[]transcript.Hook) {
	t.Helper()
	for name, h := range of {
		if h.Timeout == 0 {
			h.Timeout = job.Duration(60e9)
		}
		of[name] = h
	}
	all, err := Collect(nil, of, func(name string, _ int64) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) }, os.Getenv("HOME"))
	if err != nil {
		t.Fatal(err)
	}
	var events []transcript.Hook
	rec := record.New("run-1", nil)
	if err := rec.Make(filepath.Join(t.TempDir(), "run"), func(e transcript.Event) {
		var d transcript.Hook
		if e.Type == transcript.TypeHook && json.Unmarshal(e.Data, &d) == nil {
			events = append(events, d)
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rec.Close)
	h := &Hooks{All: all, Record: rec, Facts: Facts{RunID: "run-1", Root: "/nowhere", WorkDir: "/nowhere", Path: "."}, Rooms: Rooms{
		Environ:  os.Environ(),
		BaseTree: func(context.Context) (string, error) { return dir, nil },
		Open:     func(context.Context, *sandbox.Sandbox) (*sandbox.Sandbox, error) { return new(sandbox.Sandbox), nil },
	}}
	t.Cleanup(h.Rest)
	return h, &events
}

// examples are the files that docs/hooks.md shows, by their names.
func examples(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```(?:python|sh)\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		found[block[1]] = block[2]
	}
	return found
}

func TestTheExamplesOfTheDocumentRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range examples(t) {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, events := asked(t, dir, map[string]job.Hook{
		"guard":  {On: job.OnPreTool, Run: []string{"python3", ".github/hooks/guard.py"}, Compat: job.CompatClaude, Tools: []string{"Bash"}},
		"paths":  {On: job.OnPrePatch, Run: []string{"sh", ".github/hooks/paths.sh"}},
		"review": {On: job.OnPrePublish, Run: []string{"python3", ".github/hooks/review.py"}},
	})
	rewritten := ""
	before := func(cmd string) tools.Verdict {
		call := tools.Call{Number: 1, Name: "exec_command", Input: `{"cmd":"` + cmd + `"}`}
		return h.Before(t.Context(), "exec_command", call, func(input string) (tools.Call, bool) {
			rewritten, call.Input = input, input
			return call, true
		})
	}
	for _, cmd := range []string{"rm -rf /", "rm -r -f x", "rm -f -r x", "ls; rm -fR x"} {
		if v := before(cmd); !strings.Contains(v.Refusal, "rm -r is not allowed here") {
			t.Errorf("%s: %+v", cmd, v)
		}
	}
	if v := before("cd . && npm  install left"); rewritten != `{"cmd":"cd . && npm ci left"}` {
		t.Errorf("%+v", v)
	}
	if v := before("ls"); v != (tools.Verdict{}) {
		t.Errorf("%+v", v)
	}
	patch := func(name, from string) string {
		refusal, _ := h.Patching(t.Context(), Patch{Edits: []tree.Edit{{Change: tree.Change{Op: v4a.Add, Path: name, MovedFrom: from}}}})
		return refusal
	}
	for _, names := range [][2]string{{"migrations/1.sql"}, {"x.sql", "migrations/1.sql"}} {
		if words := patch(names[0], names[1]); !strings.Contains(words, "Migrations are written by hand.") {
			t.Error(words)
		}
	}
	if words := patch("a.go", ""); words != "" {
		t.Error(words)
	}
	for diff, words := range map[string]string{"+// TODO(agent): later\n": "adds a TODO(agent)", "GIT binary patch\n": "a binary file"} {
		if err := h.Publishing(t.Context(), Draft{Diff: diff}); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("err = %v", err)
		}
	}
	if err := h.Publishing(t.Context(), Draft{Diff: "-// TODO(agent): done\n+x\n"}); err != nil {
		t.Errorf("err = %v", err)
	}
	var decisions []string
	for _, e := range *events {
		decisions = append(decisions, e.Name+" "+e.Decision)
	}
	want := []string{"guard deny", "guard deny", "guard deny", "guard deny", "guard rewrite", "guard pass", "paths deny", "paths deny", "paths pass", "review deny", "review deny", "review pass"}
	if diff := cmp.Diff(want, decisions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnswersAreRead(t *testing.T) {
	for _, test := range []struct {
		name string
		hook job.Hook
		said said
		want answer
		bad  string // part of the error; empty for none
	}{
		{"nothing", job.Hook{On: job.OnPreTool}, said{}, answer{}, ""},
		{"blanks", job.Hook{On: job.OnPreTool}, said{output: []byte(" \n")}, answer{}, ""},
		{"a refusal by status", job.Hook{On: job.OnPreTool}, said{errors: []byte("no\n"), status: 2}, answer{decision: denies, reason: "no"}, ""},
		{"another status", job.Hook{On: job.OnPreTool}, said{errors: []byte("boo"), status: 3}, answer{}, "it ended with exit status 3: boo"},
		{"text", job.Hook{On: job.OnPreTool}, said{output: []byte("fine")}, answer{}, "no JSON"},
		{"text for others", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte("fine")}, answer{}, ""},
		{"text at a start for others", job.Hook{On: job.OnRunStart, Compat: job.CompatClaude}, said{output: []byte("Mind it.")}, answer{context: "Mind it."}, ""},
		{"bad JSON for others", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte(`{"decision":`)}, answer{}, "no JSON"},
		{"two objects", job.Hook{On: job.OnPreTool}, said{output: []byte(`{} {}`)}, answer{}, "more than one"},
		{"a decision that is none", job.Hook{On: job.OnPreTool}, said{output: []byte(`{"decision":"maybe"}`)}, answer{}, "maybe"},
		{"null", job.Hook{On: job.OnPreTool}, said{output: []byte(`{"input":null}`)}, answer{}, ""},
		{"old approval", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte(`{"decision":"approve"}`)}, answer{}, ""},
		{"old block", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte(`{"decision":"block","reason":"r"}`)}, answer{decision: denies, reason: "r"}, ""},
		{"permission", job.Hook{On: job.OnPreTool, Compat: job.CompatCodex}, said{output: []byte(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"r"}}`)}, answer{decision: denies, reason: "r"}, ""},
		{"permission that is none", job.Hook{On: job.OnPreTool, Compat: job.CompatCodex}, said{output: []byte(`{"hookSpecificOutput":{"permissionDecision":"perhaps"}}`)}, answer{}, "perhaps"},
		{"permission later", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte(`{"hookSpecificOutput":{"permissionDecision":"defer"}}`)}, answer{decision: asks}, ""},
		{"a log before JSON", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte("checking\n" + `{"decision":"block"}`)}, answer{}, "may be JSON"},
		{"a list", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte(`[{"decision":"block"}]`)}, answer{}, "may be JSON"},
		{"a byte order mark", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte("\ufeff" + `{"decision":"block","reason":"r"}`)}, answer{decision: denies, reason: "r"}, ""},
		{"a key of the inner object", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte(`{"permissionDecision":"deny"}`)}, answer{}, "means nothing"},
		{"a key of the outer object", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte(`{"hookSpecificOutput":{"decision":"block"}}`)}, answer{}, "means nothing"},
		{"another case", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte(`{"Decision":"block"}`)}, answer{}, "means nothing"},
		{"no known key", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte(`{"verdict":"deny"}`)}, answer{}, "no key that is known"},
		{"a newer key beside", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte(`{"suppressOutput":true,"newer":1}`)}, answer{}, ""},
		{"an empty object", job.Hook{On: job.OnPreTool, Compat: job.CompatClaude}, said{output: []byte(`{}`)}, answer{}, ""},
		{"text with code at a start", job.Hook{On: job.OnRunStart, Compat: job.CompatClaude}, said{output: []byte("func f() {\n}")}, answer{context: "func f() {\n}"}, ""},
		{"JSON in text at a start", job.Hook{On: job.OnRunStart, Compat: job.CompatClaude}, said{output: []byte("log\n" + `{"continue":false}`)}, answer{}, "may be JSON"},
		{"null alone", job.Hook{On: job.OnPreTool}, said{output: []byte(`null`)}, answer{}, "no JSON object"},
		{"a key twice", job.Hook{On: job.OnPreTool}, said{output: []byte(`{"decision":"deny","decision":"allow"}`)}, answer{}, "more than once"},
		{"a key in two cases", job.Hook{On: job.OnPreTool}, said{output: []byte(`{"DECISION":"deny","Decision":"allow"}`)}, answer{}, "more than once"},
		{"a key in another case", job.Hook{On: job.OnPreTool}, said{output: []byte(`{"Decision":"deny"}`)}, answer{}, "none of decision"},
		{"a key that is none", job.Hook{On: job.OnPreTool}, said{output: []byte(`{"descision":"deny"}`)}, answer{}, "none of decision"},
		{"a stop without words", job.Hook{On: job.OnStop, Compat: job.CompatClaude}, said{status: 2}, answer{decision: wants, reason: "It gives no reason. Look whether the task is done."}, ""},
		{"a stop with context", job.Hook{On: job.OnStop, Compat: job.CompatClaude}, said{output: []byte(`{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"test it"}}`)}, answer{decision: wants, reason: "test it"}, ""},
		{"another event", job.Hook{On: job.OnPreTool, Compat: job.CompatCodex}, said{output: []byte(`{"hookSpecificOutput":{"hookEventName":"Stop"}}`)}, answer{}, "was asked about PreToolUse"},
		{"a stop that blocks", job.Hook{On: job.OnStop, Compat: job.CompatClaude}, said{output: []byte(`{"decision":"block","reason":"test it"}`)}, answer{decision: wants, reason: "test it"}, ""},
		{"a stop that lets end", job.Hook{On: job.OnStop, Compat: job.CompatClaude}, said{output: []byte(`{"continue":false,"decision":"block","reason":"x"}`)}, answer{}, ""},
		{"an end of all", job.Hook{On: job.OnPostTool, Compat: job.CompatClaude}, said{output: []byte(`{"continue":false,"stopReason":"x"}`)}, answer{decision: denies, reason: "x", stop: true}, ""},
		{"feedback", job.Hook{On: job.OnPostTool, Compat: job.CompatClaude}, said{errors: []byte("tab"), status: 2}, answer{decision: denies, reason: "tab", feedback: true}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Hook{Hook: test.hook}.read(test.said)
			if test.bad != "" {
				if err == nil || !strings.Contains(err.Error(), test.bad) {
					t.Errorf("err = %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutputsOfOthersAreText(t *testing.T) {
	for raw, want := range map[string]string{
		`"x"`: "x", `{"stdout":"a","stderr":"b"}`: "ab", `{"content":"c"}`: "c", `{"content":[{"type":"text","text":"d"}]}`: "d", `[{"text":"e"},{"text":"f"}]`: "e\nf",
	} {
		if got, err := outputText(json.RawMessage(raw)); got != want || err != nil {
			t.Errorf("%s: %q, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`7`, `[{"type":"image"}]`, `{"other":1}`} {
		if got, err := outputText(json.RawMessage(raw)); err == nil {
			t.Errorf("%s: %q", raw, got)
		}
	}
}

func TestWhomAHookConcerns(t *testing.T) {
	call := func(cmd string) tools.Call {
		raw, _ := json.Marshal(map[string]string{"cmd": cmd})
		return tools.Call{Input: string(raw)}
	}
	for _, test := range []struct {
		hook job.Hook
		cmd  string
		want bool
	}{
		{job.Hook{}, "ls", true},
		{job.Hook{Tools: []string{"exec_*"}}, "ls", true},
		{job.Hook{Tools: []string{"Edit|Bash"}, Compat: "claude"}, "ls", true},
		{job.Hook{Tools: []string{"Edit|Bash"}}, "ls", false},
		{job.Hook{Tools: []string{".*"}}, "ls", true},
		{job.Hook{Tools: []string{"mcp__.*"}}, "ls", false},
		{job.Hook{Argv: []string{"git", "push"}}, "git push origin", true},
		{job.Hook{Argv: []string{"git", "push"}}, "true && sudo /usr/bin/git push", true},
		{job.Hook{Argv: []string{"git", "push"}}, "bash -c 'git push'", true},
		{job.Hook{Argv: []string{"git", "push"}}, "git -C . push", true},
		{job.Hook{Argv: []string{"git", "push"}}, "$X push", true},
		{job.Hook{Argv: []string{"git", "push"}}, "git pull", false},
		{job.Hook{Argv: []string{"git", "push"}}, "echo git push", false},
		{job.Hook{Argv: []string{"git", "push"}}, `bash -c "git push $X"`, true},
		{job.Hook{Argv: []string{"git", "push"}}, `eval "$X"`, true},
		{job.Hook{Argv: []string{"git", "push"}}, "sudo $X push", true},
		{job.Hook{Argv: []string{"git", "push"}}, "./bash -c true", true},
		{job.Hook{Argv: []string{"git", "push"}}, "timeout 9 go test $X", false},
		{job.Hook{Argv: []string{"git", "push"}}, "make", false},
	} {
		one := Hook{Hook: test.hook}
		as := shape(one.Compat, "exec_command", call(test.cmd))
		got := one.concerns("exec_command", call(test.cmd), names(one.Compat, "exec_command", as)...)
		if got != test.want {
			t.Errorf("%v %v of %q: %t", test.hook.Tools, test.hook.Argv, test.cmd, got)
		}
	}
}

func TestRewrittenCommandsKeepTheFormOfTheCall(t *testing.T) {
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
		if got, err := rewrite(job.CompatClaude, test.tool, test.call, by); got != test.want || err != nil {
			t.Errorf("%s: %s, %v", test.call.Input, got, err)
		}
	}
	for _, bad := range []string{`{}`, `{"command":" "}`, `[]`, `{"command":7}`} {
		if got, err := rewrite(job.CompatClaude, "exec_command", tools.Call{Input: `{"cmd":"x"}`}, json.RawMessage(bad)); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

func TestCommandsAreShownAsTheyAreRun(t *testing.T) {
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
	shown := objectOf(tools.Call{Input: `{"commands":["bad"],"Commands":["worse"]}`, Form: tools.ShellAction})
	if diff := cmp.Diff(map[string]any{"commands": []string{"worse"}}, shown); diff != "" { // the last is what is run
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheOrderAndTheDigest(t *testing.T) {
	files := map[string]string{"a.sh": "one"}
	base := func(name string, _ int64) ([]byte, error) {
		if text, there := files[name]; there {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
	home := t.TempDir()
	one := map[string]job.Hook{"c": {On: "stop", Run: []string{"~/c.sh"}}, "b": {On: "stop", Run: []string{"sh", "a.sh"}}, "a": {On: "stop", Run: []string{"./a.sh"}, Trusted: job.TrustedOperator}}
	collect := func() []Hook {
		all, err := Collect(map[string]job.Hook{"z": {On: "stop", Run: []string{"true"}, Trusted: job.TrustedOperator}}, one, base, home)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := collect()
	if before[0].Name != "operator/z" || before[1].Name != "a" || before[2].Name != "b" {
		t.Errorf("%v", before)
	}
	if !before[0].Trusted() || before[1].Trusted() {
		t.Error("who is trusted is not by the operator alone")
	}
	files["a.sh"] = "two"
	if err := os.WriteFile(filepath.Join(home, "c.sh"), []byte("two"), 0o700); err != nil {
		t.Fatal(err)
	}
	after := collect()
	if before[0].SHA256 != after[0].SHA256 || before[1].SHA256 == after[1].SHA256 || before[2].SHA256 == after[2].SHA256 || before[3].SHA256 == after[3].SHA256 {
		t.Error("a digest is not by the files")
	}
}
