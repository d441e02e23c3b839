package code_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/code"
	"github.com/agent-ci/agent-ci/tools/code/engine"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// programs are what a test may start as an engine.
var programs = map[string]func() int{
	code.EngineCommand: func() int { return engine.Main(engine.MaxBusy) },
	"hurries":          func() int { return engine.Main(100 * time.Millisecond) },
	"is patient":       func() int { return engine.Main(time.Hour) },
	"is none":          func() int { fmt.Fprintln(os.Stderr, "there is no such command"); return 2 },
	"dies":             says("", 3),
	"dies of memory":   says("fatal error: runtime: out of memory", 2),
	"speaks no JSON":   says("", 0, "hello"),
	"makes no sense":   says("", 0, `{"calls":7}`),
	// These texts are made where they are said alone: all scripts start this program.
	"floods": func() int {
		return says("", 0, `{"items":[`+strings.Repeat(`{"kind":"text","value":"x"},`, 20_000)+`{"kind":"text"}]}`)()
	},
	"speaks too long": func() int {
		return says("", 0, `{"items":[{"kind":"text","value":"`+strings.Repeat("x", 40<<20)+`"}]}`)()
	},
	"calls too much":  says("", 0, `{"calls":[`+strings.Repeat(`{"id":1,"tool":"hang","input":"{}"},`, 2)+`{"id":2,"tool":"hang","input":"{}"}]}`),
	"calls strangers": says("", 0, `{"calls":[{"id":1,"tool":"exec_command","input":"{}"}]}`, `{"end":{}}`),
	"stores too much": says("", 0, `{"stored":{"a":"`+strings.Repeat("x", 70<<10)+`"}}`, `{"end":{}}`),
}

// says makes an engine that reports what it likes.
func says(problem string, status int, lines ...string) func() int {
	return func() int {
		fmt.Println(`{"ready":true}`)
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		for _, line := range lines {
			fmt.Println(line)
		}
		fmt.Fprintln(os.Stderr, problem)
		return status
	}
}

// TestMain is one of the programs where a test starts it as that.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		if does, is := programs[os.Args[1]]; is {
			os.Exit(does())
		}
	}
	os.Exit(m.Run())
}

// echo gives its input back, as an object, and has a note where that is asked for.
var echo = tools.Tool{
	Spec: tools.Spec{Name: "echo", Description: "Says it again.", Parameters: json.RawMessage(`{"type":"object","properties":{"say":{}},"additionalProperties":false}`)},
	Run: func(_ context.Context, call tools.Call) (tools.Result, error) {
		var object any
		err := json.Unmarshal([]byte(call.Input), &object)
		result := tools.Result{Output: "said", Object: object}
		if strings.Contains(call.Input, "note") {
			result.Notes = "Note: look at that.\n"
		}
		return result, err
	},
}

// plain gives a text.
var plain = tools.Tool{
	Spec: tools.Spec{Name: "plain", Description: "Gives a text.", Grammar: "start: /.+/"},
	Run: func(_ context.Context, call tools.Call) (tools.Result, error) {
		return tools.Result{Output: "got " + call.Input}, nil
	},
}

// refuse fails.
var refuse = tools.Tool{
	Spec: tools.Spec{Name: "refuse", Description: "Fails.", Parameters: json.RawMessage(`{"type":"object","properties":{"needed":{"type":"string"}},"required":["needed"],"additionalProperties":false}`)},
	Run:  func(context.Context, tools.Call) (tools.Result, error) { return tools.Refuse("it can't be done"), nil },
}

// hang waits for its end.
var hang = tools.Tool{
	Spec: tools.Spec{Name: "hang", Description: "Waits.", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
	Run: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	},
}

// stranger has a name that JavaScript does not take.
var stranger = tools.Tool{
	Spec:    tools.Spec{Name: "mcp__a-b__c.d", Description: "A stranger's.", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
	Foreign: true,
	Run:     func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{Output: "strange"}, nil },
}

// run is a run of code mode.
type run struct {
	*code.Tools
	dispatcher *tools.Dispatcher
	cancel     context.CancelFunc
	calls      int
}

func start(tb testing.TB, box *sandbox.Sandbox, outputs *tools.Outputs, more ...tools.Tool) *run {
	tb.Helper()
	return startProgram(tb, code.EngineCommand, box, outputs, more...)
}

