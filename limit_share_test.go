package headgate

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

func TestShare(t *testing.T) {
	for _, c := range []struct {
		limit     string
		instances int
		share     string
	}{
		{"100/m burst 20", 4, "25/m burst 5"},
		{"100/m burst 20", 1, "100/m burst 20"},
		{"100/m burst 20", 0, "100/m burst 20"},
		{"10/s", 4, "5/2s burst 2"},
		{"10/s", 20, "1/2s"},
		{"10/s", 30, "1/3s"},
		{"1/h", 7, "1/7h"},
		{"10/s stepped", 4, "2/s stepped"},
		{"10/s burst 3 stepped", 4, "2/s burst 1 stepped"},
		{"3/s stepped", 7, "1/3s stepped"},
		{"10/s fixed-window", 4, "2/s fixed-window"},
		{"3/s fixed-window", 7, "1/3s fixed-window"},
		{"10/s sliding-window", 3, "3/s sliding-window"},
		{"3/s sliding-window", 4, "1/2s sliding-window"},
		{"5/15m sliding-log", 2, "2/15m sliding-log"},
		{"1/15m sliding-log", 4, "1/h sliding-log"},
		{"100003/d burst 52124", 2, "100003/2d burst 26062"},
		// at the edge of what can be counted
		{"100003/d burst 3", 1_000_000, "1/863974080778us"},
		// beyond it: rounded
		{"1/7000w", 1_000_000, "1/4503599627370495us"},
		// the slowest there is
		{"1/d fixed-window", math.MaxInt, "1/9007199254740991us fixed-window"},
		// the longest there is
		{"1/d sliding-window", math.MaxInt, "1/4503599627370495us sliding-window"},
		// the longest that can be weighed
	} {
		l := must(ParseLimit(c.limit))
		s := l.Share(c.instances)
		if err := s.Validate(); err != nil {
			t.Errorf("%s for %d: %v", c.limit, c.instances, err)
		}
		if s.Name() != l.Name() || s.ID() != l.ID() || s.Algorithm() != l.Algorithm() || s == l {
			t.Errorf("%s for %d: name %q, ID %q", c.limit, c.instances, s.Name(), s.ID())
		}
		if s.String() != c.share {
			t.Errorf("%s for %d is %s; want %s", c.limit, c.instances, s, c.share)
		}
	}
}

// A share differs from its limit, keeps its name, and stays a share when it is shared again.
func TestShareIsNoLimitOfItsOwn(t *testing.T) {
	named := PerSecond(8).Burst(8).Named("api")
	s := named.Share(2)
	if s.Name() != "api" || s.ID() != "api" || s.String() != "api=4/s" {
		t.Errorf("the share of %s: %s, ID %q", named, s, s.ID())
	}
	if again := s.Share(2); again != named.Share(2).Share(2) || again.String() != "api=2/s" ||
		again.ID() != "api" {
		t.Errorf("the share of a share: %s, ID %q", again, again.ID())
	}
	if other := s.Named("other"); other != PerSecond(4).Burst(4).Named("other") {
		t.Errorf("a share by another name is %s, ID %q", other, other.ID())
	}
	for _, l := range []Limit{{}, Unlimited(), PerSecond(1).Burst(0)} {
		if s := l.Share(3); s != l {
			t.Errorf("the share of %s is %s", l, s)
		}
	}
	unknown, known := Decision{Limit: named.Share(0)}, Decision{Limit: named.Share(1)}
	if !unknown.Unchecked() || known.Unchecked() {
		t.Error("only the share of an unknown number of instances is unchecked")
	}
	for _, d := range []struct {
		limit Limit
		want  bool
	}{{Limit{}, false}, {Unlimited(), false}, {named, false}, {s, true}, {named.Share(1), true}} {
		if got := (Decision{Limit: d.limit}).Degraded(); got != d.want {
			t.Errorf("a decision by %s: degraded is %t", d.limit, got)
		}
	}
}

// randomShared is a limit of random numbers, small ones and large ones.
func randomShared(r *rand.Rand) Limit {
	for {
		number := func() int64 { return 1 + r.Int64N(1<<r.IntN(53)) }
		every := time.Duration(1+r.Int64N(1<<r.IntN(53))) * time.Microsecond
		l := [...]Limit{
			Per(number(), every).Burst(number()),
			SteppedTokenBucket(number(), every).Burst(number()),
			FixedWindow(number(), every), SlidingWindow(number(), every),
			SlidingLog(number(), every),
		}[r.IntN(5)]
		if l.Validate() == nil {
			return l
		}
	}
}

// rateOf is the tokens that l grants in a microsecond over time.
func rateOf(l Limit) *big.Rat {
	n := l.Refill()
	if n == 0 {
		n = l.Capacity()
	}
	return big.NewRat(n, l.Period().Microseconds())
}

// Whatever the numbers, all shares together hold no more than the limit, or one token each, and no
// more flows into them; and no less than rounding takes.
func TestSharesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 4_000 {
		l, n := randomShared(r), 1+r.IntN(1<<r.IntN(31))
		s := l.Share(n)
		if err := s.Validate(); err != nil {
			t.Fatalf("%s for %d is %s: %v", l, n, s, err)
		}
		many := big.NewInt(int64(n))
		if all := new(big.Int).Mul(big.NewInt(s.Capacity()), many); all.Cmp(
			big.NewInt(max(l.Capacity(), int64(n)))) > 0 {
			t.Fatalf("%s for %d is %s: together they hold %s", l, n, s, all)
		}
		all := new(big.Rat).Mul(rateOf(s), new(big.Rat).SetInt(many))
		slowest := s.Period().Microseconds() >= maxExact/2 // which is documented
		if all.Cmp(rateOf(l)) > 0 && !slowest {
			t.Fatalf("%s for %d is %s: together %s a microsecond", l, n, s, all.FloatString(12))
		}
		least := rateOf(l) // half of it at worst: 2n-1 over n leaves 1 each
		if l.Algorithm() == AlgorithmTokenBucket {
			least.Mul(least, big.NewRat(999, 1000))
		} else {
			least.Mul(least, big.NewRat(1, 2))
		}
		coarse := s.Refill() == 1 && s.Period() < time.Second
		if all.Cmp(least) < 0 && !slowest && !coarse {
			t.Fatalf("%s for %d is %s: together only %s a microsecond", l, n, s,
				all.FloatString(12))
		}
	}
}
