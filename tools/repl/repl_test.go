package repl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/repl"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// options are those of a kernel that nothing confines.
func options(t *testing.T) repl.Options {
	t.Helper()
	box := new(sandbox.Sandbox)
	t.Cleanup(func() {
		must.Is(t, nil, box.Close())
	})
	return repl.Options{Sandbox: box, Offer: tools.Freeform, State: new(repl.State), Outputs: new(tools.Outputs), Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}}
}

// session calls the tools of a Repl, and others that its code calls.
type session struct {
	t          *testing.T
	dispatcher *tools.Dispatcher
	record     *record
	calls      int
}

// record has the calls that code made.
type record struct {
	mu    sync.Mutex
	calls []string
}

func (r *record) Started(s tools.Started) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Call.Caller > 0 {
		r.calls = append(r.calls, fmt.Sprintf("%d of %d: %s %s", s.Call.Number, s.Call.Caller, s.Tool, s.Call.Input))
	}
	return nil
}

func (r *record) Finished(tools.Finished) {}

func begin(t *testing.T, o repl.Options, more ...tools.Tool) *session {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil && os.Getenv("CI") == "" {
		t.Skip("there is no node here")
	}
	must.Do(t, repl.Find(t.Context(), o), "node can't be used")
	r := repl.New(o)
	t.Cleanup(r.Close)
	seen := new(record)
	return &session{t: t, record: seen, dispatcher: &tools.Dispatcher{
		Registry: tools.New(slices.Concat(r.Tools(), others(), more)...), Outputs: o.Outputs, Observer: seen,
	}}
}

// others are tools that answer as agent-ci's own do, and two that wait.
func others() []tools.Tool {
	anything := json.RawMessage(`{"type":"object"}`)
	polls := 0
	return []tools.Tool{
		{Spec: tools.Spec{Name: "exec_command", Parameters: anything}, Run: func(_ context.Context, call tools.Call) (tools.Result, error) {
			if strings.Contains(call.Input, "forbidden") {
				return tools.Refuse("the rules refuse it"), nil
			}
			if strings.Contains(call.Input, "slow") {
				return tools.Result{Output: "…", Object: map[string]any{"output": "first\n", "session_id": 1000.0}}, nil
			}
			return tools.Result{Output: "…", Failed: true, Object: map[string]any{"output": "out\n", "exit_code": 3.0}}, nil
		}},
		{Spec: tools.Spec{Name: "write_stdin", Parameters: anything}, Run: func(context.Context, tools.Call) (tools.Result, error) {
			if polls++; polls == 1 {
				return tools.Result{Object: map[string]any{"output": "second\n", "session_id": 1000.0}}, nil
			}
			return tools.Result{Object: map[string]any{"output": "third\n", "exit_code": 0.0}}, nil
		}},
		{Spec: tools.Spec{Name: "apply_patch", Grammar: "start: /x/"}, Mutates: true, Run: func(_ context.Context, call tools.Call) (tools.Result, error) {
			return tools.Result{Output: "patched " + call.Input}, nil
		}},
		{Spec: tools.Spec{Name: "hang", Parameters: anything}, Run: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{}, ctx.Err()
		}},
	}
}

// call makes a call; input is code for js_repl, and a JSON object for other tools.
func (s *session) call(name, input string) tools.Result {
	s.t.Helper()
	s.calls++
	form := tools.Freeform
	if name != repl.Name {
		form = tools.Function
	}
	return s.dispatcher.Dispatch(s.t.Context(), []tools.Call{{ID: fmt.Sprintf("call_%d", s.calls), Number: s.calls, Name: name, Input: input, Form: form}})[0]
}

// gives runs code whose output is want.
func (s *session) gives(code, want string) {
	s.t.Helper()
	if got := s.call(repl.Name, code); got.Failed || got.Output != want {
		s.t.Errorf("%s\ngave (failed: %t) %q\nwant %q", code, got.Failed, got.Output, want)
	}
}

// fails runs code that fails, with an output that has parts of want, in order.
func (s *session) fails(code string, want ...string) tools.Result {
	s.t.Helper()
	got := s.call(repl.Name, code)
	rest, ok := got.Output, got.Failed
	for _, part := range want {
		var found bool
		_, rest, found = strings.Cut(rest, part)
		ok = ok && found
	}
	if !ok {
		s.t.Errorf("%s\ngave (failed: %t) %q\nwant %q", code, got.Failed, got.Output, want)
	}
	return got
}

