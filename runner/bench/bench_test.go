package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var binary = flag.String("binary", "../../bin/agent-ci", "the program to measure")

func TestMain(m *testing.M) {
	if os.Getenv(watchVariable) != "" {
		os.Exit(watch(os.Args[1:]))
	}
	status := m.Run()
	results.print(os.Stdout)
	os.Exit(status)
}

// runs is how often each figure is measured; the median is shown, and the
// highest of the peaks of memory.
const runs = 7

// mostMemory holds for every figure: bytes.
const mostMemory = 40e6

func BenchmarkRunWithoutToolCalls(b *testing.B) {
	repository := smallRepository(b)
	var seen []sighting
	for b.Loop() {
		seen = seen[:0]
		for range runs {
			seen = append(seen, program{dir: repository, session: sayOnly, args: []string{"--publish", "none", "--set", "task.expects=answer"}}.run(b))
		}
	}
	results.time("a run without tool calls, start to exit", median(seen, sighting.total), 50*time.Millisecond)
	results.served(median(seen, sighting.served))
	results.memory(seen)
}

func BenchmarkTurnWithEcho(b *testing.B) {
	const turns = 100
	repository := smallRepository(b)
	var seen []sighting
	for b.Loop() {
		seen = seen[:0]
		for range runs {
			seen = append(seen, program{dir: repository, session: echoSession(turns), args: []string{"--publish", "none", "--set", "task.expects=answer"}}.run(b))
		}
	}
	results.time(fmt.Sprintf("a turn of %d with exec_command of echo, all included", turns),
		median(seen, sighting.total)/turns, 10*time.Millisecond)
	results.served(median(seen, sighting.served) / turns)
	results.memory(seen)
}

func BenchmarkChangeInLargeRepository(b *testing.B) {
	const files = 50_000
	repository := largeRepository(b, files)
	var git []time.Duration
	var seen []sighting
	for b.Loop() {
		git, seen = nil, nil
		for i := range runs {
			git = append(git, commitWithGit(b, repository, i))
			seen = append(seen, commitWithProgram(b, repository, i))
		}
	}
	byGit := medianOf(git)
	results.time(fmt.Sprintf("find and commit a change in %d files (git: %s)", files, milliseconds(byGit)),
		median(seen, func(s sighting) time.Duration { return s.committed }), 2*byGit)
	results.time("  the whole run, start to exit", median(seen, sighting.total), 0)
	results.memory(seen)
}

// sayOnly is a session whose one answer ends the run.
const sayOnly = "version: 1\nturns:\n  - output: [{say: There is nothing to do.}]\n"

// echoSession calls exec_command in each of so many turns, and then ends.
func echoSession(turns int) string {
	var s strings.Builder
	s.WriteString("version: 1\nturns:\n")
	for i := range turns {
		fmt.Fprintf(&s, "  - output: [{call: exec_command, arguments: {cmd: echo %d}}]\n", i)
	}
	s.WriteString("  - output: [{say: Done.}]\n")
	return s.String()
}

// commitWithGit is how long git takes for a change of one file, whose stat data
// tell that it alone changed.
func commitWithGit(b *testing.B, repository string, i int) time.Duration {
	b.Helper()
	if err := os.WriteFile(filepath.Join(repository, changedFile), fmt.Appendf(nil, "changed for git %d\n", i), 0o644); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	git(b, repository, "add", "-A")
	git(b, repository, "commit", "--quiet", "--message", "change")
	took := time.Since(began)
	git(b, repository, "reset", "--quiet", "--hard", "HEAD~1")
	return took
}

// commitWithProgram is a run that changes the same file and commits it.
func commitWithProgram(b *testing.B, repository string, i int) sighting {
	b.Helper()
	session := fmt.Sprintf(`version: 1
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
	name := fmt.Sprintf("bench-%d", i)
	seen := program{dir: repository, session: session, args: []string{"--publish", "local", "--set", "name=" + name}}.run(b)
	if changed := strings.TrimSpace(git(b, repository, "diff", "--name-only", "main", "agent-ci/"+name)); changed != changedFile {
		b.Fatalf("the run committed %q, want %s", changed, changedFile)
	}
	git(b, repository, "checkout", "--quiet", "main")
	git(b, repository, "branch", "--quiet", "-D", "agent-ci/"+name)
	return seen
}
