package limittest

import (
	"math"
	"math/big"
	"slices"

	"github.com/headgate/headgate"
)

// state is what one key has used of one limit, kept the naive way. Nothing here is shared with the
// stores. Times are microseconds since the Unix epoch. The zero state is the initial one.
type state struct {
	limit  headgate.Limit // the numbers of the last grant or refund
	at     int64          // the time of the last grant or refund, or the start time booked last
	booked bool           // at was ahead of the request that was granted
	late   bool           // booked while a start was ahead: a cancel leaves time where it is
	used   int64          // buckets: what is missing at that time, in units or tokens; calendars
	step   int64          // stepped: the latest step, or when the bucket was first taken from
	grants []grant        // windows and logs: all of them, in order of time
	// logs: when the last booking was made, before which time cannot move back
	since int64
}

type grant struct{ at, count int64 }

// left is the largest cost that fits at the time t under l; below 0 if the count of l was
// larger before.
func (s *state) left(l headgate.Limit, t int64) int64 {
	period := l.Period().Microseconds()
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		_, unit := rate(l)
		return l.Capacity() - ceilDiv(s.missing(l, t), unit)
	case headgate.AlgorithmSteppedTokenBucket:
		missing, _ := s.stepped(l, t)
		return l.Capacity() - missing
	case headgate.AlgorithmFixedWindow:
		return l.Capacity() - s.count(t-t%period)
	case headgate.AlgorithmCalendarWindow:
		return l.Capacity() - s.counted(l, t)
	case headgate.AlgorithmSlidingWindow:
		start := t - t%period
		current := s.count(start)
		previous := s.count(start-period) - current
		return l.Capacity() - current - ceilDiv(previous*(start+period-t), period)
	default:
		return l.Capacity() - s.count(t-period+1)
	}
}

// rate is the refill of a token bucket in lowest terms: the units that arrive each
// microsecond, and the units of a token.
func rate(l headgate.Limit) (rate, unit int64) {
	r := big.NewRat(l.Refill(), l.Period().Microseconds())
	return r.Num().Int64(), r.Denom().Int64()
}

// missing is the number of units that a token bucket misses at t.
func (s *state) missing(l headgate.Limit, t int64) int64 {
	if s.used == 0 {
		return 0
	}
	_, unit := rate(s.limit)
	each, unitNow := rate(l)
	used := scaled(s.used, s.limit.Capacity()*unit, l.Capacity()*unitNow, mostUsed(l))
	return lowered(used, t-s.at, each)
}

// stepped is the number of tokens that a stepped bucket misses at t, and its latest step.
// Under other numbers than those of the last grant, whole periods count from that grant.
func (s *state) stepped(l headgate.Limit, t int64) (missing, step int64) {
	if s.used == 0 {
		return 0, t
	}
	step = s.step
	if l != s.limit {
		step = s.at
	}
	period := l.Period().Microseconds()
	steps := (t - step) / period
	missing = lowered(scaled(s.used, s.limit.Capacity(), l.Capacity(), mostUsed(l)), steps,
		l.Refill())
	if missing == 0 {
		return 0, t
	}
	return missing, step + steps*period
}

// scaled carries used over from a bucket of size from to one of size to: the same fraction, rounded
// up, at most all of it, or if it was more than all of it at most most. Lua has only doubles: the
// sizes are divided by what divides both, and 1 is added where the product passes 2^53 nonetheless.
func scaled(used, from, to, most int64) int64 {
	if from == to {
		return min(used, most)
	}
	if used <= from {
		most = to
	}
	sizes := big.NewRat(to, from) // in lowest terms
	product := new(big.Int).Mul(big.NewInt(used), sizes.Num())
	if product.Cmp(big.NewInt(1<<53-1)) <= 0 {
		return min(ceilDiv(product.Int64(), sizes.Denom().Int64()), most)
	}
	q := float64(used) * float64(sizes.Num().Int64()) / float64(sizes.Denom().Int64())
	return int64(min(math.Ceil(q)+1, float64(most)))
}

// lowered is used less n times each, at least 0.
func lowered(used, n, each int64) int64 {
	product := new(big.Int).Mul(big.NewInt(n), big.NewInt(each))
	if product.Cmp(big.NewInt(used)) >= 0 {
		return 0
	}
	return used - product.Int64()
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// count is what was granted from the time since on.
func (s *state) count(since int64) int64 {
	var n int64
	for _, g := range s.grants {
		if g.at >= since {
			n += g.count
		}
	}
	return n
}

// counted is what a calendar counts at t: what was used at s.at, if that is in the same window,
// also if the zone or the anchor was another one then.
func (s *state) counted(l headgate.Limit, t int64) int64 {
	if s.at < windowStart(l, t) {
		return 0
	}
	return s.used
}

// clean reports whether nothing that was granted makes a difference at t or later.
func (s *state) clean(l headgate.Limit, t int64) bool {
	period := l.Period().Microseconds()
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		return s.missing(l, t) == 0
	case headgate.AlgorithmSteppedTokenBucket:
		missing, _ := s.stepped(l, t)
		return missing == 0
	case headgate.AlgorithmFixedWindow:
		return s.count(t-t%period) == 0
	case headgate.AlgorithmCalendarWindow:
		return s.counted(l, t) == 0
	case headgate.AlgorithmSlidingWindow:
		return s.count(t-t%period-period) == 0
	default:
		return s.count(t-period+1) == 0
	}
}