func TestBindingsLastUntilReset(t *testing.T) {
	t.Parallel()
	s := begin(t, options(t))
	s.gives("let a = 1; const f = await Promise.resolve(3); class X {}; function g() { return 1 }", nothing)
	s.gives("let a = 2; class X { y() {} }; function g() { return a + f }", nothing)
	s.gives("g()", "5\n")
	s.gives("var old = 8, n = 7", nothing)
	s.gives("[n, old, typeof new X().y]", "[ 7, 8, 'function' ]\n")
	must.Contain(t, toolstest.Output(t, s.call(repl.ResetName, "{}")), "without bindings")
	s.gives("var kept = typeof a; kept", "undefined\n")
	s.gives("// codex-js-repl: reset=true timeout_ms=60000\ntypeof kept", "undefined\n")
}

const nothing = "Nothing was printed, and the value is undefined.\n"

func TestPrintsOutputAndValues(t *testing.T) {
	t.Parallel()
	s := begin(t, options(t))
	s.gives(`console.log("one", { two: [2] }); console.error("three"); process.stdout.write("four\n"); require("node:fs").writeSync(1, "five\n"); undefined`,
		"one { two: [ 2 ] }\nthree\nfour\nfive\n")
	s.gives(`require("node:child_process").spawnSync("sh", ["-c", "echo child; cat; echo its error >&2"], { stdio: "inherit" }).status`, "child\nits error\n0\n")
	s.gives(`("a\nstring")`, "a\nstring\n")
	s.gives(`("a line\n")`, "a line\n")
	s.gives("null", "null\n")
	s.gives("10n ** 30n", "1000000000000000000000000000000n\n")
	s.gives("NaN", "NaN\n")
	s.gives("Symbol('s')", "Symbol(s)\n")
	s.gives("new Proxy({}, { ownKeys() { throw new Error('no') } })", "{}\n")
	s.gives("({ [Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('no') } })", "[a value that cannot be shown: no]\n")
	s.gives("process.stdout.write('x'.repeat(300_000) + '\\n'); await 0; undefined", s.cut(300_001))
}

// cut is what is left of an output of one line that is too long; the model gets its two ends.
func (s *session) cut(n int) string {
	half := tools.DefaultBudget * 4 / 2
	return fmt.Sprintf("Warning: truncated output (original token count: %d)\nTotal output lines: 1\n\n%s\n…%d tokens truncated; the rest was not kept…\n%s\n",
		tools.Tokens(int64(n)), strings.Repeat("x", half), tools.Tokens(int64(n-2*half)), strings.Repeat("x", half-1))
}

func TestReportsErrors(t *testing.T) {
	t.Parallel()
	s := begin(t, options(t))
	got := s.fails(`console.log("before"); throw new Error("broken")`, "before\n", "Uncaught Error: broken\n    at <anonymous>:1:")
	must.Lack(t, got.Output, "inspector", "eval")
	s.fails("await null; throw 7", "Uncaught 7\n")
	s.fails("let a = 1;\nlet b = ;", "Uncaught SyntaxError: ", "in line 2\n")
	s.gives("setTimeout(() => { throw new Error('later') }, 1); await new Promise(r => setTimeout(r, 30)); require('node:assert').ok(true)",
		s.call(repl.Name, "setTimeout(() => { throw new Error('later') }, 1); await new Promise(r => setTimeout(r, 30)); require('node:assert').ok(true)").Output)
	s.gives("1", "1\n") // it goes on
}

func TestImportsModules(t *testing.T) {
	t.Parallel()
	o := options(t)
	toolstest.Write(t, o.Dir, map[string]string{"m.mjs": "export default 7", "c.cjs": "module.exports = 8"})
	s := begin(t, o)
	s.gives(`(await codex.import("./m.mjs")).default + require("./c.cjs")`, "15\n")
	s.gives(`require("node:assert").deepStrictEqual(require("node:fs").readdirSync("."), ["c.cjs", "m.mjs"]); try { require("fs").readFileSync("none") } catch (e) { e instanceof Error }`, "true\n")
	s.gives(`const [major, minor] = process.versions.node.split(".").map(Number);
(major > 20 || major === 20 && minor >= 12) ? (await import("./m.mjs")).default + (await import("node:path")).sep : "7/"`, "7/\n")
}

