package main

import (
	"runtime"
	"runtime/debug"
)

// gcPercent is the heap growth, in percent, before the next garbage collection. It is below Go's default
// of 100: a run mostly waits, so its memory matters more than its CPU time.
const gcPercent = 15

// startPercent applies until the heap has grown. The first collection then comes at 6 MB of heap
// instead of 4: a short run has fewer, and a long run's peak is little higher.
const startPercent = 150

// minHeap is the heap, in bytes, below which Go does not collect with startPercent
// (https://go.dev/doc/gc-guide#GOGC: the minimum is 4 MB for 100).
const minHeap = (4 << 20) * startPercent / 100

// collectEarly makes the garbage collector use startPercent until the heap has grown, and gcPercent from
// then on. Between them, the next collection comes at minHeap: 15 percent of a small heap is so little that
// collections would follow each other.
func collectEarly() { collectAfter(startPercent) }

// collectAfter sets the heap growth before the next collection, which then sets the growth before the one after it. The
// finalizer of an unused object runs after a collection.
func collectAfter(percent int) {
	type collected struct{ _ *byte } // the pointer prevents that Go merges it with other tiny objects
	debug.SetGCPercent(percent)
	if percent == gcPercent {
		return
	}
	runtime.SetFinalizer(&collected{}, func(*collected) {
		live := int(nextCollection()) * 100 / (100 + percent)
		collectAfter(max(gcPercent, min(startPercent, (minHeap-live)*100/live)))
	})
}

// nextCollection returns the heap, in bytes, at which the next collection is due.
func nextCollection() uint64 {
	var memory runtime.MemStats // not runtime/metrics, whose tables cost each start 0.1 ms
	runtime.ReadMemStats(&memory)
	return memory.NextGC
}
