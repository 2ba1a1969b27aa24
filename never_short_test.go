package headgate

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// A patient caller comes back exactly when told to, and gets the whole rate: the
// moment of every grant is the first whole microsecond at which the tokens can
// have arrived, after 10^9 of them as after one.
//
// It takes no more than half of the bucket at a time. One that waits for a full
// bucket loses what arrives in the rest of the microsecond in which it is full,
// because a full bucket holds no more.

func TestPatientCallerOfATokenBucket(t *testing.T) {
	for _, c := range []struct {
		text  string
		total int64 // tokens to take
	}{
		{"3/s burst 1000", 1e9},
		{"7/h burst 1000", 1e9},
		{"1.5/s burst 1000", 1e9},
		{"999983/s burst 1000", 1e9},
		{"999983/999979us burst 1000", 1e9},
		{"86399/d burst 50000", 1e9},
		{"7/11us burst 3000", 1e9},
		{"1000003/ms burst 200000", 1e9},
		{"999999999989/999999999961us burst 4000", 1e9},
		{"3/s burst 2", 1e6},
		{"7/h burst 2", 1e6},
		{"1/w burst 3", 1e6},
	} {
		l := must(ParseLimit(c.text)).rule
		random := rand.New(rand.NewPCG(1, 1))
		var s algorithm.State
		var taken, shifted int64 // tokens; microseconds that this timeline was moved back by
		start := int64(1e6)
		for now := start; taken < c.total; {
			cost := 1 + random.Int64N(l.Capacity/2)
			next, v := l.Decide(s, now, cost, algorithm.Grants)
			if !v.Granted() {
				now += v.Retry
				if next, v = l.Decide(s, now, cost, algorithm.Grants); !v.Granted() {
					t.Fatalf("%s: refused again after %d tokens", c.text, taken)
				}
			}
			s, taken = next, taken+cost
			if want := arrival(taken-l.Capacity, l.Every.Microseconds(),
				l.Refill); now-start+shifted != want {
				t.Fatalf("%s: %d tokens after %dµs, and they arrived after %dµs", c.text, taken,
					now-start+shifted, want)
			}
			if now > maxExact/2 { // a bucket knows only how long ago
				back := now - start
				now, s.At, shifted = now-back, s.At-back, shifted+back
			}
		}
	}
}

// arrival is when n tokens have arrived: n x period / refill, rounded up.
func arrival(n, period, refill int64) int64 {
	if n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(period))
	lo, carry := bits.Add64(lo, uint64(refill-1), 0)
	quotient, _ := bits.Div64(hi+carry, lo, uint64(refill))
	return int64(quotient)
}

// A sliding window approximates: a patient caller gets all but one of n, because
// the last would fit only at the very end of each window; and one that takes all
// at once gets every other window.
func TestPatientCallerOfASlidingWindow(t *testing.T) {
	for _, c := range []struct{ n, cost, least int64 }{
		{10, 1, 9_000},
		{1000, 1, 999_000},
		{1000, 1000, 500_000},
		{7, 1, 6_000},
	} {
		l := SlidingWindow(c.n, time.Second).rule
		s := &reference{limit: l}
		const windows = 1000
		start := int64(12e6)
		var taken int64
		for now := start; now < start+windows*l.Every.Microseconds(); {
			v := s.take(l, now, c.cost)
			if v.Granted() {
				taken += c.cost
				continue
			}
			now += v.Retry
		}
		if most := c.n * (windows + 1); taken < c.least || taken > most {
			t.Errorf("%s: %d tokens, %d at a time, in %d windows", l.ID, taken, c.cost, windows)
		}
	}
}