func TestHelpersCallOtherTools(t *testing.T) {
	t.Parallel()
	s := begin(t, options(t))
	s.gives(`await sh("x")`, "{ stdout: 'out\\n', stderr: '', exitCode: 3 }\n")
	s.gives(`(await codex.sh("slow", { workdir: "a" })).stdout`, "first\nsecond\nthird\n")
	s.gives(`await tool("apply_patch", "*** Begin Patch")`, "patched *** Begin Patch\n")
	s.fails(`await sh("forbidden")`, "Uncaught Error: the rules refuse it\n")
	s.fails(`await tool("no_such_tool", {})`, "Uncaught Error: unsupported call: no_such_tool.")
	s.fails(`await tool("js_repl", "1")`, "Uncaught Error: js_repl cannot be called from a script.")
	s.gives(`try { await tool("js_repl_reset") } catch (e) { e.message.includes("script") }; tool("apply_patch", "unawaited"); 5`, "5\n")
	want := []string{
		`1 of 1: exec_command {"yield_time_ms":30000,"cmd":"x"}`,
		`1 of 2: exec_command {"yield_time_ms":30000,"workdir":"a","cmd":"slow"}`,
		`2 of 2: write_stdin {"session_id":1000,"chars":"","yield_time_ms":30000}`,
		`3 of 2: write_stdin {"session_id":1000,"chars":"","yield_time_ms":30000}`,
		`1 of 3: apply_patch *** Begin Patch`,
		`1 of 4: exec_command {"yield_time_ms":30000,"cmd":"forbidden"}`,
		`1 of 5: no_such_tool {}`,
		`1 of 6: js_repl 1`,
		`1 of 7: js_repl_reset {}`,
		`2 of 7: apply_patch unawaited`,
	}
	must.Same(t, strings.Join(want, "\n"), strings.Join(s.record.calls, "\n"), "calls made")
}

func TestHandlesManyConcurrentCalls(t *testing.T) {
	t.Parallel()
	s := begin(t, options(t))
	s.gives(`(await Promise.all(Array.from({ length: 500 }, () => sh("x")))).filter((r) => r.exitCode === 3).length`, "500\n")
}

// TestCodeThatGoesOnMakesNoCalls has a timer of one call fire in the next one.
func TestCodeThatGoesOnMakesNoCalls(t *testing.T) {
	t.Parallel()
	s := begin(t, options(t))
	s.gives(`let fired; const after = new Promise((r) => { fired = r }); setTimeout(() => sh("x").catch((e) => fired(e.message)), 1); undefined`, nothing)
	s.gives(`await after`, "not done: the js_repl call that this code belongs to has ended. Await what the code does.\n")
	must.None(t, s.record.calls, "calls made")
}

func TestTimeoutEndsKernel(t *testing.T) {
	t.Parallel()
	s := begin(t, options(t))
	for _, code := range []string{"while (true) {}", "await new Promise(() => {})", `await tool("hang")`} {
		s.gives("let kept = 1", nothing)
		got := s.fails("// codex-js-repl: timeout_ms=300\nconsole.log('begun');"+code, "js_repl took longer than 300ms, and its kernel was ended.", "what was defined is gone", "begun\n")
		must.Same[any](t, true, got.Detail["timed_out"], got.Detail)
		s.gives("typeof kept", "undefined\n")
	}
}

// The time of a call holds where what it calls has to wait for a call of somebody else.
func TestWaitingCallTimesOut(t *testing.T) {
	t.Parallel()
	held, cancel := context.WithCancel(t.Context())
	hold := tools.Tool{
		Spec: tools.Spec{Name: "hold", Parameters: json.RawMessage(`{"type":"object"}`)}, Mutates: true,
		Run: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{}, ctx.Err()
		},
	}
	holds := tools.Tool{
		Spec: tools.Spec{Name: "holds", Parameters: hold.Spec.Parameters}, Scripts: true,
		Run: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			tools.ScriptCallsOf(ctx).Start(held, tools.Call{Name: "hold", Input: "{}"}, func(tools.Result) {})
			return tools.Result{}, nil
		},
	}
	s := begin(t, options(t), hold, holds)
	t.Cleanup(cancel)
	s.call("holds", "{}")
	s.fails("// codex-js-repl: timeout_ms=1000\nawait tool('apply_patch', 'x')", "took longer than 1s")
}

