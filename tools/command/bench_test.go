package command

import (
	"os"
	"testing"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// BenchmarkExecCommand is one call of exec_command from the dispatcher on.
func BenchmarkExecCommand(b *testing.B) {
	box := &sandbox.Sandbox{AdoptOrphans: true}
	defer box.Close()
	outputs := new(tools.Outputs)
	all := New(Options{Sandbox: box, Outputs: outputs, Dir: toolstest.Folder(b, b.TempDir()), Env: []string{"PATH=" + os.Getenv("PATH")}})
	d := tools.Dispatcher{Registry: tools.New(all.All()...), Outputs: outputs}
	call := []tools.Call{{ID: "call_1", Name: "exec_command", Input: `{"cmd":"echo hello"}`}}
	for b.Loop() {
		if result := d.Dispatch(b.Context(), call)[0]; result.Failed {
			b.Fatal(result.Output)
		}
	}
}
