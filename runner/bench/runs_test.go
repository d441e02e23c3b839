package bench

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkTurnsAtOnce starts many runs at the same moment, each in a repository of its own.
func BenchmarkTurnsAtOnce(b *testing.B) {
	const atOnce, turns = 16, 20
	all := programs(b, atOnce, echoSession(turns))
	var ours, byCodex, sandboxed []time.Duration
	var most, mostByCodex int64
	for b.Loop() {
		ours, most = runAtOnce(b, all, runs)
		if codexIsThere() {
			byCodex, mostByCodex = runAtOnce(b, withCodex(b, all), 1)
			sandboxed, _ = runAtOnce(b, withCodex(b, all, inSandbox...), 1)
		}
	}
	jobs := func(took []time.Duration) quantity { return rate(atOnce, medianOf(took), time.Minute, "a minute") }
	results.besideCodex(fmt.Sprintf("%d runs with %d turns each at once, jobs", atOnce, turns), jobs(ours), jobs(byCodex), 15)
	results.besideCodex("  jobs, Codex in its sandbox", jobs(ours), jobs(sandboxed), 0)
	results.besideCodex("  memory of all (sum of PSS) at most", bytesOf(most), bytesOf(mostByCodex), 0.15)
}

// BenchmarkRunsThatWait has the model answer no run before all have asked it.
func BenchmarkRunsThatWait(b *testing.B) {
	const atOnce, mostOfAll = 64, 2 << 30
	var ours, byCodex int64
	for b.Loop() {
		all := programs(b, atOnce, sayOnly)
		ours = memoryOfWaiting(b, all)
		if codexIsThere() {
			for i := range all {
				all[i].codex, all[i].args = codexHome(b), nil
			}
			byCodex = memoryOfWaiting(b, all)
		}
	}
	results.bytes(fmt.Sprintf("%d runs that wait for the model, memory of all (sum of PSS)", atOnce), ours, mostOfAll)
	results.besideCodex("  beside Codex", bytesOf(ours), bytesOf(byCodex), 0)
}

// programs are runs of a session in repositories of their own.
func programs(b *testing.B, n int, session string) (all []program) {
	b.Helper()
	for range n {
		all = append(all, program{dir: smallRepository(b), session: session, args: answerOnly})
	}
	return all
}

// withCodex are the same runs with Codex.
func withCodex(b *testing.B, programs []program, args ...string) (all []program) {
	b.Helper()
	for _, p := range programs {
		p = p.byCodex(b)
		p.args = args
		all = append(all, p)
	}
	return all
}

func startAll(b *testing.B, programs []program) (all []*underway) {
	b.Helper()
	for _, p := range programs {
		all = append(all, p.start(b))
	}
	return all
}

// endAll reports whether the commands of all runs worked.
func endAll(b *testing.B, all []*underway) bool {
	b.Helper()
	worked := true
	for _, u := range all {
		worked = u.end(b).Wall > 0 && worked
	}
	return worked
}

// memoryOf is what the processes of all runs take, without those that watch them.
func memoryOf(b *testing.B, all []*underway) (bytes int64) {
	b.Helper()
	var watches []int
	for _, u := range all {
		watches = append(watches, u.watch.Process.Pid)
	}
	return memoryBelow(b, watches...)
}

// runAtOnce returns how long all runs take together each time that their commands work, and their most memory at one of the moments
// that it looks.
func runAtOnce(b *testing.B, programs []program, times int) (took []time.Duration, most int64) {
	b.Helper()
	for range times {
		began := time.Now()
		all := startAll(b, programs)
		ended, last := make(chan struct{}), make(chan int64)
		go func() {
			var seen int64
			for {
				select {
				case <-ended:
					last <- seen
					return
				case <-time.After(50 * time.Millisecond):
					seen = max(seen, memoryOf(b, all))
				}
			}
		}()
		if endAll(b, all) {
			took = append(took, time.Since(began))
		}
		close(ended)
		most = max(most, <-last)
	}
	return took, most
}

func memoryOfWaiting(b *testing.B, programs []program) (bytes int64) {
	b.Helper()
	answer := make(chan struct{})
	for i := range programs {
		programs[i].held = answer
	}
	all := startAll(b, programs)
	for _, u := range all {
		<-u.asked
	}
	bytes = memoryOf(b, all)
	close(answer)
	endAll(b, all)
	return bytes
}
