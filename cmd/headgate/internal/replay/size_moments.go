package replay

import "time"

// moments counts requests over time.
type moments struct {
	timeline timeline
	cycles   []*cycle
	days     []day
	fraction bool // a time is not a whole second

	last int64
	gap  pause
}

type day struct{ number, requests int64 }

// pause is the longest time without a request. Its times are microseconds.
type pause struct{ from, to int64 }

func (p pause) long() int64 { return p.to - p.from }

func newMoments() *moments {
	return &moments{
		timeline: timeline{width: widths[0]},
		cycles: []*cycle{
			newCycle("minute", time.Second, 60, 10),
			newCycle("hour", time.Minute, 60, 10),
			newCycle("day", time.Hour, 24, 5),
		},
	}
}

// add counts a request, which is not earlier than the one before.
func (m *moments) add(at int64) {
	second := at / 1e6
	m.fraction = m.fraction || at%1e6 != 0
	if len(m.days) > 0 && at-m.last > m.gap.long() {
		m.gap = pause{m.last, at}
	}
	m.last = at
	m.timeline.add(second)
	for _, c := range m.cycles {
		c.add(second)
	}
	number := second / 86400
	if n := len(m.days); n == 0 || m.days[n-1].number != number {
		m.days = append(m.days, day{number: number})
	}
	m.days[len(m.days)-1].requests++
}

// cycle finds bursts at fixed moments: a second of the minute, a minute of the hour, an hour of
// the day that holds at least three times its share, in at least half of all rounds.
type cycle struct {
	name   string
	slot   int64 // seconds
	enough int64 // rounds before it is worth saying

	round          int64
	inRound        int64
	counts         []int64 // of the round
	hits, requests []int64 // by slot
	rounds         int64
}

func newCycle(name string, slot time.Duration, slots int, enough int64) *cycle {
	return &cycle{
		name: name, slot: int64(slot / time.Second), enough: enough,
		counts: make([]int64, slots), hits: make([]int64, slots), requests: make([]int64, slots),
	}
}

func (c *cycle) add(second int64) {
	slots := int64(len(c.counts))
	place := second / c.slot
	if round := place / slots; round != c.round {
		c.finish()
		c.round = round
	}
	c.counts[place%slots]++
	c.inRound++
}

// finish ends a round.
func (c *cycle) finish() {
	if c.inRound == 0 {
		return
	}
	c.rounds++
	for i, n := range c.counts {
		if n*int64(len(c.counts)) >= 3*c.inRound {
			c.hits[i]++
		}
		c.requests[i] += n
	}
	clear(c.counts)
	c.inRound = 0
}

// found returns the moments that stand out of requests in all.
func (c *cycle) found(requests int64) (found []Moment) {
	c.finish()
	if c.rounds < c.enough {
		return nil
	}
	for i, n := range c.requests {
		if 2*c.hits[i] >= c.rounds && n*int64(len(c.counts)) >= 3*requests {
			found = append(found, Moment{
				Cycle: c.name, Slot: i, Share: float64(n) / float64(requests),
				Times: c.hits[i], Rounds: c.rounds,
			})
		}
	}
	return found
}

// maxBars bounds the bars of a timeline.
const maxBars = 500

// widths are the widths of bars in seconds, each a multiple of the one before. Days double after.
var widths = []int64{1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 86400}

// timeline counts requests in bars of one width, which grows with the span.
type timeline struct {
	width int64 // seconds
	first int64 // number of the first bar, counted from the epoch
	bars  []int64
}

func (t *timeline) add(second int64) {
	if len(t.bars) == 0 {
		t.first = second / t.width
	}
	for second/t.width-t.first >= maxBars {
		t.widen()
	}
	for int64(len(t.bars)) <= second/t.width-t.first {
		t.bars = append(t.bars, 0)
	}
	t.bars[second/t.width-t.first]++
}

// widen joins bars.
func (t *timeline) widen() {
	next := 2 * t.width
	for _, w := range widths {
		if w > t.width {
			next = w
			break
		}
	}
	first := t.first * t.width / next
	joined := make([]int64, 0, maxBars)
	for i, n := range t.bars {
		bar := (t.first+int64(i))*t.width/next - first
		for int64(len(joined)) <= bar {
			joined = append(joined, 0)
		}
		joined[bar] += n
	}
	t.width, t.first, t.bars = next, first, joined
}

// growth compares the second half of the whole days to the first, or of the whole weeks. It
// returns nil for fewer than 4 days, or if most of them have no request.
func (m *moments) growth() *Growth {
	if len(m.days) == 0 {
		return nil
	}
	first, last := m.days[0].number+1, m.days[len(m.days)-1].number // the outer ones are cut off
	half := (last - first) / 2
	if half >= 7 {
		half -= half % 7
	}
	if half < 2 {
		return nil
	}
	g := &Growth{Days: 2 * half}
	busy := int64(0)
	for _, d := range m.days {
		if d.number >= last-2*half && d.number < last {
			busy++
		}
		switch {
		case d.number >= last-half && d.number < last:
			g.Late += float64(d.requests) / float64(half)
		case d.number >= last-2*half && d.number < last-half:
			g.Early += float64(d.requests) / float64(half)
		}
	}
	if busy < half {
		return nil
	}
	return g
}
