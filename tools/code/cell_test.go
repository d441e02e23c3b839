package code_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

func TestCellsYieldAndEnd(t *testing.T) {
	t.Run("yield time", func(t *testing.T) {
		r := start(t, new(sandbox.Sandbox), new(tools.Outputs))
		got := r.call(t.Context(), "exec", "// @exec: {\"yield_time_ms\": 1}\nawait tools.hang()")
		if said(got) != head("running with cell ID 1") || got.Detail["status"] != "running" {
			t.Errorf("got %s", said(got))
		}
	})
	t.Run("busy", func(t *testing.T) {
		r := start(t, new(sandbox.Sandbox), new(tools.Outputs))
		got := said(r.call(t.Context(), "exec", "// @exec: {\"yield_time_ms\": 500}\ntext('begun'); for (;;);"))
		for got == head("running with cell ID 1") { // a busy machine has not begun by then
			got = said(r.call(t.Context(), "wait", `{"cell_id":"1","yield_time_ms":500}`))
		}
		must.Same(t, head("running with cell ID 1")+"\nbegun", got)
	})
	t.Run("too many", func(t *testing.T) {
		r := start(t, new(sandbox.Sandbox), new(tools.Outputs))
		for range 8 {
			r.call(t.Context(), "exec", `yield_control(); await tools.hang()`)
		}
		must.Same(t, "exec: 8 scripts are running already, cells 1, 2, 3, 4, 5, 6, 7, 8. Wait for one of them, or end it by wait with terminate.", r.call(t.Context(), "exec", `1`).Output)
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ends := tools.Tool{Spec: tools.Spec{Name: "ends", Parameters: echo.Spec.Parameters}, Run: func(context.Context, tools.Call) (tools.Result, error) {
			cancel()
			return tools.Result{}, nil
		}}
		r := start(t, new(sandbox.Sandbox), new(tools.Outputs), ends)
		if got := r.call(ctx, "exec", `text("a"); await tools.ends(); await new Promise(() => setTimeout(() => {}, 1e9))`); !got.Failed || !strings.HasPrefix(got.Output, "aborted after") {
			t.Errorf("got %s", got.Output)
		}
	})
}

// Many texts are joined once, and redacted in pieces: whoever waits for them does not wait for more.
func TestRedactsManyTextsInPieces(t *testing.T) {
	longest := 0
	r := start(t, new(sandbox.Sandbox), &tools.Outputs{Redact: func(text string) string { longest = max(longest, len(text)); return text }})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := r.call(t.Context(), "exec", `for (let i = 0; i < 8192; i++) text("x".repeat(1023)); yield_control(); await tools.hang()`)
	runtime.ReadMemStats(&after)
	if !strings.HasPrefix(said(got), head("running with cell ID 1")+"\nWarning: truncated output (original token count: 2097152)\n") {
		t.Errorf("got %.300s", said(got))
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<30 || longest > 2<<20 {
		t.Errorf("8 MiB took %d MiB of memory, and %d bytes were redacted in one piece", took>>20, longest)
	}
}

// A text that takes long to redact holds up no yield: it is told once that is done.
func TestYieldDoesNotAwaitRedaction(t *testing.T) {
	hold := make(chan struct{})
	r := start(t, new(sandbox.Sandbox), &tools.Outputs{Redact: func(text string) string {
		if strings.Contains(text, "slow") {
			<-hold
		}
		return strings.ReplaceAll(text, "slow", "***")
	}})
	must.Same(t, head("running with cell ID 1"), said(r.call(t.Context(), "exec", "// @exec: {\"yield_time_ms\": 1000}\ntext('slow'); yield_control(); await tools.hang()")))
	close(hold)
	for got := ""; got != head("running with cell ID 1")+"\n***"; {
		if got = said(r.call(t.Context(), "wait", `{"cell_id":"1","yield_time_ms":1}`)); !strings.HasPrefix(got, head("running with cell ID 1")) {
			t.Fatalf("got %s", got)
		}
	}
}

func TestStoredValuesLastForRun(t *testing.T) {
	r := start(t, new(sandbox.Sandbox), new(tools.Outputs))
	for _, test := range []struct{ script, want string }{
		{`globalThis.gone = 1; store("a", {b: [1]}); text(load("a")); text(load("c"))`, head("completed") + "\n{\"b\":[1]}\nundefined"},
		{`text(typeof gone); text(load("a").b[0]); load("a").b = 2; text(load("a"))`, head("completed") + "\nundefined\n1\n{\"b\":[1]}"},
		{`store("f", () => 1)`, head("failed") + "\nScript error:\nTypeError: store: the value of \"f\" is nothing that JSON can write; null empties it\n    at exec_main.mjs:1:6"},
		{`store(1, 1)`, head("failed") + "\nScript error:\nTypeError: the key of a stored value is a string\n    at exec_main.mjs:1:6"},
		{`try { store("long", "x".repeat(65535)) } catch (e) { text(e.message) }`, head("completed") + "\nstore: the value of \"long\" has more than 65536 bytes as JSON"},
		{`try { store("long", "ü".repeat(40000)) } catch (e) { text(e.message) }`, head("completed") + "\nstore: the value has more than 65536 bytes as JSON"},
		{
			`let n = 0; try { for (;;) store("k" + n++, "x".repeat(60000)) } catch (e) { text(n + e.message) }`,
			head("completed") + "\n18store: all values and keys together have more than 1048576 bytes; store null or something shorter under keys that are not needed",
		},
		{`for (let n = 0; n < 18; n++) store("k" + n, null); store("k0", "x".repeat(60000)); text("room")`, head("completed") + "\nroom"},
		{`store("z", 1); throw 2`, head("failed") + "\nScript error:\n2"},
		{`text(load("z"))`, head("completed") + "\n1"},
	} {
		must.Same(t, test.want, said(r.call(t.Context(), "exec", test.script)), test.script)
	}
}

func TestImages(t *testing.T) {
	data := base64.StdEncoding.EncodeToString(toolstest.PNG(t, 2, 3))
	r := start(t, new(sandbox.Sandbox), new(tools.Outputs))
	got := r.call(t.Context(), "exec", fmt.Sprintf(`const data = %q
		image("data:image/png;base64," + data); text("between"); image({image_url: "data:image/png;base64," + data})
		image({type: "image", data, mimeType: "image/png"}); generatedImage({image_url: "data:image/png;base64," + data, output_hint: "hint"})`, data))
	var kinds []string
	for _, part := range got.Parts {
		if part.Image != nil {
			kinds = append(kinds, part.Image.MediaType)
			continue
		}
		kinds = append(kinds, part.Text)
	}
	must.Same(t, fmt.Sprint([]string{got.Parts[0].Text, "image/png", "between", "image/png", "image/png", "image/png", "hint"}), fmt.Sprint(kinds), kinds)
}

// What a page of the web has is as long for a script as other text.
func TestScriptsGetLargeResults(t *testing.T) {
	page := tools.Tool{
		Spec: tools.Spec{Name: "page", Parameters: echo.Spec.Parameters},
		Run: func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{Object: map[string]any{"html": strings.Repeat("<", 15<<20)}}, nil
		},
	}
	r := start(t, new(sandbox.Sandbox), new(tools.Outputs), page)
	must.Same(t, head("completed")+"\n15728640", said(r.call(t.Context(), "exec", `text((await tools.page()).html.length)`)))
}

