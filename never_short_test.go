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
// because a full bucket holds no more: see TestPatientCallerOfAFullBucket.

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
			if want := arrival(taken-l.Capacity, l.Every.Microseconds(), l.Refill); now-start+shifted != want {
				t.Fatalf("%s: %d tokens after %dµs, and they arrived after %dµs", c.text, taken, now-start+shifted, want)
			}
			if now > maxExact/2 { // a bucket knows only how long ago
				back := now - start
				now, s.At, shifted = now-back, s.At-back, shifted+back
			}
		}
	}
}

// A caller that waits for a full bucket each time comes once in so many whole
// microseconds, the refill rounded up: with a bucket of one token, that is every caller.
func TestPatientCallerOfAFullBucket(t *testing.T) {
	for text, wait := range map[string]int64{"3/s burst 1": 333_334, "7/h burst 1": 514_285_715, "1/s": 1_000_000, "3/s": 1_000_000, "7/us": 1} {
		l := must(ParseLimit(text)).rule
		var s algorithm.State
		now := int64(1e6)
		s, _ = l.Decide(s, now, l.Capacity, algorithm.Grants)
		for range 1000 {
			_, v := l.Decide(s, now, l.Capacity, algorithm.Grants)
			if v.Retry != wait {
				t.Fatalf("%s: a full bucket after %dµs, want %d", text, v.Retry, wait)
			}
			now += wait
			s, _ = l.Decide(s, now, l.Capacity, algorithm.Grants)
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

func TestPatientCallerOfASteppedTokenBucket(t *testing.T) {
	for _, text := range []string{"3/s burst 1000 stepped", "7/h burst 1000 stepped", "999983/s burst 3000000 stepped", "7/11us burst 500 stepped", "5/s burst 6 stepped"} {
		l := must(ParseLimit(text)).rule
		random := rand.New(rand.NewPCG(2, 2))
		var s algorithm.State
		var taken int64
		start := int64(1e6)
		for now := start; taken < 1e6*l.Refill && now < maxExact/2; {
			cost := 1 + random.Int64N(l.Capacity-l.Refill) // no step finds it nearly full
			next, v := l.Decide(s, now, cost, algorithm.Grants)
			if !v.Granted() {
				now += v.Retry
				if next, v = l.Decide(s, now, cost, algorithm.Grants); !v.Granted() {
					t.Fatalf("%s: refused again after %d tokens", text, taken)
				}
			}
			s, taken = next, taken+cost
			if want := (max(taken-l.Capacity, 0) + l.Refill - 1) / l.Refill * l.Every.Microseconds(); now-start != want {
				t.Fatalf("%s: %d tokens after %dµs, and they arrived after %dµs", text, taken, now-start, want)
			}
		}
	}
}

// Of windows and logs: n grants in each window, one window after the other.
func TestPatientCallerOfAWindow(t *testing.T) {
	for _, l := range []Limit{FixedWindow(7, time.Second), FixedWindow(1, 3*micro), SlidingLog(7, time.Second), SlidingLog(1, 3*micro)} {
		s := &reference{limit: l.rule}
		start := int64(12e6)
		now := start
		for taken := range int64(200_000) {
			v := s.take(l.rule, now, 1)
			if !v.Granted() {
				now += v.Retry
				v = s.take(l.rule, now, 1)
			}
			if want := taken / l.Capacity() * l.Period().Microseconds(); !v.Granted() || now-start != want {
				t.Fatalf("%v: grant %d after %dµs, allowed %v; want it after %dµs", l, taken+1, now-start, v.Granted(), want)
			}
		}
	}
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

// Givers back and impatient callers in between take nothing from the rate.
func TestRefundsAndDenialsCostNothing(t *testing.T) {
	l := must(ParseLimit("7/h burst 50")).rule
	random := rand.New(rand.NewPCG(3, 3))
	var s algorithm.State
	var taken int64
	start := int64(1e6)
	for now := start; taken < 1e6; {
		for range random.IntN(4) { // too much, now
			if _, v := l.Decide(s, now, l.Capacity+1, algorithm.Grants); v.Granted() {
				t.Fatal("more than the capacity was granted")
			}
		}
		cost := 1 + random.Int64N(l.Capacity/2)
		next, v := l.Decide(s, now, cost, algorithm.Grants)
		if !v.Granted() {
			now += v.Retry
			next, _ = l.Decide(s, now, cost, algorithm.Grants)
		}
		if random.IntN(3) == 0 { // taken, and given back at once
			again, _ := l.Decide(next, now, -cost, algorithm.Grants)
			if before, _ := l.Decide(s, now, 0, algorithm.Nothing); again.Used != before.Used {
				t.Fatalf("giving back leaves %d used, and it was %d", again.Used, before.Used)
			}
			next, _ = l.Decide(again, now, cost, algorithm.Grants)
		}
		s, taken = next, taken+cost
		if want := arrival(taken-l.Capacity, l.Every.Microseconds(), l.Refill); now-start != want {
			t.Fatalf("%d tokens after %dµs, and they arrived after %dµs", taken, now-start, want)
		}
	}
}