func startProgram(tb testing.TB, program string, box *sandbox.Sandbox, outputs *tools.Outputs, more ...tools.Tool) *run {
	tb.Helper()
	self := must.Get(os.Executable())(tb)
	all := append([]tools.Tool{echo, plain, refuse, hang, stranger}, more...)
	var nested []code.Nested
	for _, tool := range all {
		nested = append(nested, code.Nested{Spec: tool.Spec, Deferred: tool.Foreign})
	}
	r := &run{}
	ctx, cancel := context.WithCancel(tb.Context())
	r.cancel = cancel
	r.Tools = code.New(ctx, code.Options{Sandbox: box, Outputs: outputs, Program: []string{self, program}, State: new(code.State)})
	r.Offer(nested)
	tb.Cleanup(func() {
		r.Close()
		cancel()
		must.Is(tb, nil, box.Close())
	})
	r.dispatcher = &tools.Dispatcher{Registry: tools.New(append(r.All(), all...)...), Outputs: outputs}
	return r
}

func (r *run) call(ctx context.Context, name, input string) tools.Result {
	r.calls++
	form := tools.Function
	if name == "exec" {
		form = tools.Freeform
	}
	return r.dispatcher.Dispatch(ctx, []tools.Call{{ID: fmt.Sprintf("call_%d", r.calls), Number: r.calls, Name: name, Input: input, Form: form}})[0]
}

var seconds = regexp.MustCompile(`Wall time \d+\.\d seconds`)

// said is what the model gets, without the time.
func said(r tools.Result) string { return seconds.ReplaceAllString(r.Output, "Wall time T seconds") }

func head(status string) string { return "Script " + status + "\nWall time T seconds\nOutput:" }

// codexScripts are scripts with the answers that Codex gives by its public source. ours is the answer of
// agent-ci where it differs, and why is the reason, which docs/reference/code-mode.md gives too.
var codexScripts = []struct{ name, script, codex, ours, why string }{
	{name: "no output", script: `1`, codex: head("completed")},
	{name: "value", script: `text({a: [1]}); text(undefined); text(null); text(7n); text(true)`, codex: head("completed") + "\n{\"a\":[1]}\nundefined\nnull\n7\ntrue"},
	{name: "function", script: `text(() => 1)`, codex: head("completed") + "\nundefined"},
	{name: "class", script: `text(class A {})`, codex: head("completed") + "\nundefined"},
	{name: "toJSON", script: `text({toJSON() { return {b: 2} }})`, codex: head("completed") + "\n{\"b\":2}"},
	{name: "map and set", script: `text(new Map([[1, 2]])); text(new Set([1]))`, codex: head("completed") + "\n{}\n{}"},
	{name: "date", script: `text(new Date(0))`, codex: head("completed") + "\n\"1970-01-01T00:00:00.000Z\""},
	{name: "error as text", script: `text(new Error("a"))`, codex: head("completed") + "\n{}"},
	{name: "throws", script: "text('a')\nthrow new Error('b')", codex: head("failed") + "\na\nScript error:\nError: b\n    at exec_main.mjs:2:7", ours: head("failed") + "\na\nScript error:\nError: b\n    at exec_main.mjs:2:16", why: "columns are the engine's"},
	{name: "throws text", script: `throw "a"`, codex: head("failed") + "\nScript error:\na"},
	{name: "throws number", script: `throw 7`, codex: head("failed") + "\nScript error:\n7"},
	{name: "throws nothing", script: `throw undefined`, codex: head("failed") + "\nScript error:\nundefined"},
	{name: "throws object", script: `throw {a: 1}`, codex: head("failed") + "\nScript error:\n[object Object]"},
	{name: "throws list", script: `throw [1, 2]`, codex: head("failed") + "\nScript error:\n1,2"},
	{name: "throws object with a stack", script: `throw {stack: "here"}`, codex: head("failed") + "\nScript error:\nhere"},
	{name: "rejects with object", script: `await Promise.reject({a: 1})`, codex: head("failed") + "\nScript error:\n[object Object]"},
	{name: "unknown tool, caught", script: `try { await tools.nothing_here({}) } catch (e) { text(e.message); text(e instanceof TypeError) }`, codex: head("completed") + "\ntools.nothing_here is not a function\ntrue"},
	{name: "unknown tool, tested", script: `if (tools.nothing_here) tools.nothing_here(); text(typeof tools.nothing_here)`, codex: head("completed") + "\nundefined"},
	{name: "unknown tool, asked for", script: `text("nothing_here" in tools); text(tools.nothing_here?.(1))`, codex: head("completed") + "\nfalse\nundefined"},
	{name: "tools are an object", script: `text(tools.toString())`, codex: head("completed") + "\n[object Object]"},
	{name: "names of tools", script: `text(Object.keys(tools).includes("plain"))`, codex: head("completed") + "\ntrue"},
	{name: "failed tool", script: `await tools.refuse({needed: "a"})`, codex: head("failed") + "\nScript error:\nit can't be done"},
	{name: "failed tool, caught", script: `try { await tools.refuse({needed: "a"}) } catch (e) { text(e); text(typeof e); text(e.message) }`, codex: head("completed") + "\nit can't be done\nstring\nundefined"},
	{name: "failed tool, settled", script: `text(await Promise.allSettled([tools.refuse({needed: "a"})]))`, codex: head("completed") + "\n[{\"status\":\"rejected\",\"reason\":\"it can't be done\"}]"},
	{name: "fromAsync of calls", script: `text(await Array.fromAsync([1, 2].map(n => tools.plain("" + n))))`, codex: head("completed") + "\n[\"got 1\",\"got 2\"]"},
	{name: "fromAsync of a generator", script: `async function* f() { yield 1; yield 2 } text(await Array.fromAsync(f(), async n => n * 2))`, codex: head("completed") + "\n[2,4]"},
	{name: "fromAsync of a length", script: `text(await Array.fromAsync({length: 2, 0: Promise.resolve("a")}))`, codex: head("completed") + "\n[\"a\",null]"},
	{name: "fromAsync of nothing", script: `try { await Array.fromAsync(null) } catch (e) { text(e instanceof TypeError) }`, codex: head("completed") + "\ntrue"},
	{name: "exit", script: `text("a"); exit(); text("b")`, codex: head("completed") + "\na"},
	{name: "freeform", script: `text(await tools.plain("a"))`, codex: head("completed") + "\ngot a"},
	{name: "store and load", script: `store("k", {a: 1}); text(load("k")); text(load("none"))`, codex: head("completed") + "\n{\"a\":1}\nundefined"},
	{name: "globals", script: `text([typeof require, typeof process, typeof fetch, typeof console])`, codex: head("completed") + "\n[\"undefined\",\"undefined\",\"undefined\",\"undefined\"]"},
	{name: "notify", script: `text("a"); notify("b")`, codex: head("completed") + "\na", ours: head("completed") + "\na\nb", why: "the API takes one output for each call"},
	{name: "syntax", script: `let x = ;`, codex: head("failed") + "\nScript error:\nSyntaxError: Unexpected token ';'", ours: head("failed") + "\nScript error:\nSyntaxError: unexpected token in expression: ';' (line 1, column 9)", why: "the place is told"},
}