// first is the first time, not before t, at which ok holds; from then on it holds.
func first(t int64, ok func(t int64) bool) int64 {
	if ok(t) {
		return t
	}
	far := int64(1)
	for !ok(t + far) {
		far *= 2
	}
	near := far / 2 // too early, or 0
	for far-near > 1 {
		if middle := near + (far-near)/2; ok(t + middle) {
			far = middle
		} else {
			near = middle
		}
	}
	return t + far
}

// charged is the state after a grant of cost at t.
func (s *state) charged(l headgate.Limit, t, cost int64) state {
	next := state{limit: l, at: t}
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		_, unit := rate(l)
		next.used = s.missing(l, t) + cost*unit
	case headgate.AlgorithmSteppedTokenBucket:
		next.used, next.step = s.stepped(l, t)
		next.used += cost
	case headgate.AlgorithmCalendarWindow:
		next.used = s.counted(l, t) + cost
	default:
		next.grants = append(append(next.grants, s.grants...), grant{t, cost})
	}
	return next
}

// refunded is the state after n tokens are given back at t, at most what is used then: of a
// window or a log, those that were granted last.
func (s *state) refunded(l headgate.Limit, t, n int64) state {
	next := state{limit: l, at: t}
	period := l.Period().Microseconds()
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		_, unit := rate(l)
		next.used = lowered(s.missing(l, t), n, unit)
	case headgate.AlgorithmSteppedTokenBucket:
		next.used, next.step = s.stepped(l, t)
		next.used = lowered(next.used, n, 1)
	case headgate.AlgorithmFixedWindow:
		next.grants = without(s.grants, min(n, s.count(t-t%period)))
	case headgate.AlgorithmCalendarWindow:
		next.used = lowered(s.counted(l, t), n, 1)
	case headgate.AlgorithmSlidingWindow:
		next.grants = without(s.grants, min(n, s.count(t-t%period-period)))
	default:
		next.grants = without(s.grants, min(n, s.count(t-period+1)))
	}
	return next
}

// without is grants less the last n tokens.
func without(grants []grant, n int64) []grant {
	var left []grant
	for _, g := range slices.Backward(grants) {
		back := min(g.count, n)
		n -= back
		if g.count > back {
			left = append(left, grant{g.at, g.count - back})
		}
	}
	slices.Reverse(left)
	return left
}

// refundedLate is the state of a window or a log after n tokens are given back of a grant whose
// start has come: those in its window, or its own.
func (s *state) refundedLate(l headgate.Limit, start, n int64) state {
	next := *s
	next.grants = nil
	period := l.Period().Microseconds()
	for _, g := range s.grants {
		same := g.at/period == start/period
		if l.Algorithm() == headgate.AlgorithmSlidingLog {
			same = g.at == start
		}
		if same {
			back := min(g.count, n)
			g.count, n = g.count-back, n-back
		}
		next.grants = append(next.grants, g)
	}
	return next
}

// cancelled is the state after n tokens that start at s.at are cancelled at now, before
// they start. The start is given back as well: time moves back as far as the state shows what was
// used, but not past now.
func (s *state) cancelled(l headgate.Limit, now, n int64) state {
	next := s.refunded(l, s.at, n)
	next.since = s.since
	if s.late || s.otherNumbers(l) {
		return next
	}
	next.limit = l
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		next.empty(now)
	case headgate.AlgorithmSteppedTokenBucket:
		next.stepBack(now)
	case headgate.AlgorithmFixedWindow, headgate.AlgorithmSlidingWindow:
		next.at = max(now, windowStart(l, s.at))
	case headgate.AlgorithmSlidingLog:
		next.at = max(now, next.since)
		if last := len(next.grants) - 1; last >= 0 {
			next.at = max(next.at, next.grants[last].at)
		}
	}
	return next
}

// otherNumbers reports whether s is of a bucket with other numbers than l. A token bucket keeps
// only its size.
func (s *state) otherNumbers(l headgate.Limit) bool {
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		_, before := rate(s.limit)
		_, unit := rate(l)
		return s.limit.Capacity()*before != l.Capacity()*unit
	case headgate.AlgorithmSteppedTokenBucket:
		return s.limit != l
	default:
		return false
	}
}

// empty moves a token bucket back along its refill to the moment at which it was empty.
func (s *state) empty(now int64) {
	each, unit := rate(s.limit)
	full := s.limit.Capacity() * unit
	back := min((full-s.used)/each, s.at-now)
	s.at -= back
	s.used = full - lowered(full-s.used, back, each)
}

// stepBack moves a stepped bucket back by whole steps for as long as they are missing in it,
// and the last one is not ahead of now.
func (s *state) stepBack(now int64) {
	if s.used == 0 {
		s.step = s.at
	}
	period := s.limit.Period().Microseconds()
	for steps := (s.limit.Capacity() - s.used) / s.limit.Refill(); steps > 0 && s.step > now; {
		n := min(steps, max((s.step-now)/period, 1))
		s.step, s.used, steps = s.step-n*period, s.used+n*s.limit.Refill(), steps-n
	}
	s.at = max(now, s.step)
}
