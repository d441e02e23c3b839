package bench

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// searches are what grep_files is measured by, each with its limit as a
// multiple of the time of rg, which has no limit of its own.
var searches = []struct {
	figure, pattern string
	most            float64
}{
	{"a literal", "func NewReader", 1.5},
	{"an expression", `func \(\w+ \*\w+\) Close\(\) error`, 1.5},
	{"in any case", `(?i)todo\(bradfitz`, 4},
	{"an expression in any case", `(?i)func \w+close`, 4},
	{"an expression without a literal", `\b[a-z]{24,}\b`, 0},
}

// BenchmarkSearch searches the sources of Go's distribution, beside rg where it
// is installed. Both have all of them in memory after the first time.
func BenchmarkSearch(b *testing.B) {
	dir := goSources(b)
	d := &tools.Dispatcher{Registry: tools.New(files.New(files.Options{Dir: toolstest.Folder(b, dir)})...), Outputs: new(tools.Outputs)}
	rg, _ := exec.LookPath("rg")
	for _, search := range searches {
		b.Run(search.figure, func(b *testing.B) {
			var ours, theirs []time.Duration
			for b.Loop() {
				ours, theirs = nil, nil
				for range runs {
					ours = append(ours, grepFiles(b, d, search.pattern))
					if rg != "" {
						theirs = append(theirs, ripgrep(b, rg, dir, search.pattern))
					}
				}
			}
			figure := "search Go's sources for " + search.figure
			if rg == "" {
				results.add(figure, duration(medianOf(ours)), "rg", quantity{reason: "which is not installed"}, search.most)
				return
			}
			results.against(figure, medianOf(ours), "rg", medianOf(theirs), search.most)
		})
	}
}

func goSources(b *testing.B) string {
	b.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skipf("go env: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src")
}

func grepFiles(b *testing.B, d *tools.Dispatcher, pattern string) time.Duration {
	b.Helper()
	input := must.Get(json.Marshal(map[string]any{"pattern": pattern, "limit": 2000}))(b)
	began := time.Now()
	got := d.Dispatch(b.Context(), []tools.Call{{ID: "1", Name: "grep_files", Input: string(input)}})[0]
	took := time.Since(began)
	if got.Failed {
		b.Fatal(got.Output)
	}
	return took
}

// ripgrep lists the same files, with the start of the program.
func ripgrep(b *testing.B, rg, dir, pattern string) time.Duration {
	b.Helper()
	cmd := exec.Command(rg, "--no-config", "--files-with-matches", "--regexp", pattern, ".")
	cmd.Dir = dir
	began := time.Now()
	_, err := cmd.Output()
	took := time.Since(began)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return took // nothing was found
	}
	must.Do(b, err, "rg")
	return took
}
