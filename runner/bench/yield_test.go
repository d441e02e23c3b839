package bench

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/code"
)

// BenchmarkYieldWithMuchText has a script of code mode show as much text as one may, with secrets in it, and go on:
// the call returns after its yield_time_ms all the same, and half as much again at most: the text is cut and cleaned then.
func BenchmarkYieldWithMuchText(b *testing.B) {
	const yield = 500 * time.Millisecond
	program := must.Get(filepath.Abs(*binary))(b)
	box := new(sandbox.Sandbox)
	outputs := &tools.Outputs{Redact: secrets.NewRedactor([]secrets.Value{{Name: "TOKEN", Secret: "hunter2hunter2"}}).Redact}
	scripts := code.New(b.Context(), code.Options{Sandbox: box, Outputs: outputs, Program: []string{program, code.EngineCommand}, State: new(code.State)})
	d := &tools.Dispatcher{Registry: tools.New(scripts.All()...), Outputs: outputs}
	script := fmt.Sprintf("// @exec: {\"yield_time_ms\": %d}\n", yield.Milliseconds()) +
		`for (let i = 0; i < 16; i++) text("a word, hunter2hunter2 ".repeat(45590).slice(0, 1 << 20)); await new Promise((end) => setTimeout(end, 1e9))`
	var took []time.Duration
	for b.Loop() {
		took = nil
		for range runs {
			began := time.Now()
			result := d.Dispatch(b.Context(), []tools.Call{{ID: "1", Number: 1, Name: "exec", Input: script, Form: tools.Freeform}})[0]
			took = append(took, time.Since(began))
			status, cell := result.Detail["status"], result.Detail["cell"]
			if status != "running" || strings.Contains(result.Output, "hunter2") {
				b.Fatalf("got %.500s", result.Output)
			}
			d.Dispatch(b.Context(), []tools.Call{{ID: "2", Number: 2, Name: "wait", Input: fmt.Sprintf(`{"cell_id":%q,"terminate":true}`, cell)}})
		}
	}
	scripts.Close()
	must.Do(b, box.Close())
	results.against("a script with 16 MiB of text returns", medianOf(took), "its yield_time_ms", yield, 1.5)
}
