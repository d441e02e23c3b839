package bench

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// Budgets of the program, in bytes: as it is built, and compressed by gzip -9.
const (
	mostProgram    = 36e6
	mostCompressed = 13e6
)

func BenchmarkSizeOfTheProgram(b *testing.B) {
	var size, compressed counter
	for b.Loop() {
		size, compressed = 0, 0
		f := must.Get(os.Open(*binary))(b)
		zip := must.Get(gzip.NewWriterLevel(&compressed, gzip.BestCompression))(b)
		must.Get(io.Copy(io.MultiWriter(&size, zip), f))(b)
		must.Do(b, zip.Close())
		f.Close()
	}
	results.bytes("the program", int64(size), mostProgram)
	results.bytes("  compressed by gzip -9", int64(compressed), mostCompressed)
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// BenchmarkStartUp has the programs print their versions.
func BenchmarkStartUp(b *testing.B) {
	dir := b.TempDir()
	var ours, byCodex, packages []time.Duration
	for b.Loop() {
		ours, byCodex, packages = nil, nil, nil
		for range trues / 4 {
			ours = append(ours, timeOfProgram(b, *binary, dir, dir, "version"))
			packages = append(packages, initialisation(b))
			if codexIsThere() {
				byCodex = append(byCodex, timeOfProgram(b, *codex, dir, dir, "--version"))
			}
		}
	}
	results.besideCodex("agent-ci version", duration(medianOf(ours)), duration(medianOf(byCodex)), 0)
	results.time("  of that in the initialisation of packages", medianOf(packages), 0)
}

// initialisation is how long a start takes to initialise all packages: GODEBUG, inittrace.
func initialisation(b *testing.B) (all time.Duration) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), *binary, "version")
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	out := must.Get(cmd.CombinedOutput())(b)
	for line := range strings.Lines(string(out)) {
		var name string
		var at, took float64
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock", &name, &at, &took); err == nil {
			all += time.Duration(took * 1e6)
		}
	}
	return all
}
