package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// gcPercent is the heap growth, in percent, before the next garbage collection. It is below Go's default
// of 100: a run mostly waits, so its memory matters more than its CPU time.
const gcPercent = 15

// startPercent makes the first collection come at 8 MB of heap instead of Go's 4: a short run ends
// before it, and a long run's peak is no higher.
const startPercent = 200

// smallHeap is the live heap, in bytes, up to which startPercent stays. 15 percent of a small heap is so
// little that collections would follow each other.
const smallHeap = 2 << 20

// collectEarly sets startPercent, and gcPercent after the first collection that leaves more than smallHeap. It
// notices a collection by the finalizer of an unused object.
func collectEarly() {
	type collected struct{ _ *byte } // the pointer prevents that Go merges it with other tiny objects
	debug.SetGCPercent(startPercent)
	runtime.SetFinalizer(&collected{}, func(*collected) {
		if liveHeap() > smallHeap {
			debug.SetGCPercent(gcPercent)
			return
		}
		collectEarly()
	})
}

// liveHeap returns how many bytes were in use after the last collection.
func liveHeap() uint64 {
	left := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(left)
	return left[0].Value.Uint64()
}
