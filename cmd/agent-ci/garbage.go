package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// gcPercent is below Go's default 100, because a run mostly waits, so its memory matters more than
// its CPU time.
const gcPercent = 15

// smallHeap is up to how many bytes in use garbage is collected as Go does by itself.
// Of so few gcPercent is next to nothing: one collection would follow the other.
const smallHeap = 2 << 20

// collectEarly sets gcPercent after the first collection that leaves more than smallHeap.
func collectEarly() {
	type collected struct{ _ *byte } // with a pointer it is an object of its own
	runtime.SetFinalizer(&collected{}, func(*collected) {
		if liveHeap() > smallHeap {
			debug.SetGCPercent(gcPercent)
			return
		}
		collectEarly()
	})
}

// liveHeap is how many bytes the last collection left.
func liveHeap() uint64 {
	left := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(left)
	return left[0].Value.Uint64()
}
