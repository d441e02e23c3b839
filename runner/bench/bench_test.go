package bench

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var binary = flag.String("binary", "../../bin/agent-ci", "the program to measure")

var ignored = flag.Int("ignored", 20_000, "files that git ignores beside a private tree's tracked ones")

func TestMain(m *testing.M) {
	if os.Getenv(watchVariable) != "" {
		os.Exit(watch(os.Args[1:]))
	}
	if url := os.Getenv(bareVariable); url != "" {
		os.Exit(loop(url))
	}
	status := m.Run()
	results.print(os.Stdout)
	os.Exit(status)
}

// runs is how often each figure is measured; the median is shown, and the
// highest of the peaks of memory.
const runs = 7

// mostMemory holds for every figure but that of the largest repository: bytes.
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
	repository, session := smallRepository(b), echoSession(turns)
	var seen []sighting
	var bare, requests, commands []time.Duration
	for b.Loop() {
		seen, bare, requests, commands = seen[:0], bare[:0], requests[:0], commands[:0]
		for range runs {
			seen = append(seen, program{dir: repository, session: session, args: []string{"--publish", "none", "--set", "task.expects=answer"}}.run(b))
			took := bareLoop(b, session, seen[len(seen)-1].requests)
			bare, requests, commands = append(bare, took.All), append(requests, took.Request), append(commands, took.Command)
		}
	}
	results.against(fmt.Sprintf("%d turns with exec_command of echo, start to exit, all layers on", turns), median(seen, sighting.total), "bare loop", medianOf(bare), 2)
	results.served(median(seen, sighting.served))
	results.against("  of that from the first request to the last answer", median(seen, sighting.askedFor), "bare loop", medianOf(bare), 2)
	results.against("  one request until its answer is recorded", median(seen, sighting.requestOfTurn), "request of the bare loop", medianOf(requests), 0)
	results.time("  from there until the command is recorded as started", median(seen, sighting.admission), 0)
	results.against("  from there until its result is recorded", median(seen, sighting.commandOfTurn), "bash of the bare loop", medianOf(commands), 0)
	results.time("  from there to the next request", median(seen, sighting.preparation), 0)
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

// noError ends a benchmark at an error.
func noError(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
