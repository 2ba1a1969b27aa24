package main

import (
	"fmt"
	"io"
	"strings"
)

// headgateName is the row the budgets are about.
const headgateName = "headgate"

// A Budget is a number that this project wants to keep. It is shown, and never
// fails a run: a machine that is busy elsewhere proves nothing.
type Budget struct {
	What     string
	Store    string
	Workload string // the beginning of the workload's name
	Callers  int
	Metric   Metric
	Ratio    bool // compare the ratio to the baseline, not the number itself
	Least    bool // Bound is a floor
	Bound    float64
	Entry    string // the contender meant; empty is headgateName
}

// budgets are those of the design that this module can measure.
var budgets = []Budget{
	{What: "memory, one hot key", Store: memoryStore, Workload: "one hot key", Callers: 1, Metric: Nanos, Ratio: true, Bound: 0.45},
	{What: "memory, one hot key, allocations", Store: memoryStore, Workload: "one hot key", Callers: 1, Metric: Allocs, Bound: 0.001},
	{What: "memory, uniform keys", Store: memoryStore, Workload: "1M uniform", Callers: 1, Metric: Nanos, Ratio: true, Bound: 0.45},
	{What: "memory, uniform keys, two cores over one", Store: memoryStore, Workload: "1M uniform", Callers: 2, Metric: Scaling, Bound: 0.6},
	{What: "memory, bytes per key", Store: memoryStore, Workload: "1M keys resident", Metric: Bytes, Bound: 32},
	{What: "middleware, one client", Store: httpStore, Workload: "one hot key", Callers: 1, Metric: Nanos, Ratio: true, Bound: 0.5},
	{What: "middleware, many clients", Store: httpStore, Workload: "100k uniform", Callers: 1, Metric: Nanos, Ratio: true, Bound: 0.5},
	{What: "middleware, allocations", Store: httpStore, Workload: "one hot key", Callers: 1, Metric: Allocs, Bound: 4},
	{What: "gate, passes in any window of 100", Store: gateStore, Workload: crowdName, Callers: crowdCallers, Metric: Most, Bound: crowdLimit},
	{What: "gate, part of the limit that passes", Store: gateStore, Workload: crowdName, Callers: crowdCallers, Metric: Part, Least: true, Bound: 0.99},
	{What: "redis, 1 caller", Store: redisStore, Workload: "10k uniform", Callers: 1, Metric: Rate, Ratio: true, Least: true, Bound: 1},
	{What: "redis, 16 callers", Store: redisStore, Workload: "10k uniform", Callers: 16, Metric: Rate, Ratio: true, Least: true, Bound: 1.3},
	{What: "redis, 64 callers", Store: redisStore, Workload: "10k uniform", Callers: 64, Metric: Rate, Ratio: true, Least: true, Bound: 3.5},
	{What: "redis, 256 callers", Store: redisStore, Workload: "10k uniform", Callers: 256, Metric: Rate, Ratio: true, Least: true, Bound: 5.5},
	{What: "redis, 16 callers, p99", Store: redisStore, Workload: "10k uniform", Callers: 16, Metric: P99, Ratio: true, Bound: 1},
	{What: "redis, 64 callers, p99", Store: redisStore, Workload: "10k uniform", Callers: 64, Metric: P99, Ratio: true, Bound: 1},
	{What: "redis, 256 callers, p99", Store: redisStore, Workload: "10k uniform", Callers: 256, Metric: P99, Ratio: true, Bound: 1},
	{What: "redis, server CPU at 64 callers", Store: redisStore, Workload: "10k uniform", Callers: 64, Metric: RedisCPU, Ratio: true, Bound: 0.25},
	{What: "redis, denials with a deny cache", Store: redisStore, Workload: "denial", Callers: 64, Metric: Rate, Ratio: true, Least: true, Bound: 20, Entry: denyCacheName},
	{What: "redis, a leased hot key", Store: redisStore, Workload: "one hot key", Callers: 64, Metric: Rate, Ratio: true, Least: true, Bound: 20, Entry: leaseName},
}

// writeBudgets prints, for every budget whose workload was run, what it asks and what
// was found.
func writeBudgets(w io.Writer, r *Results) {
	for _, b := range budgets {
		group := b.group(r)
		if len(group) == 0 {
			continue
		}
		sign := "<="
		if b.Least {
			sign = ">="
		}
		fmt.Fprintf(w, "budget %-42s %s %-6g %s\n", b.What, sign, b.Bound, b.verdict(b.measured(r, group)))
	}
}

// verdict says what was measured, and whether that is enough.
func (b Budget) verdict(s Spread) string {
	if !s.OK {
		return fmt.Sprintf("not measured: %q did not run beside the baseline", b.contender())
	}
	missed := s.Median/b.Bound - 1
	if b.Least {
		missed = 1 - s.Median/b.Bound
	}
	verdict := "met"
	if missed > 0 {
		verdict = fmt.Sprintf("NOT met, by %.0f%%", max(100*missed, 1))
	}
	return fmt.Sprintf("measured %.2f (%.2f-%.2f)  %s", s.Median, s.Min, s.Max, verdict)
}

// contender is the name of the contender meant.
func (b Budget) contender() string {
	if b.Entry == "" {
		return headgateName
	}
	return b.Entry
}

// group is every cell of the workload that a budget is about.
func (b Budget) group(r *Results) (group []Cell) {
	for _, c := range r.order {
		if c.Store == b.Store && c.Callers == b.Callers && strings.HasPrefix(c.Workload, b.Workload) {
			group = append(group, c)
		}
	}
	return group
}

// measured finds the cell a budget is about in its group.
func (b Budget) measured(r *Results, group []Cell) Spread {
	for _, c := range group {
		if c.Contender != b.contender() {
			continue
		}
		if b.Ratio {
			return r.Ratio(c, baseline(group), b.Metric)
		}
		return r.Of(c, b.Metric)
	}
	return Spread{}
}
