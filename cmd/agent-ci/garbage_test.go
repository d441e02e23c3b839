package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestGarbageCollectionAdaptsToHeap(t *testing.T) {
	t.Parallel()
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	collectEarly()
	much := make([]byte, minHeap)
	for percentOfGC() != gcPercent { // finalizers run when they like
		runtime.GC()
	}
	runtime.KeepAlive(much)
}

func percentOfGC() uint64 {
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(percent)
	return percent[0].Value.Uint64()
}
