package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Budget is a row of the budgets in the design that this program can measure.
type Budget struct {
	What    string
	Of      Cell
	Metric  Metric
	Than    string // the contender to compare with; none: the number itself
	Minus   bool   // compare by difference; otherwise by ratio
	AtLeast bool   // Bound is the least; otherwise the most
	Bound   float64
}

// everyPeer as Than is each contender that is not Headgate's; the worst ratio counts.
const everyPeer = "each peer"

var budgets = append([]Budget{
	{What: "memory, hot key: ns above the monotonic clock", Of: hotKeyCell, Metric: Nanos,
		Than: clockName, Minus: true, Bound: 25},
	{What: "memory, hot key: allocations", Of: hotKeyCell, Metric: Allocs, Bound: 0.001},
	{What: "memory, 1M keys: time, ratio to go-limiter", Of: uniformCell(1), Metric: Nanos,
		Than: goLimiterName, Bound: 0.45},
	{What: "memory, 1M keys: time on two cores, ratio to one", Of: uniformCell(2), Metric: Scaling,
		Bound: 0.6},
	{What: "memory, 1M keys: bytes per key", Of: uniformCell(1), Metric: Bytes, Bound: 32},
	{What: "middleware, one client: time, ratio to httprate", Of: httpCell(hotKeyName),
		Metric: Nanos, Than: httprateName, Bound: 0.5},
	{What: "middleware, 100k clients: time, ratio to httprate", Of: httpCell("100k random keys"),
		Metric: Nanos, Than: httprateName, Bound: 0.5},
	{What: "middleware: allocations", Of: httpCell(hotKeyName), Metric: Allocs, Bound: 4.001},
	{What: "Redis, deny cache: decisions/s, ratio to redis_rate",
		Of: Cell{redisPart, denialName, 64, denyCacheName}, Metric: Rate, Than: redisRateName,
		AtLeast: true, Bound: 20},
	{What: "Redis, leased hot key: decisions/s, ratio to redis_rate",
		Of: Cell{redisPart, hotKeyName, 64, leaseName}, Metric: Rate, Than: redisRateName,
		AtLeast: true, Bound: 20},
	{What: "Redis: bytes per key, MEMORY USAGE", Of: Cell{redisPart, usageName, 0, headgateName},
		Metric: Bytes, Bound: 120},
	{What: "replay: lines/s on one core", Of: replayCell, Metric: Rate, AtLeast: true, Bound: 3e6},
	{What: "replay: bytes of peak memory for a line more", Of: replayCell, Metric: Bytes, Bound: 4},
}, slices.Concat(redisBudgets(), networkBudgets(), scriptBudgets(), serviceBudgets())...)

var (
	hotKeyCell = Cell{memoryPart, hotKeyName, 1, headgateName}
	replayCell = Cell{replayPart, "1M lines", 0, headgateName}
)

func uniformCell(cores int) Cell { return Cell{memoryPart, "1M random keys", cores, headgateName} }
func httpCell(name string) Cell  { return Cell{httpPart, name, 1, headgateName} }

// redisBudgets are those of decisions about 10k keys in Redis.
func redisBudgets() (bs []Budget) {
	add := func(callers int, m Metric, than string, atLeast bool, bound float64) {
		name := map[Metric]string{Rate: "decisions/s", P99: "p99", RedisCPU: "server CPU"}[m]
		bs = append(bs, Budget{
			What:   fmt.Sprintf("Redis, callers %d: %s, ratio to %s", callers, name, than),
			Of:     Cell{redisPart, "10k random keys", callers, headgateName},
			Metric: m, Than: than, AtLeast: atLeast, Bound: bound,
		})
	}
	add(1, Rate, everyPeer, true, 0.9)
	add(8, Rate, everyPeer, true, 0.95)
	add(16, Rate, everyPeer, true, 0.95)
	for _, callers := range []int{64, 256, 1024} {
		add(callers, Rate, everyPeer, true, 1)
		add(callers, P99, everyPeer, false, 1)
	}
	add(256, Rate, redisRateName, true, 5)
	add(64, RedisCPU, redisRateName, false, 0.28)
	add(1, RedisCPU, redisRateName, false, 1)
	return bs
}

// networkBudgets are those of decisions over each network, at each rate.
func networkBudgets() (bs []Budget) {
	for _, delay := range delays {
		for _, rate := range rates {
			add := func(name string, m Metric, bound float64) {
				bs = append(bs, Budget{
					What: fmt.Sprintf("network, %s, %d a second: %s, ratio to %s",
						eachWay(delay), rate, name, rueidisName),
					Of:     Cell{networkPart, eachWay(delay), rate, headgateName},
					Metric: m, Than: rueidisName, Bound: bound,
				})
			}
			add("median", P50, 1.1)
			add("p99", P99, 1.15)
			add("server CPU", RedisCPU, 1.1)
			add("client CPU", ClientCPU, 1.3)
		}
	}
	return bs
}