// mostDifferent is how many scripts may get another answer than from Codex.
const mostDifferent = 4

// TestScriptsMatchCodex compares what models see of scripts with what they see in Codex.
func TestScriptsMatchCodex(t *testing.T) {
	r := start(t, new(sandbox.Sandbox), new(tools.Outputs))
	different := 0
	for _, test := range codexScripts {
		want := test.codex
		if test.ours != "" {
			want = test.ours
			different++
		}
		if got := said(r.call(t.Context(), "exec", test.script)); got != want || (test.ours == "") != (test.why == "") {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, want)
		}
	}
	if different > mostDifferent || len(codexScripts) < 34 {
		t.Errorf("%d of %d scripts differ", different, len(codexScripts))
	}
}

// A run may have all tools but exec switched off.
func TestScriptsRunWithoutTools(t *testing.T) {
	self := must.Get(os.Executable())(t)
	box := new(sandbox.Sandbox)
	alone := code.New(t.Context(), code.Options{Sandbox: box, Outputs: new(tools.Outputs), Program: []string{self, code.EngineCommand}, State: new(code.State)})
	t.Cleanup(func() { alone.Close(); box.Close() })
	must.Same(t, head("completed")+"\n0", said(toolstest.Call(t.Context(), alone.All()[0], "exec", `text(ALL_TOOLS.length)`)))
}

