package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// oneCheck is a job with one check that reads nothing.
const oneCheck = "verify=[{name: there, run: test -f d000/f003.txt}]"

func BenchmarkChangeInLargeRepository(b *testing.B) {
	const files = 50_000
	repository := largeRepository(b, files)
	var git []time.Duration
	var seen, checked []sighting
	for b.Loop() {
		git, seen, checked = nil, nil, nil
		for i := range runs {
			git = append(git, commitWithGit(b, repository, i))
			seen = append(seen, commitWithProgram(b, repository, i))
			checked = append(checked, commitWithProgram(b, repository, i, "--set", oneCheck))
		}
	}
	byGit := medianOf(git)
	results.against(fmt.Sprintf("find and commit a change in %d files", files), median(seen, sighting.committedIn), "git add and commit", byGit, 2)
	results.withCheck("  the whole run", seen, checked, 1.2)
	results.memory(append(seen, checked...))
}

// BenchmarkCheckBesideIgnoredFiles has a few tracked files beside many that git
// ignores, as a project of Node's has them.
func BenchmarkCheckBesideIgnoredFiles(b *testing.B) {
	const tracked, ignored = 10, 20_000
	repository := largeRepository(b, tracked)
	ignoreFiles(b, repository, ignored, 0)
	var seen, checked []sighting
	for b.Loop() {
		seen, checked = nil, nil
		for i := range runs {
			seen = append(seen, commitWithProgram(b, repository, i))
			checked = append(checked, commitWithProgram(b, repository, i, "--set", oneCheck))
		}
	}
	results.withCheck(fmt.Sprintf("a change in %d files beside %d ignored ones", tracked, ignored), seen, checked, 1.5)
	results.memory(append(seen, checked...))
}

// BenchmarkChangeInHugeRepository compares with git status, which looks at as many
// files.
func BenchmarkChangeInHugeRepository(b *testing.B) {
	const times = 3
	repository := hugeRepository(b, *huge)
	var status []time.Duration
	var seen []sighting
	for b.Loop() {
		status, seen = nil, nil
		for i := range times {
			began := time.Now()
			git(b, repository, "status")
			status = append(status, time.Since(began))
			seen = append(seen, commitWithProgram(b, repository, i))
		}
	}
	byGit := medianOf(status)
	results.against(fmt.Sprintf("find and commit a change in %d files", *huge), median(seen, sighting.committedIn), "git status", byGit, 1.1)
	results.time("  the whole run, start to exit", median(seen, sighting.total), 0)
	results.memoryAsItIs(seen)
}

// withCheck compares runs without and with one check.
func (t *table) withCheck(figure string, without, with []sighting, goal float64) {
	bare := median(without, sighting.total)
	t.time(figure+", start to exit", bare, 0)
	t.against("  the same with one check, before and after", median(with, sighting.total), "without", bare, goal)
}

// commitWithGit is how long git takes for a change of one file, whose stat data
// tell that it alone changed.
func commitWithGit(b *testing.B, repository string, i int) time.Duration {
	b.Helper()
	must.Do(b, os.WriteFile(filepath.Join(repository, changedFile), fmt.Appendf(nil, "changed for git %d\n", i), 0o644))
	began := time.Now()
	git(b, repository, "add", "-A")
	git(b, repository, "commit", "--quiet", "--message", "change")
	took := time.Since(began)
	git(b, repository, "reset", "--quiet", "--hard", "HEAD~1")
	return took
}

// patchSession changes the file.
func patchSession(i int) string {
	return fmt.Sprintf(`version: 1
turns:
  - output:
      - call: apply_patch
        input: |
          *** Begin Patch
          *** Update File: %s
          @@
          -%s
          +changed for the run %d
          *** End Patch
  - output: [{say: Changed.}]
`, changedFile, originalText, i)
}

// commitWithProgram is a run that changes the same file and commits it.
func commitWithProgram(b *testing.B, repository string, i int, args ...string) sighting {
	b.Helper()
	name := fmt.Sprintf("bench-%d", i)
	seen := program{dir: repository, session: patchSession(i), args: append([]string{"--publish", "local", "--set", "name=" + name}, args...)}.run(b)
	if changed := strings.TrimSpace(git(b, repository, "diff", "--name-only", "main", "agent-ci/"+name)); changed != changedFile {
		b.Fatalf("the run committed %q, want %s", changed, changedFile)
	}
	git(b, repository, "checkout", "--quiet", "main")
	git(b, repository, "branch", "--quiet", "-D", "agent-ci/"+name)
	return seen
}
