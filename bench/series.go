package main

import "slices"

// A Metric is one thing measured in a round.
type Metric string

// The metrics. Nanos and Rate say the same of a slice in two ways: one store
// is read in nanoseconds, the other in decisions a second.
const (
	Nanos    Metric = "ns"             // time for a decision
	Rate     Metric = "per s"          // decisions a second
	Allocs   Metric = "allocs"         // heap allocations for a decision
	Scaling  Metric = "2/1 cores"      // time on two cores over time on one
	P50      Metric = "p50 us"         // median latency
	P99      Metric = "p99 us"         // 99th percentile of the latency
	P999     Metric = "p99.9 us"       // 99.9th percentile of the latency
	Longest  Metric = "max us"         // the longest latency
	Late     Metric = "late"           // part of the arrivals of a paced load that waited over 10 ms, or were not taken
	NotTaken Metric = "not taken"      // part of the arrivals of a paced load that found too many before them
	RedisCPU Metric = "redis us"       // CPU time of the Redis server for a decision
	OwnCPU   Metric = "client us"      // CPU time of this process for a decision, harness included
	Bytes    Metric = "B/key"          // memory a resident key takes
	GCCycle  Metric = "GC ms"          // a forced garbage collection with all keys resident
	GCPause  Metric = "GC pause us"    // the longest pause of those collections, at most
	Most     Metric = "most"           // the most passes that a window of a gate held
	Part     Metric = "part"           // passes over those that the limit allows
	ByUsage  Metric = "B/key by USAGE" // what MEMORY USAGE says of a key in Redis
)

// A Sample is what one round measured of one contender.
type Sample map[Metric]float64

// A Cell names what is measured: its samples, one a round, form a series.
type Cell struct {
	Store     string `json:"store"` // the part of the program that measured it
	Workload  string `json:"workload"`
	Callers   int    `json:"callers,omitempty"` // goroutines that ask at once; 0 where nobody asks
	Contender string `json:"contender"`
}

// Results are the series of a run, in the order in which cells first appeared.
type Results struct {
	order  []Cell
	series map[Cell][]Sample
}

// Add puts the sample of the next round into the series of c.
func (r *Results) Add(c Cell, s Sample) {
	if r.series == nil {
		r.series = make(map[Cell][]Sample)
	}
	if r.series[c] == nil {
		r.order = append(r.order, c)
	}
	r.series[c] = append(r.series[c], s)
}

// A Spread is the median of a series with its extremes; OK is false where
// there is nothing to show.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	OK     bool    `json:"-"`
}

// spreadOf summarises vs.
func spreadOf(vs []float64) Spread {
	if len(vs) == 0 {
		return Spread{}
	}
	vs = slices.Sorted(slices.Values(vs))
	mid := len(vs) / 2
	median := vs[mid]
	if len(vs)%2 == 0 {
		median = (vs[mid-1] + vs[mid]) / 2
	}
	return Spread{Median: median, Min: vs[0], Max: vs[len(vs)-1], OK: true}
}

// times is s in a unit of which there are n in the present one.
func (s Spread) times(n float64) Spread {
	return Spread{Median: s.Median * n, Min: s.Min * n, Max: s.Max * n, OK: s.OK}
}

// Of is the spread of metric m over the rounds of c.
func (r *Results) Of(c Cell, m Metric) Spread {
	var vs []float64
	for _, s := range r.series[c] {
		if v, ok := s[m]; ok {
			vs = append(vs, v)
		}
	}
	return spreadOf(vs)
}

// Ratio is the spread of m of c over m of base, taken round by round, so that
// what slowed a whole round down falls out.
func (r *Results) Ratio(c, base Cell, m Metric) Spread {
	var vs []float64
	for i, s := range r.series[c] {
		if i >= len(r.series[base]) {
			break
		}
		v, ok := s[m]
		b := r.series[base][i][m]
		if ok && b > 0 {
			vs = append(vs, v/b)
		}
	}
	return spreadOf(vs)
}