func TestScripts(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"throws in a function", "function f() { null.x }\nf()", head("failed") + "\nScript error:\nTypeError: cannot read property 'x' of null\n    at f (exec_main.mjs:1:20)\n    at exec_main.mjs:2:2"},
		{"object", `const r = await tools.echo({say: {a: [1, "ü"]}}); text(r.say.a[1])`, head("completed") + "\nü"},
		{"a note that the script does not show", `await tools.echo({say: "note"}); text("b")`, head("completed") + "\nNote: look at that.\nb"},
		{"no input", `text(await tools.echo())`, head("completed") + "\n{}"},
		{"name", `text(await tools.mcp__a_b__c_d())`, head("completed") + "\nstrange"},
		{"does not fit", `try { await tools.refuse({}) } catch (e) { text(e) }`, head("completed") + "\nrefuse: the arguments: expected \"needed\", got nothing by that name. The arguments are: needed (string, required)."},
		{"exec in exec", `try { await tools.exec("1") } catch (e) { text(e.message) }`, head("completed") + "\ntools.exec is not a function"},
		{
			"all tools", `text(ALL_TOOLS.map(t => t.name).join()); text(ALL_TOOLS[2].description)`,
			head("completed") + "\necho,hang,mcp__a_b__c_d,plain,refuse\nA stranger's.\n  mcp__a_b__c_d(input?: Record<string, unknown>): Promise<string>;",
		},
		{"side by side", `text((await Promise.all([1, 2, 3].map(n => tools.echo({say: n})))).map(r => r.say).join())`, head("completed") + "\n1,2,3"},
		{"not awaited", `tools.echo({say: 1}).then(() => text("late")); text("end")`, head("completed") + "\nend"},
		{"not awaited and under way", `tools.hang(); await tools.echo(); text("end")`, head("completed") + "\nend"},
		{"timers", `const gone = setTimeout(() => text("gone")); clearTimeout(gone); await new Promise(r => setTimeout((a) => { text(a); r() }, 1, "later"))`, head("completed") + "\nlater"},
		{"exit", `text("a"); try { exit() } finally { text("b") }`, head("completed") + "\na"},
		{"waits for nothing", `await new Promise(() => {})`, head("failed") + "\nScript error:\nError: the script waits for what cannot come: no call is under way and no timer is set."},
		{"globals that are not there", `text(["require", "process", "fetch", "console", "structuredClone", "TextEncoder", "URL", "atob", "queueMicrotask", "print", "std", "os", "module", "agent_call"]
			.filter(name => eval("typeof " + name) !== "undefined"))`, head("completed") + "\n[]"},
		{"globals that are there", `text([tools, ALL_TOOLS, text, image, audio, generatedImage, notify, store, load, setTimeout, clearTimeout, exit, yield_control, Intl].length)`, head("completed") + "\n14"},
		{"Intl", `text(new Intl.NumberFormat("en-US").format(1234.5))`, head("completed") + "\n1,234.5"},
		{"import", `await import("fs")`, head("failed") + "\nScript error:\nTypeError: module normalization failed: nothing can be imported in a script; what there is to call is in tools"},
		{"import of itself", `try { await import("exec_main.mjs") } catch (e) { text("no") }`, head("completed") + "\nno"},
		{"strict", `undeclared = 1`, head("failed") + "\nScript error:\nReferenceError: 'undeclared' is not defined\n    at exec_main.mjs:1:1"},
		{"http image", `image("https://example.com/a.png")`, head("failed") + "\nScript error:\nTypeError: image takes data URLs only: nothing is fetched from http(s) addresses. Fetch the file with a tool and show that.\n    at exec_main.mjs:1:6"},
		{"broken image", `image("data:image/png;base64,aGVsbG8=")`, head("completed") + "\n[An image is left out: it is not a PNG, JPEG or GIF image]"},
		{"audio", `audio({})`, head("completed") + "\n[Audio is left out: it can't be shown here. Make text of it with a tool.]"},
		{"recursion", `try { (function f() { f() })() } catch (e) { text(e instanceof RangeError) }`, head("completed") + "\ntrue"},
		{"a language turned over", `Array.prototype[Symbol.iterator] = JSON.parse = Promise.prototype.then = Map = null; const r = await tools.echo({say: 1}); text(r.say)`, head("completed") + "\n1"},
		{
			"options", "// @exec: {\"yield_time_ms\": 60000, \"max_output_tokens\": 5}\ntext('x'.repeat(100))",
			head("completed") + "\nWarning: truncated output (original token count: 25)\nTotal output lines: 1\n\nxxxxxxxxxx\n…20 tokens truncated; the rest was not kept…\nxxxxxxxxxx",
		},
		{
			"options that are no JSON", "// @exec: fast\ntext(1)",
			`exec: the first line has to be // @exec: and a JSON object of yield_time_ms and max_output_tokens, such as // @exec: {"yield_time_ms": 60000}: "fast" is no object.`,
		},
		{
			"unknown options", "// @exec: {\"speed\": 1}\ntext(1)",
			`exec: the first line has to be // @exec: and a JSON object of yield_time_ms and max_output_tokens, such as // @exec: {"yield_time_ms": 60000}: json: unknown field "speed".`,
		},
		{"wrong options", "// @exec: {\"yield_time_ms\": 0.5}\ntext(1)", "exec: yield_time_ms in the first line has to be a whole number above 0."},
		{"nothing", " \n", "exec: there is no script. Write JavaScript, without JSON or a fence around it."},
		{"options alone", "// @exec: {}\n", "exec: there is no script behind the first line."},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, new(sandbox.Sandbox), new(tools.Outputs))
			got := r.call(t.Context(), "exec", test.script)
			must.Same(t, test.want, said(got))
			must.Same(t, !strings.HasPrefix(test.want, head("completed")), got.Failed, "failed")
		})
	}
}
