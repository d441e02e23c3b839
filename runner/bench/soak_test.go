package bench

import (
	"fmt"
	"testing"
)

// BenchmarkSoak is a run of so many turns that its conversation is made shorter
// again and again: its memory must not grow with the turns.
func BenchmarkSoak(b *testing.B) {
	repository := smallRepository(b)
	lengths := []int{250, 1000}
	seen := map[int][]sighting{}
	for b.Loop() {
		for _, turns := range lengths {
			seen[turns] = []sighting{program{dir: repository, session: echoSession(turns), args: []string{
				"--publish", "none", "--set", "model.context_window=20000", "--set", "limits.turns=5000", "--set", "task.expects=answer", "--set", "limits.tool_calls=5000",
			}}.run(b)}
		}
	}
	for _, turns := range lengths {
		results.time(fmt.Sprintf("a run of %d turns with compaction", turns), median(seen[turns], sighting.total), 0)
		results.memory(seen[turns])
	}
}