func TestCloseEndsScripts(t *testing.T) {
	r := start(t, new(sandbox.Sandbox), new(tools.Outputs))
	r.call(t.Context(), "exec", `yield_control(); await tools.hang()`)
	r.call(t.Context(), "exec", `yield_control(); for (;;);`)
	r.Close()
	must.Same(t, "exec: the run is over", r.call(t.Context(), "exec", `1`).Output)
}

// What waits behind a call of a script does not wait for that when the run is cancelled.
func TestCancelEndsScriptCalls(t *testing.T) {
	alone := hang
	alone.Spec.Name, alone.Mutates = "alone", true
	begun := make(chan struct{})
	alone.Run = func(ctx context.Context, call tools.Call) (tools.Result, error) {
		close(begun)
		return hang.Run(ctx, call)
	}
	r := start(t, new(sandbox.Sandbox), new(tools.Outputs), alone)
	r.call(t.Context(), "exec", `yield_control(); await tools.alone()`)
	<-begun
	r.cancel()
	if got := r.call(t.Context(), "echo", `{}`); got.Failed {
		t.Errorf("got %s", got.Output)
	}
}

// A script that is ended does not wait for the call of another one, behind which its own stands. What
// stands behind that one still does.
func TestTerminateDoesNotAwaitOtherScripts(t *testing.T) {
	var begun, most atomic.Int32
	alone := hang
	alone.Spec.Name, alone.Mutates = "alone", true
	alone.Run = func(ctx context.Context, call tools.Call) (tools.Result, error) {
		most.Store(max(most.Load(), begun.Add(1)))
		defer begun.Add(-1)
		return hang.Run(ctx, call)
	}
	r := start(t, new(sandbox.Sandbox), new(tools.Outputs), alone)
	for range 3 {
		r.call(t.Context(), "exec", `yield_control(); await tools.alone()`)
	}
	for _, id := range []string{"2", "1", "3"} {
		must.Same(t, head("terminated"), said(r.call(t.Context(), "wait", `{"cell_id":`+id+`,"terminate":true}`)))
	}
	must.Same(t, 1, most.Load(), "calls ran at once")
}

func TestReportsUnstartedEngine(t *testing.T) {
	box := new(sandbox.Sandbox)
	must.Do(t, box.Close())
	r := start(t, box, new(tools.Outputs))
	must.Contain(t, toolstest.Failure(t, r.call(t.Context(), "exec", `1`)), "start the engine of the script")
}
