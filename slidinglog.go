package headgate

// entry is a grant remembered by a sliding log: an instant and a count, in one
// word. A grant of more than maxEntry takes several entries of the same instant.
type entry uint64

const (
	entryBits = 11
	maxEntry  = 1<<entryBits - 1
)

func (e entry) at() int64    { return int64(e >> entryBits) }
func (e entry) count() int64 { return int64(e & maxEntry) }

// slidingLog decides by the grants of the last window, which log holds in order
// of time: those at times t with now - t < window. It changes nothing; record
// does, once the request is granted.
func slidingLog(l *rule, log []entry, now, cost int64, charge bool) verdict {
	skew := logSkew(log, now)
	now += skew
	log = log[expired(log, now, l.period):]
	used := logged(log)
	ask := l.ask(cost)
	v := verdict{}
	switch {
	case ask > l.capacity:
		v.retry = never
	case ask > 0 && used+ask > l.capacity:
		v.retry = skew + slidingLogWait(log, used+ask-l.capacity, l.period, now)
	case charge:
		used = max(used+ask, 0)
	}
	v.remaining = max(l.capacity-used, 0)
	switch {
	case used == 0:
	case v.granted() && charge && cost > 0:
		v.reset = skew + l.period
	default:
		v.reset = skew + slidingLogWait(log, used, l.period, now)
	}
	return v
}

// slidingLogWait is the time until grants of need in all have left the window.
func slidingLogWait(log []entry, need, period, now int64) int64 {
	for _, e := range log {
		if need -= e.count(); need <= 0 {
			return e.at() + period - now
		}
	}
	return 0
}

// logSkew is how far now lies before the last grant.
func logSkew(log []entry, now int64) int64 {
	if len(log) == 0 {
		return 0
	}
	return max(log[len(log)-1].at()-now, 0)
}

// expired counts the entries that have left the window at now.
func expired(log []entry, now, period int64) int {
	n := 0
	for n < len(log) && now-log[n].at() >= period {
		n++
	}
	return n
}

func logged(log []entry) int64 {
	var used int64
	for _, e := range log {
		used += e.count()
	}
	return used
}

// record appends a grant at now, or removes the latest grants if cost is negative:
// at most the capacity either way.
func record(log []entry, now, cost int64) []entry {
	if cost < 0 {
		return unrecord(log, -cost)
	}
	now += logSkew(log, now)
	if last := len(log) - 1; last >= 0 && log[last].at() == now {
		cost += log[last].count()
		log = log[:last]
	}
	for ; cost > 0; cost -= maxEntry {
		log = append(log, entry(now<<entryBits|min(cost, maxEntry)))
	}
	return log
}

func unrecord(log []entry, cost int64) []entry {
	for len(log) > 0 {
		last := len(log) - 1
		count := log[last].count()
		if count > cost {
			log[last] -= entry(cost)
			break
		}
		log, cost = log[:last], cost-count
	}
	return log
}

// A log is the same under any version of its limit, but for how long grants are kept.
// It is kept by the version with the longest window of those that it was counted by,
// until that has forgotten all of it.

// adoptLog gives what l finds of a log kept by old, which has other numbers, and the
// version by which that is kept. What a shorter window had forgotten is forgotten; this
// has to be written even if the request is refused.
func (l *rule) adoptLog(old *rule, log []entry, now int64) (kept []entry, keeper *rule, adopted bool) {
	switch {
	case old.period > l.period:
		return log, old, false
	case old.period < l.period:
		return log[expired(log, now+logSkew(log, now), old.period):], l, true
	default:
		return log, l, false
	}
}

// stillKept is what is left at now of a log, and the version by which it is kept.
func stillKept(log []entry, keeper, l *rule, now int64) ([]entry, *rule) {
	log = log[expired(log, now+logSkew(log, now), keeper.period):]
	if len(log) == 0 {
		return log, l
	}
	return log, keeper
}

// mostKept bounds how many grants a log may come to hold: as many as the keeper can ask
// about, and as l can have given back to it.
func mostKept(log []entry, keeper, l *rule) int64 {
	if keeper == l {
		return maxLog
	}
	return min(max(logged(log), keeper.capacity+l.capacity), maxLog)
}

// latest drops the oldest grants of log if there are more than most.
func latest(log []entry, most int64) []entry {
	if most == maxLog {
		return log
	}
	for over := logged(log) - most; over > 0; {
		count := log[0].count()
		if count > over {
			log[0] -= entry(over)
			break
		}
		log, over = log[1:], over-count
	}
	return log
}
