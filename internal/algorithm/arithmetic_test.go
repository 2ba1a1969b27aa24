package algorithm

import (
	"fmt"
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

// periods are lengths that people use, in microseconds.
var periods = []int64{1, 1e3, 1e6, 60e6, 3600e6, 86400e6, 7 * 86400e6}

// anyLimit is a valid limit, often at the edge of what is accepted.
func anyLimit(random *rand.Rand) *Rule {
	for {
		t := Terms{Algorithm: Name(1 + random.IntN(5)), Capacity: 1,
			Every: time.Duration(upTo(random, MaxExact)) * time.Microsecond}
		if random.IntN(3) > 0 {
			t.Every = time.Duration(periods[random.IntN(len(periods))]*(1+random.Int64N(3))) *
				time.Microsecond
		}
		if t.IsBucket() {
			t.Refill = upTo(random, MaxExact)
		}
		if most := t.MaxCapacity(); most >= 1 {
			t.Capacity = upTo(random, most)
			return NewRule(t, "x")
		}
	}
}

// anyCost is a cost that finds edges: of what remains, of the capacity, of int64.
func anyCost(random *rand.Rand, l *Rule, remaining int64) int64 {
	switch random.IntN(12) {
	case 0:
		return 0
	case 1:
		return []int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64,
			math.MaxInt64 - 1}[random.IntN(4)]
	case 2:
		return l.Capacity + random.Int64N(2)
	case 3:
		return -upTo(random, l.Capacity)
	case 4, 5, 6:
		return remaining + random.Int64N(2)
	default:
		return upTo(random, l.Capacity)
	}
}

// anyWait is a time to the next request that finds edges: of the refill, of the
// window; sometimes it is negative.
func anyWait(random *rand.Rand, l *Rule, v Verdict) int64 {
	jitter := random.Int64N(3) - 1
	switch random.IntN(8) {
	case 0:
		return 0
	case 1:
		return -upTo(random, l.period)
	case 2:
		return max(v.Retry, 0) + jitter
	case 3:
		return v.Reset + jitter
	case 4:
		return upTo(random, MaxExact)
	default:
		return upTo(random, 2*l.period)
	}
}

// walk runs 10,000 random timelines under random limits, and calls check at every step,
// before the request.
func walk(t *testing.T, seed uint64, check func(s *reference, l *Rule, now, cost int64)) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		l := anyLimit(random)
		s := &reference{limit: l}
		now := int64(1)
		switch random.IntN(3) {
		case 0:
			now = int64(1704067200e6)
		case 1:
			now = max(MaxExact-upTo(random, MaxExact), 1)
		}
		v := Verdict{Remaining: l.Capacity}
		for range 30 {
			if now += anyWait(random, l, v); now < 1 || now > MaxExact {
				break
			}
			cost := anyCost(random, l, v.Remaining)
			check(s, l, now, cost)
			if t.Failed() {
				return
			}
			v = s.take(l, now, cost)
		}
	}
}

// reference keeps what a store would.
type reference struct {
	limit *Rule
	k     Account
}

func (s *reference) take(l *Rule, now, cost int64) Verdict {
	k := Account{State: s.k.State, Log: slices.Clone(s.k.Log)}
	next, v, changed := l.Take(k, Order{Now: now, Cost: cost}, true)
	if changed {
		s.k = next
	}
	return v
}

// peek is what would be decided, with nothing charged.
func (s *reference) peek(l *Rule, now, cost int64) Verdict {
	_, v, _ := l.Take(s.k, Order{Now: now, Cost: cost}, false)
	return v
}

// After RetryAfter a denied request is granted, and a microsecond earlier it is not. After
// ResetAfter the state is the initial one, and a microsecond earlier it is not. Both are measured
// from the time of the request, which may lie before the state's own.
func TestRetryAfterAndResetAfterAreExact(t *testing.T) {
	var retries, resets, skewed [6]int
	walk(t, 1, func(s *reference, l *Rule, now, cost int64) {
		a := l.Algorithm
		v := s.peek(l, now, cost)
		if now < s.k.At {
			skewed[a]++
		}
		switch {
		case v.Granted():
			if v.Retry != 0 {
				t.Errorf("%s: a grant has a retry after %d", text(l), v.Retry)
			}
		case v.Retry == Never:
			if max(cost, 1) <= l.Capacity {
				t.Errorf("%s: %d never fits", text(l), cost)
			}
		case now+v.Retry <= MaxExact:
			retries[a]++
			if !s.peek(l, now+v.Retry, cost).Granted() {
				t.Errorf("%s: %d at %d (%+v) is refused again %d later", text(l), cost, now,
					s.k.State, v.Retry)
			}
			if s.peek(l, now+v.Retry-1, cost).Granted() {
				t.Errorf("%s: %d at %d (%+v) is granted before %d have passed", text(l), cost,
					now, s.k.State, v.Retry)
			}
		}
		if v.Reset == 0 || now+v.Reset > MaxExact {
			return
		}
		resets[a]++
		if at := s.peek(l, now+v.Reset, 0); at.Reset != 0 || at.Remaining != l.Capacity {
			t.Errorf("%s: at %d (%+v) %d later it is %+v", text(l), now, s.k.State, v.Reset, at)
		}
		if at := s.peek(l, now+v.Reset-1, 0); at.Reset != 1 {
			t.Errorf("%s: at %d (%+v) it is reset before %d have passed", text(l), now,
				s.k.State, v.Reset)
		}
	})
	for a := TokenBucket; a <= SlidingLog; a++ {
		if retries[a] < 100 || resets[a] < 100 || (skewed[a] < 100 && a != SlidingLog) {
			t.Errorf(
				"%v: only %d retries, %d resets, %d requests from before: this shows little",
				a, retries[a], resets[a], skewed[a])
		}
	}
}

