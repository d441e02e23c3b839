package code_test

import (
	"os"
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/command"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// bench runs a script again and again, each time with an engine that is warm, as it is once a
// model has written the script.
func bench(b *testing.B, script string) {
	b.Helper()
	box, outputs := new(sandbox.Sandbox), new(tools.Outputs)
	commands := command.New(command.Options{Sandbox: box, Outputs: outputs, Dir: toolstest.Folder(b, b.TempDir()), Env: []string{"PATH=" + os.Getenv("PATH")}})
	b.Cleanup(commands.Close)
	r := start(b, box, outputs, commands.All()[0])
	for b.Loop() {
		b.StopTimer()
		r.Warm()
		r.Warmed()
		b.StartTimer()
		if got := r.call(b.Context(), "exec", script); got.Failed {
			b.Fatal(got.Output)
		}
	}
}

// BenchmarkScriptOneCall is to be compared to BenchmarkExecCommand of package command.
func BenchmarkScriptOneCall(b *testing.B) {
	bench(b, `const r = await tools.exec_command({cmd: "echo hello"}); text(r.output)`)
}

func BenchmarkScriptAlone(b *testing.B) { bench(b, `text("hello")`) }

func BenchmarkStoreLoad1000(b *testing.B) {
	bench(b, `for (let i = 0; i < 1000; i++) { store("key" + i, { value: i }); if (load("key" + i).value !== i) throw new Error("lost") }`)
}

func BenchmarkReads100(b *testing.B) {
	bench(b, `await Promise.all(Array.from({ length: 100 }, (_, i) => tools.echo({ say: "x".repeat(1000) + i })))`)
}

// BenchmarkStart is what it takes until an engine is warm.
func BenchmarkStart(b *testing.B) {
	r := start(b, new(sandbox.Sandbox), new(tools.Outputs))
	for b.Loop() {
		if got := r.call(b.Context(), "exec", `1`); got.Failed {
			b.Fatal(got.Output)
		}
	}
}
