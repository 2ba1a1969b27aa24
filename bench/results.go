package main

import "slices"

// Metric is one thing measured in a round.
type Metric string

const (
	Nanos     Metric = "ns"        // time for a decision
	Rate      Metric = "k/s"       // decisions, or lines, a second
	Allocs    Metric = "allocs"    // heap allocations for a decision
	Scaling   Metric = "2/1 cores" // time on two cores over time on one
	P50       Metric = "p50 us"    // median latency
	P99       Metric = "p99 us"    // 99th percentile of the latency
	RedisCPU  Metric = "redis us"  // CPU time of the Redis server for a decision
	ServerCPU Metric = "server us" // CPU time of a rate limit server for a decision
	ClientCPU Metric = "client us" // CPU time of the client's process for a decision
	Script    Metric = "script us" // run time of the script for a decision
	Bytes     Metric = "bytes"     // memory of a key, or allocated for one more line
)

// Sample is what one round measured of one contender.
type Sample map[Metric]float64

// Cell names what is measured. It has a sample for each round.
type Cell struct {
	Part, Workload string
	Callers        int // goroutines at once, calls a second, or the size of batches; 0: none
	Contender      string
}

// group is the cell without its contender.
func (c Cell) group() Cell {
	c.Contender = ""
	return c
}

// Results are the samples of a run. Cells are in the order in which they were first measured.
type Results struct {
	cells   []Cell
	samples map[Cell][]Sample
}

// Add adds the sample of the next round to those of c.
func (r *Results) Add(c Cell, s Sample) {
	if r.samples == nil {
		r.samples = make(map[Cell][]Sample)
	}
	if r.samples[c] == nil {
		r.cells = append(r.cells, c)
	}
	r.samples[c] = append(r.samples[c], s)
}

// Spread is the median of a metric over the rounds, with its extremes. Not OK is not measured.
type Spread struct {
	Median, Min, Max float64
	OK               bool
}

func spreadOf(vs []float64) Spread {
	if len(vs) == 0 {
		return Spread{}
	}
	slices.Sort(vs)
	mid := len(vs) / 2
	median := vs[mid]
	if len(vs)%2 == 0 {
		median = (vs[mid-1] + vs[mid]) / 2
	}
	return Spread{median, vs[0], vs[len(vs)-1], true}
}

// Of is the spread of m of c.
func (r *Results) Of(c Cell, m Metric) Spread {
	return r.compare(c, c, m, func(v, _ float64) float64 { return v })
}

// Ratio is the spread of m of c over m of base, both of the same round.
func (r *Results) Ratio(c, base Cell, m Metric) Spread {
	return r.compare(c, base, m, func(v, b float64) float64 { return v / b })
}

// Difference is the spread of m of c minus m of base, both of the same round.
func (r *Results) Difference(c, base Cell, m Metric) Spread {
	return r.compare(c, base, m, func(v, b float64) float64 { return v - b })
}

func (r *Results) compare(c, base Cell, m Metric, by func(v, b float64) float64) Spread {
	var vs []float64
	for i, s := range r.samples[c] {
		if i >= len(r.samples[base]) {
			break
		}
		v, ok := s[m]
		b, both := r.samples[base][i][m]
		if ok && both {
			vs = append(vs, by(v, b))
		}
	}
	return spreadOf(vs)
}
