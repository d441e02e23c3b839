package command

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// act carries out an action of the API's own items.
func (b *bench) act(ctx context.Context, form tools.Form, action string) tools.Result {
	b.Helper()
	return b.d.Dispatch(ctx, []tools.Call{{ID: "call_1", Name: "shell", Input: action, Form: form}})[0]
}

func TestActions(t *testing.T) {
	type result struct {
		Commands []tools.Ran
		Failed   bool
		Detail   map[string]any
	}
	for _, test := range []struct {
		name   string
		form   tools.Form
		action string
		want   result
	}{
		{
			"one command", tools.ShellAction, `{"commands":["echo hi; echo no >&2"],"timeout_ms":null,"max_output_length":null}`,
			result{[]tools.Ran{{Output: "hi\nno\n"}}, false, map[string]any{"exit_code": 0}},
		},
		{
			"several, each in its own shell, whatever came before", tools.ShellAction, `{"commands":["x=1; exit 3","echo \"[$x]\""]}`,
			result{
				[]tools.Ran{{ExitCode: 3}, {Output: "[]\n"}},
				true,
				map[string]any{"commands": []map[string]any{{"exit_code": 3}, {"exit_code": 0}}},
			},
		},
		{
			"at its time limit", tools.ShellAction, `{"commands":["echo a; read x <go"],"timeout_ms":50}`,
			result{[]tools.Ran{{Output: "command timed out after 50 milliseconds\na\n", ExitCode: 124, TimedOut: true}}, true, map[string]any{"exit_code": 124, "timed_out": true}},
		},
		{
			"local: words stay apart", tools.LocalShellAction, `{"type":"exec","command":["printf","<%s>","a b","c"],"env":{}}`,
			result{[]tools.Ran{{Output: "<a b><c>"}}, false, map[string]any{"exit_code": 0}},
		},
		{
			"local: environment and folder", tools.LocalShellAction, `{"type":"exec","command":["sh","-c","echo $A $MARK; basename $PWD"],"env":{"A":"x=y"},"working_directory":"sub","timeout_ms":null,"user":null}`,
			result{[]tools.Ran{{Output: "x=y seen\nsub\n"}}, false, map[string]any{"exit_code": 0}},
		},
		{
			"what cannot be started", tools.LocalShellAction, `{"type":"exec","command":["no-such-program"],"env":{}}`,
			result{[]tools.Ran{{Output: `"no-such-program": executable file not found in $PATH`, ExitCode: 126}}, true, map[string]any{"exit_code": 126}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.pipe("go")
			got := b.act(t.Context(), test.form, test.action)
			for i := range got.Commands {
				got.Commands[i].Took = 0
			}
			must.Same(t, test.want, result{got.Commands, got.Failed, got.Detail})
		})
	}
}

func TestRefusesInvalidActions(t *testing.T) {
	for _, test := range []struct {
		name   string
		form   tools.Form
		action string
		want   string
	}{
		{"no JSON", tools.ShellAction, `{`, "the action cannot be carried out: read it: "},
		{"no commands", tools.ShellAction, `{"commands":[]}`, "it has no commands"},
		{"local: another type", tools.LocalShellAction, `{"type":"open","command":["ls"]}`, `"open" is no type of action`},
		{"local: no command", tools.LocalShellAction, `{"type":"exec","command":[]}`, "its command is empty"},
		{"local: another user", tools.LocalShellAction, `{"type":"exec","command":["id"],"user":"root"}`, "leave user out"},
		{"local: a variable's name", tools.LocalShellAction, `{"type":"exec","command":["id"],"env":{"A=B":"c"}}`, `"A=B" is no name of a variable`},
		{"local: outside", tools.LocalShellAction, `{"type":"exec","command":["ls"],"working_directory":"/"}`, `workdir "/" is outside`},
	} {
		t.Run(test.name, func(t *testing.T) {
			must.Contain(t, toolstest.Failure(t, newBench(t).act(t.Context(), test.form, test.action)), test.want)
		})
	}
}

func TestLimitsActionOutput(t *testing.T) {
	for _, test := range []struct {
		name, action string
		cut          []bool
	}{
		{"under", `{"commands":["printf 1234567"],"max_output_length":8}`, []bool{false}},
		{"at", `{"commands":["printf 12345678"],"max_output_length":8}`, []bool{false}},
		{"over", `{"commands":["printf 123456789"],"max_output_length":8}`, []bool{true}},
		{"shared", `{"commands":["printf 1234","printf 12345"],"max_output_length":8}`, []bool{false, true}},
		{"none", `{"commands":["printf 123456789"],"max_output_length":0}`, []bool{false}},
		{"beyond all measure", `{"commands":["printf 123456789"],"max_output_length":1e300}`, []bool{false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var cut []bool
			for _, ran := range newBench(t).act(t.Context(), tools.ShellAction, test.action).Commands {
				cut = append(cut, strings.Contains(ran.Output, "truncated"))
			}
			must.Same(t, test.cut, cut)
		})
	}
}

func TestCancelEndsActionCommand(t *testing.T) {
	b := newBench(t)
	r := b.act(b.cancelOnce(b.pipe("go")), tools.ShellAction, `{"commands":["seq 1 400000","echo a; read x <go","echo late"]}`)
	if !r.Failed || r.Commands != nil || !strings.HasPrefix(r.Output, "aborted after ") || !strings.HasSuffix(r.Output, "\nOutput:\na\n") {
		t.Errorf("got %+v", r)
	}
}

func TestActionAppliesPatch(t *testing.T) {
	var applied []string
	b := newBench(t, func(o *Options) {
		o.Patch = func(_ context.Context, _, text string) (tools.Result, error) {
			applied = append(applied, text)
			return tools.Result{Output: "Success.", Detail: map[string]any{"files": 1}}, nil
		}
	})
	const patch = `*** Begin Patch\n*** End Patch\n`
	r := b.act(t.Context(), tools.ShellAction, `{"commands":["true","apply_patch <<'EOF'\n`+patch+`EOF\n"]}`)
	if len(applied) != 1 || !b.seen.mutated || r.Failed || len(r.Commands) != 2 || r.Commands[1].Output != "Success.\n" {
		t.Errorf("applied %q, mutated %t, got %+v", applied, b.seen.mutated, r)
	}
}

func TestOffersShellInModelForm(t *testing.T) {
	for _, test := range []struct {
		form tools.Form
		want string
	}{{tools.Function, ""}, {tools.ShellAction, "shell"}, {tools.LocalShellAction, "local_shell"}} {
		b := newBench(t, func(o *Options) { o.Shell = test.form })
		specs := b.d.Registry.Specs([]string{"shell"})
		if len(specs) != 1 || specs[0].Builtin != test.want {
			t.Errorf("form %d: got %+v", test.form, specs)
		}
		if r := b.call(t.Context(), "shell", map[string]any{"command": []string{"echo", "hi"}}); r.Failed || !strings.HasSuffix(r.Output, "Output:\nhi\n") {
			t.Errorf("form %d: called as a function it gives %+v", test.form, r)
		}
	}
}

func TestActionObeysCommandTimeLimit(t *testing.T) {
	b := newBench(t, func(o *Options) { o.limit = 50 * time.Millisecond })
	b.pipe("go")
	r := b.act(t.Context(), tools.LocalShellAction, `{"type":"exec","command":["sh","-c","read x <go"],"env":{},"timeout_ms":60000}`)
	if len(r.Commands) != 1 || !r.Commands[0].TimedOut {
		t.Errorf("got %+v", r)
	}
}
