package console

import (
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/metrics"
)

// counterReader reads the counters of this instance. One goroutine uses it.
type counterReader struct {
	metrics    *metrics.Metrics
	statistics *envoy.Statistics

	read    time.Time // when they were read last
	reading uint64    // how often they were read
	last    map[ruleID]lastCounts
	errors  uint64 // of Envoy's protocol, which belong to no rule
	all     totals // up to the last reading

	history *history
	recent  []period // the last rateTicks, the newest last: at least one
	latency latency
}

// period is what was counted between two readings.
type period struct {
	at    time.Time // its end
	span  time.Duration
	rules map[string]counts // that counted something
	total counts
	all   totals
}

// rateTicks is over how many readings a rate is the mean, of rules and of keys. With viewers, there
// is one each second.
const rateTicks = 5

// lately returns what was counted in the last seconds, but nothing before begin if it can.
func (s *counterReader) lately(begin time.Time) period {
	sum := period{at: s.read, rules: map[string]counts{}}
	for i, r := range slices.Backward(s.recent) {
		if r.at.Add(-r.span).Before(begin) && i < len(s.recent)-1 {
			break
		}
		sum.span += r.span
		for name, c := range r.rules {
			of := sum.rules[name]
			c.addTo(&of)
			sum.rules[name] = of
		}
		r.total.addTo(&sum.total)
		r.all.addTo(&sum.all)
	}
	return sum
}

type lastCounts struct {
	counts
	reading uint64
}

func newCounterReader(m *metrics.Metrics, s *envoy.Statistics, now time.Time) *counterReader {
	return &counterReader{
		metrics: m, statistics: s, read: now, last: map[ruleID]lastCounts{},
		history: newHistory(stepOf(now)), recent: []period{{at: now}},
	}
}

// sample reads all counters.
func (s *counterReader) sample(now time.Time) {
	span := now.Sub(s.read)
	from := now.Add(-min(span, stepTime))
	s.read = now
	s.reading++
	s.history.advance(stepOf(now))
	step := stepOf(from) // what was counted at the end of a step is of that step
	one := period{at: now, span: span, rules: map[string]counts{}}
	s.metrics.Rules(func(rule string, c metrics.Counts) {
		passed := c.Allowed + c.ShadowDenied
		s.count(&one, step, ruleID{name: rule},
			counts{passed, c.Denied, c.ShadowDenied, c.Failed, c.Degraded, c.Banned, c.Tokens})
	})
	s.statistics.Rules(func(c *envoy.Counters) { s.count(&one, step, idOf(c), countsOf(c)) })
	failures := s.statistics.RedisError.Load()
	more := counts{failed: failures - s.errors}
	s.errors = failures
	more.addTo(&one.total)
	more.addTo(s.history.total.at(step))
	for id, l := range s.last {
		if l.reading != s.reading {
			delete(s.last, id)
		}
	}
	s.latency.read(s.metrics, now)
	s.readTotals(&one)
	one.all.addTo(&s.history.all[step%kept])
	s.recent = append(s.recent, one)
	s.recent = s.recent[max(0, len(s.recent)-rateTicks):]
}

// readTotals reads the counters of no rule.
func (s *counterReader) readTotals(to *period) {
	var now totals
	now[asked], now[refused] = s.metrics.Requests()
	calls := s.latency.readings[len(s.latency.readings)-1].counts
	for i, n := range calls {
		now[called] += n
		if i > slices.Index(metrics.CallBounds(), slowStore.Seconds()) {
			now[late] += n
		}
	}
	for i := range now {
		to.all[i] = now[i] - s.all[i]
	}
	s.all = now
}

// count adds what id has counted since the last reading.
func (s *counterReader) count(to *period, step int64, id ruleID, c counts) {
	more := c.since(s.last[id].counts)
	s.last[id] = lastCounts{c, s.reading}
	if more.isZero() {
		return
	}
	name := id.String()
	to.rules[name] = more
	more.addTo(&to.total)
	s.history.add(step, name, more)
}

func idOf(c *envoy.Counters) ruleID { return ruleID{c.Domain, c.Path} }

// countsOf returns the hits that c counts. Upstream counts those of rules in shadow as over the
// limit, too.
func countsOf(c *envoy.Counters) counts {
	over := c.OverLimit.Load() // before ShadowMode, so that no hit in shadow counts as denied
	shadow := c.ShadowMode.Load()
	return counts{
		allowed: c.WithinLimit.Load() + shadow, shadowDenied: shadow,
		denied: over - min(over, shadow),
	}
}

// latencySpan is how long ago the calls of a percentile may be.
const latencySpan = 5 * time.Second

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