func TestRestartsKernelThatEnds(t *testing.T) {
	t.Parallel()
	s := begin(t, options(t))
	s.fails("console.log('last'); process.exit(3)", "js_repl failed: its kernel ended with exit status 3. The next call starts a new one; what was defined is gone.", "last\n")
	s.gives("setTimeout(() => process.kill(process.pid, 'SIGKILL'), 1); undefined", nothing)
	for {
		if got := s.call(repl.Name, "await new Promise((r) => setTimeout(r, 20)); 'alive'"); got.Failed || got.Output != "alive\n" {
			must.Contain(t, got.Output, "killed")
			break
		}
	}
}

func TestBoundsMemory(t *testing.T) {
	s := begin(t, options(t))
	s.fails("let all = []; while (true) all.push(new Array(1e6).fill(all.length))", "js_repl failed: its kernel was ended by abort", "heap")
	s.gives("1", "1\n")
}

// TestReportsLostKernel is of a model that made calls of an earlier Repl.
func TestReportsLostKernel(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.State.Used = true
	s := begin(t, o)
	s.gives("1", "A new kernel was started: what earlier calls defined is gone.\n1\n")
	s.gives("2", "2\n")
}

func TestShowsImages(t *testing.T) {
	t.Parallel()
	o := options(t)
	toolstest.Write(t, o.Dir, map[string]string{"four.png": string(toolstest.PNG(t, 4, 4))})
	s := begin(t, o)
	got := s.call(repl.Name, `const bytes = require("node:fs").readFileSync("four.png");
const url = "data:image/png;base64," + bytes.toString("base64");
for (const source of ["four.png", bytes, new Uint8Array(bytes), url, { image_url: url }, Promise.resolve({ bytes })]) await emitImage(source);`)
	if got.Failed || len(got.Images) != 6 || strings.Count(got.Output, "[Image: 4×4, png, ") != 6 {
		t.Errorf("got %d images, %q", len(got.Images), got.Output)
	}
	if digests, _ := got.Detail["images"].([]map[string]any); len(digests) != 6 {
		t.Errorf("detail: %v", got.Detail)
	}
	for source, want := range map[string]string{
		`"none.png"`: "ENOENT", `"https://example.com/a.png"`: "emitImage takes", `Buffer.from("text")`: "it is not a PNG, JPEG or GIF image", `bytes.subarray(0, 20)`: "can't be shown",
		`{}`: "emitImage takes", `Buffer.alloc(21 << 20)`: "more than 20 MiB",
	} {
		must.None(t, s.fails("await emitImage("+source+")", "Uncaught", want).Images, source, "shows an image")
	}
	must.Same(t, 8, len(s.fails("for (let i = 0; i < 9; i++) await emitImage(url)", "there are more than 8").Images), "images")
}

// TestEndsHostileKernels has code that writes to the kernel's own pipe.
func TestEndsHostileKernels(t *testing.T) {
	t.Parallel()
	const broke = "js_repl failed: the code used the kernel's own pipe, and the kernel was ended."
	s := begin(t, options(t))
	for _, code := range []string{
		`require("fs").writeSync(4, '{"type":"other"}\n'); await new Promise(() => {})`,
		`require("fs").writeSync(4, '{"type":"tool","cell":"1"}\n'); await new Promise(() => {})`,
		`require("fs").writeSync(4, "[]\n"); await new Promise(() => {})`,
		`require("fs").closeSync(4); await new Promise(() => {})`,
	} {
		s.fails(code, broke)
	}
	s.fails(`const fs = require("fs"), line = Buffer.alloc(1 << 20, "x"); for (;;) try { fs.writeSync(4, line) } catch (e) { if (e.code !== "EAGAIN") throw e }`, broke)
	// What says that it is done is done, whatever it does then.
	got := s.call(repl.Name, pragma+"timeout_ms=3000\n"+`require("fs").writeSync(4, '{"type":"tool","cell":1,"call":1,"name":"hang"}\n'); for (let i = 0; i < 50; i++) require("fs").writeSync(4, JSON.stringify({ type: "done", cell: i }) + "\n"); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`)
	must.Same(t, false, got.Failed, got)
	if got := s.call(repl.ResetName, "{}"); got.Failed {
		t.Errorf("got %+v", got)
	}
	s.gives("1", "1\n")
}