// scriptBudgets are those of the script's run time.
func scriptBudgets() (bs []Budget) {
	for _, size := range batchSizes {
		bs = append(bs, Budget{
			What:   fmt.Sprintf("script, batches of %d: time, ratio to the prototype", size),
			Of:     Cell{scriptPart, scriptName, size, headgateName},
			Metric: Script, Than: prototypeName, Bound: 1.25,
		})
	}
	return bs
}

// inShort are the budgets that say most to a stranger, each with a sentence for what was measured.
var inShort = []struct{ what, says string }{
	{"memory, hot key: ns above the monotonic clock",
		"In memory, a decision takes %s ns more than reading the clock."},
	{"Redis, callers 64: decisions/s, ratio to " + everyPeer,
		"Through one Redis, 64 callers get %s times the decisions of the best other limiter."},
	{"Redis, callers 64: server CPU, ratio to " + redisRateName,
		"A decision costs that Redis %s times the CPU of one of go-redis/redis_rate."},
	{"network, 450us each way, 2000 a second: median, ratio to " + rueidisName,
		"Over a network of 450 us each way, the median latency is %s times rueidislimiter's."},
	{"service, callers 64: server CPU, ratio to " + upstreamName,
		"As a server of Envoy's protocol, it takes %s times the CPU of envoyproxy/ratelimit."},
}

// summary is a list of the sentences whose budgets were measured.
func summary(r *Results) (lines string) {
	for _, one := range inShort {
		i := slices.IndexFunc(budgets, func(b Budget) bool { return b.What == one.what })
		if s, _ := budgets[i].measure(r); s.OK {
			lines += "- " + fmt.Sprintf(one.says, s) + "\n"
		}
	}
	return lines
}

// serviceBudgets compare the server with its peer.
func serviceBudgets() (bs []Budget) {
	of := func(callers int) Cell { return Cell{servicePart, grantedName, callers, headgateName} }
	bs = append(bs, Budget{
		What: "service, callers 64: server CPU, ratio to " + upstreamName,
		Of:   of(64), Metric: ServerCPU, Than: upstreamName, Bound: 0.35,
	})
	for _, callers := range []int{1, 16, 64, 256} {
		bs = append(bs, Budget{
			What: fmt.Sprintf("service, callers %d: p99, ratio to %s", callers, upstreamName),
			Of:   of(callers), Metric: P99, Than: upstreamName, Bound: 0.5,
		})
	}
	for _, c := range []struct {
		workload string
		bound    float64
	}{{consoleGranted, 1.03}, {consoleDenied, 1.03}} {
		bs = append(bs, Budget{
			What:   "service, " + c.workload + ", 10 viewers: server CPU, ratio to no viewer",
			Of:     Cell{servicePart, c.workload, consoleCallers, tenViewersName},
			Metric: ServerCPU, Than: noViewerName, Bound: c.bound,
		})
	}
	return bs
}

// measure returns what the budget is about, and the peer that it was compared with.
func (b Budget) measure(r *Results) (worst Spread, than string) {
	if b.Than == "" {
		return r.Of(b.Of, b.Metric), ""
	}
	for _, c := range r.cells {
		switch {
		case c.group() != b.Of.group():
		case b.Minus && c.Contender == b.Than:
			return r.Difference(b.Of, c, b.Metric), b.Than
		case c.Contender == b.Than,
			b.Than == everyPeer && !strings.HasPrefix(c.Contender, headgateName):
			s := r.Ratio(b.Of, c, b.Metric)
			if !worst.OK || s.OK && (s.Median < worst.Median) == b.AtLeast {
				worst, than = s, c.Contender
			}
		}
	}
	return worst, than
}

// met reports whether s is within the budget. What was not measured is not.
func (b Budget) met(s Spread) bool {
	if b.AtLeast {
		return s.OK && s.Median >= b.Bound
	}
	return s.OK && s.Median <= b.Bound
}

// row is the budget in a table of Markdown.
func (b Budget) row(r *Results) string {
	s, than := b.measure(r)
	bound, verdict := "at most", "**missed**"
	if b.AtLeast {
		bound = "at least"
	}
	if b.met(s) {
		verdict = "met"
	}
	if b.Than == everyPeer {
		than = ", " + than
	} else {
		than = ""
	}
	return fmt.Sprintf("| %s | %s %s | %s%s | %s |",
		b.What, bound, short(b.Bound), s, than, verdict)
}

// short writes a bound without the thousandth that counts allow for the harness.
func short(bound float64) string {
	if bound >= 1e6 {
		return fmt.Sprintf("%gM", bound/1e6)
	}
	return fmt.Sprintf("%g", math.Floor(bound*100)/100)
}
