package replay

// logTimes is what a sizing notes of the times in the logs.
type logTimes struct {
	fraction bool // a time is not a whole second
	last     int64
	gap      pause
}

// pause is the longest time without a request. Its times are microseconds.
type pause struct{ from, to int64 }

func (p pause) long() int64 { return p.to - p.from }

// add notes the time of a request, which is not earlier than the one before.
func (t *logTimes) add(at int64) {
	t.fraction = t.fraction || at%1e6 != 0
	if t.last > 0 && at-t.last > t.gap.long() {
		t.gap = pause{t.last, at}
	}
	t.last = at
}
