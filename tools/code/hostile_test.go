package code_test

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
)

// Each script takes what it can get, and ends in words that say of what it took too much.
func TestHostileScriptsGetErrors(t *testing.T) {
	allFail(t, []hostileScript{
		{"recursion", `(function f() { f() })()`, "RangeError: stack overflow"},
		{"deep values", `let a = []; for (let i = 0; i < 2e4; i++) a = [a]; text(a)`, "RangeError: stack overflow"},
		{"timers", `for (let i = 0; i < 1e6; i++) setTimeout(() => {}, 1e6)`, "RangeError: more than 10000 timers are set"},
		{"timers and no mercy", `for (let i = 0; i < 2e4; i++) try { setTimeout(() => {}, 1e6) } catch (e) { if (i === 19999) throw e }`, "RangeError: more than 10000 timers are set"},
		{"items", `for (;;) text("x")`, "Error: the script showed more than 10000 items or 16 MiB"},
		{"items that are caught", `for (;;) try { text("x") } catch {}`, "Error: the script showed more than 10000 items or 16 MiB"},
		{"bytes", `for (;;) text("x".repeat(1 << 20))`, "Error: the script showed more than 10000 items or 16 MiB"},
		{"calls", `for (;;) await Promise.all(Array.from({length: 2000}, () => tools.hang()))`, "RangeError: more than 1000 calls are under way"},
		{"a large input", `await tools.plain("x".repeat(5 << 20))`, "RangeError: the input of tools.plain has more than 4194304 bytes"},
		{"many large inputs", `const s = "x".repeat(3 << 20); await Promise.all(Array.from({length: 100}, () => tools.plain(s)))`, "RangeError: the inputs of the calls under way have more than 16777216 bytes"},
		{"an error that lies", `throw Object.defineProperty(new Error(), "message", { get() { throw 1 } })`, "an error that cannot be shown"},
		{"an error that loops", `throw { toString() { throw 1 } }`, "an error that cannot be shown"},
	})
}

// hostileScript is a script with a part of its error.
type hostileScript struct{ name, script, want string }

// allFail checks that each script fails with its error, however slow the machine is, and that a script after them runs.
func allFail(t *testing.T, scripts []hostileScript) {
	t.Helper()
	r := startProgram(t, "is patient", new(sandbox.Sandbox), new(tools.Outputs))
	for _, s := range scripts {
		got := r.call(t.Context(), "exec", "// @exec: {\"yield_time_ms\": 600000}\n"+s.script)
		if !got.Failed || !strings.HasPrefix(got.Output, "Script failed\n") || !strings.Contains(got.Output, s.want) {
			t.Errorf("%s: got %.1000s", s.name, got.Output)
		}
	}
	must.Same(t, head("completed")+"\nnext", said(r.call(t.Context(), "exec", `text("next")`)), "the next one")
}

// A script that only computes is ended when it has done so for 30 s.
func TestEndsEndlessLoops(t *testing.T) {
	for _, script := range []string{
		`for (;;);`,
		`try { for (;;); } catch {} finally { for (;;); }`,
		`await (async function f() { for (;;) await 0 })()`,
		`/(a+)+$/.test("a".repeat(40) + "b")`,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			wantEnded(t, startProgram(t, "hurries", new(sandbox.Sandbox), new(tools.Outputs)), script, "0 s")
		})
	}
}

// A script may compute for longer than those of the test above.
func TestScriptsMayCompute(t *testing.T) {
	t.Parallel()
	r := start(t, new(sandbox.Sandbox), new(tools.Outputs))
	got := said(r.call(t.Context(), "exec", "// @exec: {\"yield_time_ms\": 600000}\nconst end = Date.now() + 200; while (Date.now() < end); text(\"done\")"))
	must.Same(t, head("completed")+"\ndone", got)
}

func wantEnded(t *testing.T, r *run, script, after string) {
	t.Helper()
	got := r.call(t.Context(), "exec", "// @exec: {\"yield_time_ms\": 600000}\n"+script)
	must.Same(t, head("failed")+"\nScript error:\nError: the script computed for "+after+" without waiting for anything, and was ended.", said(got))
}

// An engine that its script has broken can say anything. It ends in words, and never takes the run with it.
func TestExplainsBrokenEngines(t *testing.T) {
	for program, want := range map[string]string{
		"dies":            "Error: the engine of the script died, and the script with it. It ended with exit status 3",
		"dies of memory":  "Error: the script took more memory than a script has, and its engine died. Work on less at once.",
		"speaks no JSON":  "Error: the engine of the script was ended: read a message: invalid character 'h' looking for beginning of value",
		"makes no sense":  "Error: the engine of the script was ended: read a message: json: cannot unmarshal number into Go struct field Report.calls of type []message.Call",
		"floods":          "Error: the engine of the script was ended: it showed more than a script may",
		"speaks too long": "Error: the engine of the script was ended: a line is too long",
		"calls too much":  "Error: the engine of the script was ended: it made more or larger calls than a script may",
		"calls strangers": "",
		"stores too much": "[1 stored values were not kept, \"a\" first: together with what other scripts stored they are too much]",
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			r := startProgram(t, program, new(sandbox.Sandbox), new(tools.Outputs))
			got := r.call(t.Context(), "exec", `1`)
			_, after, _ := strings.Cut(said(got), "Output:")
			after = strings.TrimPrefix(strings.TrimPrefix(after, "\n"), "Script error:\n")
			must.Same(t, want, after, got.Output)
			must.Same(t, strings.HasPrefix(want, "Error"), got.Failed, got.Output)
		})
	}
}

func TestReportsOutputOfFailedEngine(t *testing.T) {
	r := startProgram(t, "is none", new(sandbox.Sandbox), new(tools.Outputs))
	if got := r.call(t.Context(), "exec", `1`); !got.Failed || !strings.Contains(got.Output, "start the engine of the script: ") || !strings.HasSuffix(got.Output, "ended with exit status 2: there is no such command") {
		t.Errorf("got %.1000s", got.Output)
	}
}
