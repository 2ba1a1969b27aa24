package headgate

import (
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// upTo is a number from 1 to most, of any magnitude alike.
func upTo(random *rand.Rand, most int64) int64 {
	n := random.Int64N(most) >> random.IntN(bits.Len64(uint64(most)))
	switch random.IntN(8) {
	case 0:
		return most - min(n, most-1)
	default:
		return n + 1
	}
}

// anyLimit is a valid limit, often at the edge of what is accepted.
func anyLimit(random *rand.Rand) *rule {
	for {
		t := terms{algorithm: Algorithm(1 + random.IntN(5)), capacity: 1, every: time.Duration(upTo(random, maxExact)) * micro}
		if random.IntN(3) > 0 {
			t.every = time.Duration(units[random.IntN(len(units))].micros*(1+random.Int64N(3))) * micro
		}
		if t.isBucket() {
			t.refill = upTo(random, maxExact)
		}
		r := newRule(t)
		if r.fault != nil {
			continue // too long a period for any capacity
		}
		most, _ := r.most()
		if r.capacity = upTo(random, most); r.algorithm == AlgorithmSlidingLog {
			r.capacity = upTo(random, maxLog)
		}
		return newRule(r.terms)
	}
}

// anyCost is a cost that finds edges: of what remains, of the capacity, of int64.
func anyCost(random *rand.Rand, l *rule, remaining int64) int64 {
	switch random.IntN(12) {
	case 0:
		return 0
	case 1:
		return []int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64, math.MaxInt64 - 1}[random.IntN(4)]
	case 2:
		return l.capacity + random.Int64N(2)
	case 3:
		return -upTo(random, l.capacity)
	case 4, 5, 6:
		return remaining + random.Int64N(2)
	default:
		return upTo(random, l.capacity)
	}
}

// anyWait is a time to the next request that finds edges: of the refill, of the
// window; sometimes it is negative.
func anyWait(random *rand.Rand, l *rule, v verdict) int64 {
	jitter := random.Int64N(3) - 1
	switch random.IntN(8) {
	case 0:
		return 0
	case 1:
		return -upTo(random, l.period)
	case 2:
		return max(v.retry, 0) + jitter
	case 3:
		return v.reset + jitter
	case 4:
		return upTo(random, maxExact)
	default:
		return upTo(random, 2*l.period)
	}
}

// walk runs 20,000 random timelines under random limits, and calls check at every step,
// before the request.
func walk(t *testing.T, seed uint64, check func(s *reference, l *rule, now, cost int64)) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		l := anyLimit(random)
		s := &reference{limit: l}
		now := int64(1)
		switch random.IntN(3) {
		case 0:
			now = midnight.UnixMicro()
		case 1:
			now = max(maxExact-upTo(random, maxExact), 1)
		}
		v := verdict{remaining: l.capacity}
		for range 30 {
			if now += anyWait(random, l, v); now < 1 || now > maxExact {
				break
			}
			cost := anyCost(random, l, v.remaining)
			check(s, l, now, cost)
			if t.Failed() {
				return
			}
			v = s.take(l, now, cost)
		}
	}
}

// look is what would be answered, with nothing charged.
func (s *reference) look(l *rule, now, cost int64) verdict {
	if l.algorithm == AlgorithmSlidingLog {
		return slidingLog(l, s.log, now, cost, false)
	}
	_, v := l.decide(s.state, now, cost, false)
	return v
}

