package bench

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// BenchmarkTurnsAtOnce starts many runs at the same moment, each in a repository of its own.
func BenchmarkTurnsAtOnce(b *testing.B) {
	const atOnce, turns = 16, 20
	var repositories []string
	for range atOnce {
		repositories = append(repositories, smallRepository(b))
	}
	var took []time.Duration
	var most int64
	for b.Loop() {
		took, most = nil, 0
		for range runs {
			wall, memory := runAtOnce(b, repositories, echoSession(turns))
			took, most = append(took, wall), max(most, memory)
		}
	}
	all := medianOf(took)
	results.without(fmt.Sprintf("%d runs with %d turns each at once, start to the last exit", atOnce, turns), all, "Codex", 1.0/15)
	results.rows = append(results.rows, row{
		figure: "  jobs a minute", ours: fmt.Sprintf("%.0f", atOnce*time.Minute.Seconds()/all.Seconds()), other: "Codex: not on this machine",
	}, row{
		figure: "  the memory of all processes (sum of PSS) at most", ours: megabytes(most), other: "Codex: not on this machine", goal: "0.15",
	})
}

// runAtOnce returns how long runs in all repositories take together, and their most memory at one of
// the moments that it looks.
func runAtOnce(b *testing.B, repositories []string, session string) (took time.Duration, most int64) {
	b.Helper()
	var all []*underway
	began := time.Now()
	for _, dir := range repositories {
		all = append(all, program{dir: dir, session: session, args: []string{"--publish", "none", "--set", "task.expects=answer"}}.start(b))
	}
	ended, last := make(chan struct{}), make(chan int64)
	go func() {
		var seen int64
		for {
			select {
			case <-ended:
				last <- seen
				return
			case <-time.After(50 * time.Millisecond):
				seen = max(seen, memoryBelow(b, os.Getpid()))
			}
		}
	}()
	for _, u := range all {
		u.end(b)
	}
	took = time.Since(began)
	close(ended)
	return took, <-last
}
