package main

import (
	"slices"
	"time"
)

// latencies keeps the durations of the takes of one caller in room made
// beforehand. When the room is used up, the oldest make way.
type latencies struct {
	nanos []uint32
	n     int
}

// newLatencies divides room for total durations among callers.
func newLatencies(callers, total int) []latencies {
	ls := make([]latencies, callers)
	each := total / callers
	all := make([]uint32, callers*each)
	for i := range ls {
		ls[i].nanos = all[i*each : (i+1)*each]
	}
	return ls
}

// add records d; what is above 4.29 s counts as that.
func (l *latencies) add(d time.Duration) {
	l.nanos[l.n%len(l.nanos)] = uint32(min(d.Nanoseconds(), 1<<32-1))
	l.n++
}

// quantiles are the given quantiles, in microseconds, of all callers together.
func quantiles(ls []latencies, qs ...float64) []float64 {
	var all []uint32
	for _, l := range ls {
		all = append(all, l.nanos[:min(l.n, len(l.nanos))]...)
	}
	slices.Sort(all)
	out := make([]float64, len(qs))
	for i, q := range qs {
		if len(all) > 0 {
			out[i] = float64(all[min(int(q*float64(len(all))), len(all)-1)]) / 1e3
		}
	}
	return out
}