// Whoever waits for RetryAfter is granted what was refused, and a microsecond
// earlier is not; at ResetAfter the limit is as at first sight, and a microsecond
// earlier is not. Both are measured from the time of the request, which may lie
// before the state's own.
func TestRetryAfterAndResetAfterAreExact(t *testing.T) {
	var retries, resets, skewed [6]int
	walk(t, 1, func(s *reference, l *rule, now, cost int64) {
		a := l.algorithm
		v := s.look(l, now, cost)
		if now < s.state.at {
			skewed[a]++
		}
		switch {
		case v.granted():
			if v.retry != 0 {
				t.Errorf("%s: a grant has a retry after %d", l.text(), v.retry)
			}
		case v.retry == never:
			if max(cost, 1) <= l.capacity {
				t.Errorf("%s: %d never fits", l.text(), cost)
			}
		case now+v.retry <= maxExact:
			retries[a]++
			if !s.look(l, now+v.retry, cost).granted() {
				t.Errorf("%s: %d at %d (%+v) is refused again %d later", l.text(), cost, now, s.state, v.retry)
			}
			if s.look(l, now+v.retry-1, cost).granted() {
				t.Errorf("%s: %d at %d (%+v) is granted before %d have passed", l.text(), cost, now, s.state, v.retry)
			}
		}
		if v.reset == 0 || now+v.reset > maxExact {
			return
		}
		resets[a]++
		if at := s.look(l, now+v.reset, 0); at.reset != 0 || at.remaining != l.capacity {
			t.Errorf("%s: at %d (%+v) %d later it is %+v", l.text(), now, s.state, v.reset, at)
		}
		if at := s.look(l, now+v.reset-1, 0); at.reset != 1 {
			t.Errorf("%s: at %d (%+v) it is reset before %d have passed", l.text(), now, s.state, v.reset)
		}
	})
	for a := AlgorithmTokenBucket; a <= AlgorithmSlidingLog; a++ {
		if retries[a] < 100 || resets[a] < 100 || (skewed[a] < 100 && a != AlgorithmSlidingLog) {
			t.Errorf("%v: only %d retries, %d resets, %d requests from before: this tells little", a, retries[a], resets[a], skewed[a])
		}
	}
}

// Remaining is the largest cost that would be granted, whatever the state.
func TestRemainingIsTheLargestCostGranted(t *testing.T) {
	walk(t, 2, func(s *reference, l *rule, now, cost int64) {
		v := s.look(l, now, cost)
		left := v.remaining
		if left < 0 || left > l.capacity {
			t.Errorf("%s: remaining %d", l.text(), left)
		}
		if left > 0 && !s.look(l, now, left).granted() {
			t.Errorf("%s: remaining %d of (%+v) is refused at %d", l.text(), left, s.state, now)
		}
		if s.look(l, now, left+1).granted() {
			t.Errorf("%s: one more than the remaining %d of (%+v) is granted at %d", l.text(), left, s.state, now)
		}
		if want := cost < 0 || max(cost, 1) <= left; v.granted() != want {
			t.Errorf("%s: %d of %d is allowed: %v", l.text(), cost, left, v.granted())
		}
	})
}

// What a request would report and what a look reports after it are the same.
func TestDecisionsTellWhatALookWouldTellAfter(t *testing.T) {
	walk(t, 3, func(s *reference, l *rule, now, cost int64) {
		then := reference{limit: l, state: s.state, log: slices.Clone(s.log)}
		v := then.take(l, now, cost)
		after := then.look(l, now, 0)
		if v.remaining != after.remaining || v.reset != after.reset {
			t.Errorf("%s: %d at %d (%+v): %+v, and a look after it: %+v", l.text(), cost, now, s.state, v, after)
		}
		if !v.granted() && (then.state != s.state || !slices.Equal(then.log, s.log)) {
			t.Errorf("%s: a denial changed the state", l.text())
		}
	})
}

// Every product and sum that an algorithm decides by, computed again without a
// bound, stays within 2^53, so that the doubles of Lua hold it exactly.
func TestNoIntermediatePasses53Bits(t *testing.T) {
	largest := new(big.Int)
	walk(t, 4, func(s *reference, l *rule, now, cost int64) {
		for i, n := range intermediates(l, s.state, now, cost) {
			if n.CmpAbs(big.NewInt(maxExact)) > 0 {
				t.Errorf("%s: intermediate %d of %d at %d (%+v) is %v", l.text(), i, cost, now, s.state, n)
			}
			if n.CmpAbs(largest) > 0 {
				largest = n
			}
		}
	})
	if largest.BitLen() < 53 {
		t.Errorf("the largest was %v: this tells little", largest)
	}
}

