package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// ignoredSize is that of each ignored file: 100,000 of them have 1 GB.
const ignoredSize = 10_000

// BenchmarkPrivateTree has runs work in a copy of the checkout, which cp -a makes too: in one with many tracked
// files, and in one with many ignored ones, where checks have copies as well.
func BenchmarkPrivateTree(b *testing.B) {
	const files = 50_000
	for _, of := range []struct {
		words            string
		tracked, ignored int
		times            float64 // of what cp takes it may take; 0 for any
		args             []string
	}{
		{fmt.Sprintf("%d tracked files", files), files, 0, 2, nil},
		{fmt.Sprintf("%d ignored files of %d bytes", *ignored, ignoredSize), 10, *ignored, 2, nil},
		{fmt.Sprintf("%d ignored files of %d bytes, with two checks of the base", *ignored, ignoredSize), 10, *ignored, 0, []string{"--set", "verify=[{name: one, run: \"true\"}, {name: two, run: \"true\"}]"}},
	} {
		b.Run(of.words, func(b *testing.B) {
			repository := largeRepository(b, of.tracked)
			ignoreFiles(b, repository, of.ignored, ignoredSize)
			git(b, repository, "update-index", "--skip-worktree", changedFile) // which has a copy made
			var byHand time.Duration
			var seen sighting
			for b.Loop() {
				copies := b.TempDir()
				byHand = copyByHand(b, repository, copies)
				seen = program{dir: repository, session: sayOnly, args: append([]string{"--publish", "none", "--set", "task.expects=answer"}, of.args...)}.run(b)
				must.Do(b, os.RemoveAll(copies)) // not before: ext4 is slow where many files were just removed
			}
			results.against("a private tree of "+of.words+", start to the first request", seen.start, "cp -a", byHand, of.times)
			results.time("  the whole run, start to exit", seen.total(), 0)
		})
	}
}

// copyByHand is how long cp takes, once the files are in memory.
func copyByHand(b *testing.B, repository, copies string) (took time.Duration) {
	b.Helper()
	for _, name := range []string{"first", "second"} {
		to := filepath.Join(copies, name)
		began := time.Now()
		if out, err := exec.CommandContext(b.Context(), "cp", "-a", repository, to).CombinedOutput(); err != nil {
			b.Fatalf("cp: %v\n%s", err, out)
		}
		took = time.Since(began)
	}
	return took
}
