package files_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// BenchmarkGrepFiles searches the sources of Go's own distribution. make bench
// has the same beside rg.
func BenchmarkGrepFiles(b *testing.B) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "src")
	d := tools.Dispatcher{Registry: tools.New(files.New(files.Options{Dir: toolstest.Folder(b, dir)})...), Outputs: new(tools.Outputs)}
	for _, search := range []struct {
		name      string
		arguments map[string]any
	}{
		{"literal", map[string]any{"pattern": "func NewReader"}},
		{"expression", map[string]any{"pattern": `func \(\w+ \*\w+\) Close\(\) error`, "limit": 2000}},
		{"any case", map[string]any{"pattern": `(?i)todo\(bradfitz`}},
		{"expression in any case", map[string]any{"pattern": `(?i)func \w+close`}},
		{"alternatives", map[string]any{"pattern": "errUnexpectedEnd|NewReaderSize"}},
		{"without a literal", map[string]any{"pattern": `\b[a-z]{24,}\b`}},
		{"stops at the limit", map[string]any{"pattern": "func", "limit": 10}},
		{"nowhere", map[string]any{"pattern": "no such text " + "anywhere"}},
		{"some files", map[string]any{"pattern": "func NewReader", "include": "*_test.go"}},
		{"names", map[string]any{"pattern": "", "include": "**/reader.go"}},
	} {
		input, err := json.Marshal(search.arguments)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(search.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := d.Dispatch(b.Context(), []tools.Call{{ID: "1", Name: "grep_files", Input: string(input)}})[0]; got.Failed {
					b.Fatal(got.Output)
				}
			}
		})
	}
}
