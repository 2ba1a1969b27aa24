package replay

// logTimes is what a sizing notes of the times in the logs.
type logTimes struct {
	fraction bool         // a time is not a whole second
	clocks   []*clockHand // the slowest first

	last int64
	gap  pause
}

// pause is the longest time without a request. Its times are microseconds.
type pause struct{ from, to int64 }

func (p pause) long() int64 { return p.to - p.from }

func newLogTimes() *logTimes {
	return &logTimes{clocks: []*clockHand{
		{hand: "minute", turn: "hour", seconds: 60, last: -1},
		{hand: "second", turn: "minute", seconds: 1, last: -1},
	}}
}

// add notes the time of a request, which is not earlier than the one before.
func (t *logTimes) add(at int64) {
	t.fraction = t.fraction || at%1e6 != 0
	if t.last > 0 && at-t.last > t.gap.long() {
		t.gap = pause{t.last, at}
	}
	t.last = at
	for _, c := range t.clocks {
		c.add(at / 1e6)
	}
}

// clockHand counts the different seconds, or minutes, with requests by where in the minute, or
// hour, they are.
type clockHand struct {
	hand, turn string
	seconds    int64 // that the hand needs for a place
	last       int64
	counts     [60]int64
	total      int64
}

func (c *clockHand) add(second int64) {
	if now := second / c.seconds; now != c.last {
		c.last = now
		c.counts[now%60]++
		c.total++
	}
}

// rounded returns the place at which all or nearly all times are, over 90%. If there is none, or
// there are too few times, how many is empty.
func (c *clockHand) rounded() (howMany string, place int) {
	for i, n := range c.counts {
		switch {
		case c.total < 10 || 10*n <= 9*c.total:
		case n == c.total:
			return "all", i
		default:
			return "nearly all", i
		}
	}
	return "", 0
}
