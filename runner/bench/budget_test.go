package bench

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
		f, err := os.Open(*binary)
		noError(b, err)
		zip, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
		noError(b, err)
		if _, err := io.Copy(io.MultiWriter(&size, zip), f); err != nil {
			b.Fatal(err)
		}
		noError(b, zip.Close())
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

// BenchmarkApplyPatchProgram applies a patch by the program that commands find as apply_patch.
func BenchmarkApplyPatchProgram(b *testing.B) {
	const lines, hunks = 200_000, 1000
	var old, patch strings.Builder
	patch.WriteString("*** Begin Patch\n*** Update File: file\n")
	for i := range lines {
		fmt.Fprintf(&old, "line %d\n", i)
		if i%(lines/hunks) == 0 {
			fmt.Fprintf(&patch, "@@\n-line %d\n+changed %d\n line %d\n", i, i, i+1)
		}
	}
	patch.WriteString("*** End Patch\n")
	dir := b.TempDir()
	name := filepath.Join(dir, "apply_patch")
	program, err := filepath.Abs(*binary)
	noError(b, err)
	noError(b, os.Symlink(program, name))
	file := filepath.Join(dir, "file")
	var took []time.Duration
	for b.Loop() {
		took = nil
		for range runs {
			noError(b, os.WriteFile(file, []byte(old.String()), 0o600))
			cmd := exec.CommandContext(b.Context(), name)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(patch.String())
			began := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			took = append(took, time.Since(began))
		}
	}
	if now, err := os.ReadFile(file); err != nil || strings.Count(string(now), "changed ") != hunks {
		b.Fatalf("%d of %d hunks are applied (%v)", strings.Count(string(now), "changed "), hunks, err)
	}
	results.without(fmt.Sprintf("apply_patch as a program: %d hunks in %d lines", hunks, lines), medianOf(took), "Codex's applier", 0.5)
}
