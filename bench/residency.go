package main

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"time"
)

// heapInUse is the size of all reachable objects.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools let go of in the first
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// weigh says what keys resident keys cost: memory above what was in use
// before, and the time and the longest pause of a garbage collection.
func weigh(before uint64, keys int) Sample {
	grown := float64(heapInUse()) - float64(before)
	pauses := readPauses()
	cycles := make([]float64, 5)
	for i := range cycles {
		start := time.Now()
		runtime.GC()
		cycles[i] = time.Since(start).Seconds() * 1e3
	}
	return Sample{
		Bytes:   grown / float64(keys),
		GCCycle: spreadOf(cycles).Median,
		GCPause: longestPause(pauses, readPauses()) * 1e6,
	}
}

// readPauses reads the runtime's histogram of garbage collection pauses.
func readPauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	h := s[0].Value.Float64Histogram()
	return &metrics.Float64Histogram{Counts: slices.Clone(h.Counts), Buckets: slices.Clone(h.Buckets)}
}

// longestPause is the upper bound, in seconds, of the highest bucket that grew.
func longestPause(before, after *metrics.Float64Histogram) float64 {
	for i, n := range slices.Backward(after.Counts) {
		if n > before.Counts[i] {
			return after.Buckets[i+1]
		}
	}
	return 0
}
