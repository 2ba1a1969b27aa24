package console

import (
	"math"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/metrics"
)

// latencySpan is how long ago the calls of a percentile may be.
const latencySpan = 10 * time.Second

// latency finds percentiles of the last calls of the store, from the buckets of the metrics.
type latency struct {
	readings []reading // the oldest first; of them, only the first may be older than latencySpan
}

type reading struct {
	at     time.Time
	counts []uint64 // of calls since the start, by bucket
}

// read reads the metrics.
func (l *latency) read(m *metrics.Metrics, now time.Time) {
	counts := make([]uint64, len(metrics.CallBounds())+1)
	m.Calls(counts)
	l.readings = append(l.readings, reading{now, counts})
	old := 0
	for len(l.readings)-old > 2 && now.Sub(l.readings[old+1].at) >= latencySpan {
		old++
	}
	l.readings = l.readings[old:]
}

// recent returns the calls of the last seconds, by bucket.
func (l *latency) recent() []uint64 {
	if len(l.readings) == 0 {
		return nil
	}
	first, last := l.readings[0], l.readings[len(l.readings)-1]
	recent := make([]uint64, len(last.counts))
	for i := range recent {
		recent[i] = last.counts[i] - first.counts[i]
	}
	return recent
}

// percentile returns the time in microseconds within which the given fraction of calls was over, or
// nil if there were none. Within a bucket, calls count as spread evenly.
func percentile(calls []uint64, fraction float64) *int64 {
	bounds, all := metrics.CallBounds(), uint64(0)
	if len(calls) != len(bounds)+1 {
		return nil
	}
	for _, n := range calls {
		all += n
	}
	if all == 0 {
		return nil
	}
	rank, below, from := fraction*float64(all), 0.0, 0.0
	for i, bound := range bounds {
		n := float64(calls[i])
		if n > 0 && below+n >= rank {
			return microseconds(from + (bound-from)*(rank-below)/n)
		}
		below, from = below+n, bound
	}
	return microseconds(from) // at least
}

func microseconds(seconds float64) *int64 {
	n := int64(math.Round(seconds * 1e6))
	return &n
}
