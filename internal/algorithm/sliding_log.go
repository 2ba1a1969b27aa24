package algorithm

import "slices"

// Entry is a grant that a sliding log remembers: an instant and a count, in one word. A
// grant of more than maxCount takes several entries of the same instant.
type Entry uint64

const (
	countBits = 11
	maxCount  = 1<<countBits - 1
)

func (e Entry) at() int64    { return int64(e >> countBits) }
func (e Entry) count() int64 { return int64(e & maxCount) }

// maxBooked bounds the tokens in a log together with those that are booked ahead.
const maxBooked = 2 * MaxLog

// slidingLog decides by the grants of the last window, which the log holds in order of
// time: those at times t with now - t < period. The log that follows keeps what has not
// expired at since. It may share memory with k.Log, which is changed only if charge is set.
func (l *Rule) slidingLog(k Account, now, since, cost int64, charge Charge) (Account, Verdict) {
	skew := max(k.At-now, 0)
	now += skew
	log := k.Log[expired(k.Log, now, l.period):]
	kept := k.Log[expired(k.Log, min(since, now), l.period):]
	used := total(log)
	ask := l.ask(cost)
	tooLong := since < now && total(kept)+ask > maxBooked
	v := Verdict{}
	switch {
	case ask > 0 && (ask > l.Capacity-used || tooLong):
		if charge == Force {
			log, used = l.forcedLog(log, used, now, ask)
		}
		v.Retry = Never
		if ask <= l.Capacity && !tooLong {
			v.Retry = skew + slidingLogWait(log, used+ask-l.Capacity, l.period, now)
		}
	case charge != Nothing:
		ask = max(ask, -used)
		used += ask
		if since < now {
			kept = l.since(kept, since)
		}
		if len(kept) == cap(kept) {
			kept = append(k.Log[:0], kept...) // uses the room of those that have expired
		}
		log = record(kept, now, ask)
	}
	v.Remaining = l.Capacity - used
	if used > 0 {
		v.Reset = skew + log[len(log)-1].at() + l.period - now
	} else if len(log) == 0 {
		return Account{}, v
	}
	return Account{State: State{At: now}, Log: log}, v
}

// forcedLog is a log of so many tokens and ask more. It forgets the oldest beyond twice the
// capacity: the latest decide until when the log is full.
func (l *Rule) forcedLog(log []Entry, used, now, ask int64) ([]Entry, int64) {
	most := max(min(2*l.Capacity, MaxLog), used)
	ask = min(ask, most)
	log = forget(log, used+ask-most)
	return record(log, now, ask), min(used+ask, most)
}

// forget removes the oldest n tokens of a log.
func forget(log []Entry, n int64) []Entry {
	for n > 0 {
		count := log[0].count()
		if count > n {
			log[0] -= Entry(n)
			break
		}
		log, n = log[1:], n-count
	}
	return log
}

// since puts an entry of no tokens in front of a log from which what had expired at since was
// dropped: a cancel does not move time back before that.
func (l *Rule) since(log []Entry, since int64) []Entry {
	if len(log) > 0 && log[0].count() == 0 {
		return log
	}
	return append([]Entry{Entry(max(since-l.period, 0) << countBits)}, log...)
}

// slidingLogWait is the time until grants of need in all have left the window.
func slidingLogWait(log []Entry, need, period, now int64) int64 {
	for _, e := range log {
		if need -= e.count(); need <= 0 {
			return e.at() + period - now
		}
	}
	return 0
}

// expired counts the entries that have left the window at now.
func expired(log []Entry, now, period int64) int {
	n := 0
	for n < len(log) && now-log[n].at() >= period {
		n++
	}
	return n
}

func total(log []Entry) int64 {
	var used int64
	for _, e := range log {
		used += e.count()
	}
	return used
}

// record appends a grant at now, or removes the latest grants if cost is negative.
func record(log []Entry, now, cost int64) []Entry {
	if cost < 0 {
		return unrecord(log, -cost)
	}
	if last := len(log) - 1; last >= 0 && log[last].at() == now {
		cost += log[last].count()
		log = log[:last]
	}
	for ; cost > 0; cost -= maxCount {
		log = append(log, Entry(now<<countBits|min(cost, maxCount)))
	}
	return log
}

func unrecord(log []Entry, cost int64) []Entry {
	log = slices.Clone(log)
	for cost > 0 && len(log) > 0 {
		last := len(log) - 1
		count := log[last].count()
		if count > cost {
			log[last] -= Entry(cost)
			break
		}
		log, cost = log[:last], cost-count
	}
	return log
}

// without returns a copy of a log without n tokens of the grant at a time, or without all of them.
func without(log []Entry, at, n int64) []Entry {
	kept := make([]Entry, 0, len(log))
	for _, e := range log {
		back := int64(0)
		if e.at() == at {
			back = min(e.count(), n)
			n -= back
		}
		if back == 0 || back < e.count() {
			kept = append(kept, e-Entry(back))
		}
	}
	return kept
}