func intermediates(l *rule, s state, now, cost int64) []*big.Int {
	of := big.NewInt
	product := func(a, b int64) *big.Int { return new(big.Int).Mul(of(a), of(b)) }
	sum := func(a *big.Int, b int64) *big.Int { return new(big.Int).Add(a, of(b)) }
	now = max(now, s.at)
	ask := l.ask(cost)
	if ask > l.capacity {
		return nil
	}
	switch l.algorithm {
	case AlgorithmTokenBucket:
		used := tokenBucketUsed(l, s, now)
		all := []*big.Int{of(s.used), product(l.capacity, l.unit), product(ask, l.unit), sum(product(ask, l.unit), used)}
		if elapsed := now - s.at; elapsed < l.fill {
			all = append(all, product(elapsed, l.rate))
		}
		return all
	case AlgorithmStepped:
		at, used := steppedSince(l, s, now)
		all := []*big.Int{of(s.used), product(ceilDiv(max(used+ask-l.full, used, 0), l.refill), l.period), of(at)}
		if steps := (now - s.at) / l.period; steps < ceilDiv(l.full, l.refill) {
			all = append(all, product(steps, l.refill), product(steps, l.period))
		}
		return all
	case AlgorithmFixedWindow:
		used := fixedWindowUsed(l, s, now)
		return []*big.Int{of(s.used), of(used), of(ask), of(l.capacity - used)}
	case AlgorithmSlidingWindow:
		used, previous := slidingWindowCounts(l, s, now)
		weight := l.period - now%l.period
		return []*big.Int{
			product(previous, weight), product(l.capacity-used-ask, l.period), product(l.capacity-ask, l.period), sum(product(previous, weight), l.period),
		}
	default:
		return []*big.Int{of(ask)}
	}
}

// A state that is carried over to other numbers is one that they allow, and what
// is still consumed is never forgotten, as far as they can hold it.
func TestAdoptedStatesAreStatesOfTheNewLimit(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 0))
	walk(t, 6, func(s *reference, l *rule, now, _ int64) {
		if l.algorithm == AlgorithmSlidingLog {
			return // its entries are the same under any numbers
		}
		next := anyLimit(random)
		for next.algorithm != l.algorithm {
			next = anyLimit(random)
		}
		before := s.look(l, now, 0)
		adopted, _, changed := next.adopt(l, s.state, version{}, now)
		_, after := next.decide(adopted, now, 0, false)
		if after.remaining < 0 || after.remaining > next.capacity {
			t.Errorf("%s as %s (%+v): remaining %d", l.text(), next.text(), adopted, after.remaining)
		}
		consumed := l.capacity - before.remaining
		if l.algorithm == AlgorithmStepped { // tokens whose time has come by the new numbers, but not by the old
			at, _ := steppedSince(l, s.state, max(now, s.state.at))
			consumed -= int64(float64(max(now, at)-at)*float64(l.refill)/float64(l.period)) + 1
		}
		if next.capacity-after.remaining < min(consumed-1, next.capacity) {
			t.Errorf("%s (%+v) as %s (%+v): %d consumed, then %d", l.text(), s.state, next.text(), adopted, consumed, next.capacity-after.remaining)
		}
		if !changed {
			return
		}
		if adopted.used < 0 || adopted.previous < 0 || adopted.at > max(now, s.state.at) {
			t.Errorf("%s (%+v) as %s: %+v", l.text(), s.state, next.text(), adopted)
		}
		if again, _, twice := next.adopt(next, adopted, version{}, now); again != adopted || twice {
			t.Errorf("%s: %+v adopted by its own limit is %+v", next.text(), adopted, again)
		}
	})
}

