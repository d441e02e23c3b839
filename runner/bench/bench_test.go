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
	p := program{dir: smallRepository(b), session: sayOnly, args: answerOnly}
	var seen, byCodex []sighting
	for b.Loop() {
		seen = p.times(b, runs)
		byCodex = p.measureCodex(b, runsOfCodex)
	}
	total := median(seen, sighting.total)
	results.time("a run without tool calls, start to exit", total, 50*time.Millisecond)
	results.served(median(seen, sighting.served))
	results.memory(seen)
	results.besideCodex("  start to the first request", duration(median(seen, sighting.began)), duration(median(byCodex, sighting.began)), 0)
	results.besideCodex("  start to exit", duration(total), duration(median(byCodex, sighting.total)), 0)
	results.besideCodex("  peak memory", bytesOf(highestPeak(seen)), bytesOf(highestPeak(byCodex)), mostOfCodex)
}

// mostOfCodex is how much memory a run may take, as a part of Codex's.
const mostOfCodex = 0.2

func BenchmarkTurnWithEcho(b *testing.B) {
	const turns = 100
	p := program{dir: smallRepository(b), session: echoSession(turns), args: answerOnly}
	var seen, byCodex, sandboxed []sighting
	var bare, requests, commands []time.Duration
	for b.Loop() {
		seen, bare, requests, commands = nil, nil, nil, nil
		for range runs {
			seen = append(seen, p.run(b))
			took := bareLoop(b, p.session, seen[len(seen)-1].requests)
			bare, requests, commands = append(bare, took.All), append(requests, took.Request), append(commands, took.Command)
		}
		byCodex, sandboxed = p.measureCodex(b, runsOfCodex), p.measureCodex(b, 1, inSandbox...)
	}
	total := median(seen, sighting.total)
	results.against(fmt.Sprintf("%d turns with exec_command of echo, start to exit, all layers on", turns), total, "bare loop", medianOf(bare), 2)
	results.served(median(seen, sighting.served))
	results.against("  of that from the first request to the last answer", median(seen, sighting.askedFor), "bare loop", medianOf(bare), 2)
	results.against("  one request until its answer is recorded", median(seen, sighting.requestOfTurn), "request of the bare loop", medianOf(requests), 0)
	results.time("  from there until the command is recorded as started", median(seen, sighting.admission), 0)
	results.against("  from there until its result is recorded", median(seen, sighting.commandOfTurn), "bash of the bare loop", medianOf(commands), 0)
	results.time("  from there to the next request", median(seen, sighting.preparation), 0)
	results.memory(seen)
	results.besideCodex(fmt.Sprintf("the %d turns, start to exit", turns), duration(total), duration(median(byCodex, sighting.total)), 0)
	results.besideCodex("  processor time", duration(median(seen, sighting.cpu)), duration(median(byCodex, sighting.cpu)), 0)
	results.besideCodex("  peak memory", bytesOf(highestPeak(seen)), bytesOf(highestPeak(byCodex)), mostOfCodex)
	results.besideCodex("  start to exit, Codex in its sandbox", duration(total), duration(median(sandboxed, sighting.total)), 0)
}

// answerOnly are the arguments of a run that changes nothing.
var answerOnly = []string{"--publish", "none", "--set", "task.expects=answer"}

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