func TestRefusesTextsThatAreNoCode(t *testing.T) {
	t.Parallel()
	s := begin(t, options(t))
	for text, want := range map[string]string{
		"```js\n1\n```":            "markdown fence",
		`{"code": "1"}`:            "this is JSON",
		`{"input": 5}`:             "this is JSON",
		`"console.log(1)"`:         "string in quotes",
		`'it\'s'`:                  "string in quotes",
		" \n ":                     "there is no code",
		pragma + "timeout=5":       `asks for "timeout=5"`,
		pragma + "timeout_ms=0\n1": `asks for "timeout_ms=0"`,
		pragma + "reset=maybe\n1":  `asks for "reset=maybe"`,
	} {
		s.fails(text, want)
	}
	s.gives(`{ let x = 1; x }`, "1\n")
	s.gives(`"use strict"; 2`, "2\n")
	s.gives("`a${1}`", "a1\n")
}

// TestFunctionAcceptsCodeAsArgument is of models that have no freeform tools.
func TestFunctionAcceptsCodeAsArgument(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Offer = tools.Function
	s := begin(t, o)
	s.gives("1 + 1", "2\n")
	got := s.dispatcher.Dispatch(t.Context(), []tools.Call{
		{ID: "a", Number: 11, Name: repl.Name, Input: `{"input":"await new Promise((r) => setTimeout(r, 50)); let a = 3"}`, Form: tools.Function},
		{ID: "b", Number: 12, Name: repl.Name, Input: `{"input":"a"}`, Form: tools.Function}, // in one answer, one after the other
	})
	must.Same(t, "3\n", got[1].Output, got)
}

const pragma = "// codex-js-repl: "

// TestGrammar reads the terminals of the grammar as regular expressions.
func TestGrammar(t *testing.T) {
	t.Parallel()
	grammar := repl.New(repl.Options{Offer: tools.Freeform, State: new(repl.State)}).Tools()[0].Spec.Grammar
	terminals := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^([A-Z]+): /(.*)/$`).FindAllStringSubmatch(grammar, -1) {
		terminals[found[1]] = strings.ReplaceAll(found[2], `\/`, `/`)
	}
	must.Same(t, 3, len(terminals), "terminals", terminals)
	plain := regexp.MustCompile("^(" + terminals["SOURCE"] + ")$")
	withPragma := regexp.MustCompile("^" + terminals["PRAGMA"] + terminals["NEWLINE"] + "(" + terminals["SOURCE"] + ")$")
	for text, in := range map[string]bool{
		"1": true, "\n\n const a = `x`\n": true, "`a${1}`": true, "``": false, "``.length": true, "(() => {})()": true, "/re/.test('a')": true, "// only words": true,
		pragma + "timeout_ms=5\nlet a": true, pragma + "reset=true\r\n{ }": true,
		`{"code": "1"}`: false, ` {"code": "1"}`: false, `"let a"`: false, `'let a'`: false, "```js\n1\n```": false, "\n```\n": false, "": false, "  \n": false,
	} {
		must.Same(t, in, plain.MatchString(text) || withPragma.MatchString(text), text)
	}
}

func TestFindRejectsUnusableNode(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ program, want string }{
		"none":      {"", "node"},
		"old":       {"echo v16.20.0", `node is of version "v16.20.0", and has to be of version 18 or later`},
		"other":     {"echo hello", `node is of version "hello"`},
		"broken":    {"exit 7", "exit status 7"},
		"talkative": {"head -c 1000000 /dev/zero", "has to be of version 18"},
	} {
		o := options(t)
		o.Env = []string{"PATH=" + o.Dir + ":/none"}
		if c.program != "" {
			must.Do(t, os.WriteFile(filepath.Join(o.Dir, "node"), []byte("#!/bin/sh\nPATH=/usr/bin:/bin\n"+c.program+"\n"), 0o700))
		}
		must.Fail(t, c.want, repl.Find(t.Context(), o), what)
	}
}