// Remaining is the largest cost that would be granted, whatever the state.
func TestRemainingIsTheLargestCostGranted(t *testing.T) {
	walk(t, 2, func(s *reference, l *Rule, now, cost int64) {
		v := s.peek(l, now, cost)
		left := v.Remaining
		if left < 0 || left > l.Capacity {
			t.Errorf("%s: remaining %d", text(l), left)
		}
		if left > 0 && !s.peek(l, now, left).Granted() {
			t.Errorf("%s: remaining %d of (%+v) is refused at %d", text(l), left, s.k.State, now)
		}
		if s.peek(l, now, left+1).Granted() {
			t.Errorf("%s: one more than the remaining %d of (%+v) is granted at %d", text(l),
				left, s.k.State, now)
		}
		if want := cost < 0 || max(cost, 1) <= left; v.Granted() != want {
			t.Errorf("%s: %d of %d is allowed: %v", text(l), cost, left, v.Granted())
		}
	})
}

// Every product and sum that an algorithm decides by, computed again without a
// bound, stays within 2^53, so that the doubles of Lua hold it exactly.
func TestNoIntermediatePasses53Bits(t *testing.T) {
	largest := new(big.Int)
	walk(t, 4, func(s *reference, l *Rule, now, cost int64) {
		for i, n := range intermediates(l, s.k.State, now, cost) {
			if n.CmpAbs(big.NewInt(MaxExact)) > 0 {
				t.Errorf("%s: intermediate %d of %d at %d (%+v) is %v", text(l), i, cost, now,
					s.k.State, n)
			}
			if n.CmpAbs(largest) > 0 {
				largest = n
			}
		}
	})
	if largest.BitLen() < 53 {
		t.Errorf("the largest was %v: this shows little", largest)
	}
}

func intermediates(l *Rule, s State, now, cost int64) []*big.Int {
	of := big.NewInt
	product := func(a, b int64) *big.Int { return new(big.Int).Mul(of(a), of(b)) }
	sum := func(a *big.Int, b int64) *big.Int { return new(big.Int).Add(a, of(b)) }
	now = max(now, s.At)
	ask := l.ask(cost)
	if ask > l.Capacity || ask < 0 && !l.IsBucket() {
		return nil
	}
	switch l.Algorithm {
	case TokenBucket:
		all := []*big.Int{of(s.Used), product(l.Capacity, l.Unit), product(ask, l.Unit),
			sum(product(ask, l.Unit), s.Used)}
		if elapsed := now - s.At; elapsed < l.repay {
			all = append(all, product(elapsed, l.Rate))
		}
		return all
	case Stepped:
		most := (max(s.Used+ask-l.Capacity, s.Used, 0) + l.Refill - 1) / l.Refill
		all := []*big.Int{of(s.Used), product(most, l.period), of(s.Step)}
		if steps := (now - s.Step) / l.period; steps < (l.Capacity+l.Refill-1)/l.Refill {
			all = append(all, product(steps, l.Refill), product(steps, l.period))
		}
		return all
	case FixedWindow:
		return []*big.Int{of(s.Used), of(ask), of(l.Capacity - s.Used)}
	case SlidingWindow:
		return []*big.Int{
			product(s.Previous, l.period), product(s.Used, l.period),
			product(l.Capacity-ask, l.period), sum(product(s.Previous, l.period), l.period),
		}
	default:
		return []*big.Int{of(ask)}
	}
}

// A state that is counted by other numbers is one that they allow, and the fraction of a
// bucket that is used is never less than it was.
func TestAdoptKeepsTheUsedFraction(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 0))
	walk(t, 6, func(s *reference, l *Rule, _, _ int64) {
		if !l.IsBucket() {
			return
		}
		next := anyLimit(random)
		for next.Algorithm != l.Algorithm {
			next = anyLimit(random)
		}
		adopted, _ := next.Adopt(l, s.k.State)
		if adopted.Used < 0 || adopted.Used > next.full || adopted.At != s.k.At {
			t.Errorf("%s (%+v) as %s: %+v", text(l), s.k.State, text(next), adopted)
		}
		was := new(big.Rat).SetFrac64(s.k.Used, l.full)
		if is := new(big.Rat).SetFrac64(adopted.Used, next.full); is.Cmp(was) < 0 {
			t.Errorf("%s (%+v) as %s: %v of it is used, then %v", text(l), s.k.State, text(next),
				was, is)
		}
		if again, _ := next.Adopt(next, adopted); again != adopted {
			t.Errorf("%s: %+v adopted by its own limit is %+v", text(next), adopted, again)
		}
	})
}

func text(l *Rule) string { return fmt.Sprintf("%+v", l.Terms) }

// scale is never below the exact fraction, nor more than 2 above it rounded up.
func TestScale(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 0))
	check := func(part, from, to int64) {
		t.Helper()
		got := scale(part, from, to, MaxExact/2)
		hi, lo := bits.Mul64(uint64(part), uint64(to))
		floor, rest := bits.Div64(hi, lo, uint64(from))
		least := int64(floor)
		if rest > 0 {
			least++
		}
		if got < least || got > to || got > least+2 {
			t.Errorf("scale(%d, %d, %d) is %d; exact is %d and %d/%d", part, from, to, got,
				floor, rest, from)
		}
	}
	for range 1_000_000 {
		from := upTo(random, MaxExact/2)
		check(random.Int64N(from+1), from, upTo(random, MaxExact/2))
	}
	edges := []int64{1, 2, 3, 5, 1e6, 3600e6, 1<<51 - 1, 1 << 51, 1<<51 + 1, MaxExact / 3,
		MaxExact/2 - 2, MaxExact/2 - 1, MaxExact / 2}
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