// scale is never below the exact fraction, nor more than 3 above it rounded up.
func TestScale(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 0))
	check := func(part, from, to int64) {
		t.Helper()
		got := scale(part, from, to)
		hi, lo := bits.Mul64(uint64(part), uint64(to))
		floor, rest := bits.Div64(hi, lo, uint64(from))
		least := int64(floor)
		if rest > 0 {
			least++
		}
		if got < least || got > to || got > least+3 {
			t.Errorf("scale(%d, %d, %d) is %d; exact is %d and %d/%d", part, from, to, got, floor, rest, from)
		}
	}
	for range 1_000_000 {
		from := upTo(random, maxExact)
		check(random.Int64N(from+1), from, upTo(random, maxExact))
	}
	edges := []int64{1, 2, 3, 5, 1e6, 3600e6, 1<<52 - 1, 1 << 52, 1<<52 + 1, maxExact / 3, maxExact - 2, maxExact - 1, maxExact}
	for _, from := range edges {
		for _, to := range edges {
			for _, part := range append(edges, from-1, from/2, from/3) {
				if part >= 0 && part <= from {
					check(part, from, to)
				}
			}
		}
	}
}

func TestCeilDivAndGCD(t *testing.T) {
	for _, c := range []struct{ a, b, quotient, divisor int64 }{
		{0, 1, 0, 1}, {1, 1, 1, 1}, {1, 2, 1, 1}, {2, 2, 1, 2}, {3, 2, 2, 1}, {100, 60e6, 1, 100}, {maxExact, 1, maxExact, 1}, {maxExact, maxExact, 1, maxExact}, {maxExact - 1, maxExact, 1, 1},
	} {
		if q, g := ceilDiv(c.a, c.b), gcd(c.a, c.b); q != c.quotient || g != c.divisor {
			t.Errorf("%d and %d: rounded up %d, common divisor %d", c.a, c.b, q, g)
		}
	}
}

// Waits past 285 years are shown as that, and never as a negative one.
func TestLongWaits(t *testing.T) {
	longest := time.Duration(maxExact) * micro
	for micros, want := range map[int64]time.Duration{0: 0, 1: micro, maxExact: longest, maxExact + 1: longest, math.MaxInt64: longest} {
		if got := duration(micros); got != want {
			t.Errorf("%d microseconds are %v, want %v", micros, got, want)
		}
	}
	m := NewMemory(10)
	l := FixedWindow(1, longest)
	d := must(m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: 1, At: time.UnixMicro(maxExact - 1e6)}))
	if !d.Allowed() || d.ResetAfter != time.Second {
		t.Errorf("the last second of the longest window: %+v", d)
	}
	d = must(m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: 1, At: time.UnixMicro(1)}))
	if d.Allowed() || d.RetryAfter != longest-micro {
		t.Errorf("from its first microsecond: %+v", d)
	}
}

// Costs at the ends of int64 are costs like others: nothing wraps around.
func TestCostsAtTheEndsOfInt64(t *testing.T) {
	for _, l := range everyAlgorithm(5, time.Hour) {
		play(t, NewMemory(10), l, []row{
			{0, math.MaxInt64, false, 5, Never, 0, "all there is"},
			{0, math.MinInt64, true, 5, 0, 0, "given back to a full one"},
			{0, 5, true, 0, 0, reset(l), "the whole of it"},
			{0, math.MaxInt64, false, 0, Never, reset(l), "more"},
			{0, math.MinInt64, true, 5, 0, 0, "everything given back"},
			{0, math.MinInt64 + 1, true, 5, 0, 0, "and again"},
			{0, 6, false, 5, Never, 0, "still no more than it holds"},
		})
	}
}

// reset is how long l takes from midnight until it is as at first sight, if it
// is exhausted then.
func reset(l Limit) time.Duration {
	if l.Algorithm() == AlgorithmSlidingWindow {
		return 2 * l.Period()
	}
	return l.Period()
}
