package limittest

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// The model passes the suite: what the vectors and the invariants say is what it does.
func TestModel(t *testing.T) {
	open := func(*testing.T) headgate.Store { return newModel() }
	Vectors(t, open(t))
	for _, checks := range [][]check{invariants, bookings, lateRefunds, forces, headrooms, changes, lessons} {
		runAll(t, open, checks)
	}
}

// The model agrees with a simulation in which time passes microsecond by microsecond.
func TestModelAgreesWithTicks(t *testing.T) {
	for seed := range uint64(60) {
		for _, text := range []string{
			"3/7us burst 2", "3/7us burst 5", "5/2us burst 9", "1/4us burst 3",
			"2/7us burst 5 stepped", "3/4us stepped", "9/5us burst 4 stepped",
			"4/9us fixed-window", "4/9us sliding-window", "7/5us sliding-window", "4/9us sliding-log",
		} {
			if err := tickThrough(t, parse(t, text), rand.New(rand.NewPCG(seed, 4))); err != nil {
				t.Fatalf("%s, seed %d: %v", text, seed, err)
			}
		}
	}
}

func tickThrough(t *testing.T, l headgate.Limit, random *rand.Rand) error {
	m, s := newModel(), newTicks(l, epoch.UnixMicro())
	now := s.now
	for i := range 60 {
		now += random.Int64N(3*random.Int64N(4)/2 + 1)
		r := headgate.Request{Key: "k", Limit: l, Cost: random.Int64N(l.Capacity()+3) - 1, At: time.UnixMicro(now)}
		if random.IntN(2) == 0 {
			r.MaxWait = time.Duration(random.IntN(20)) * time.Microsecond
		}
		got := take(t, m, r)
		if want := s.take(now, r); got != want {
			return fmt.Errorf("request %d, %s:\n model %s\n ticks %s", i, show(r), describe(got), describe(want))
		}
	}
	return nil
}

// ticks is a key at one moment. A moment that was booked lies ahead of the clock.
type ticks struct {
	limit  headgate.Limit
	period int64
	now    int64
	level  int64 // buckets: tokens times period
	age    int64 // stepped: ticks since the first grant
	log    []grant
}

func newTicks(l headgate.Limit, now int64) ticks {
	period := l.Period().Microseconds()
	return ticks{limit: l, period: period, now: now, level: l.Capacity() * period}
}

// tick lets a microsecond pass.
func (s *ticks) tick() {
	s.now++
	s.age++
	switch {
	case s.limit.Algorithm() == headgate.AlgorithmTokenBucket:
		s.level += s.limit.Refill()
	case s.limit.Algorithm() == headgate.AlgorithmSteppedTokenBucket && s.age%s.period == 0:
		s.level += s.limit.Refill() * s.period
	}
	s.level = min(s.level, s.limit.Capacity()*s.period)
}

// fits reports whether cost fits at this moment.
func (s *ticks) fits(cost int64) bool {
	total, window := cost*s.period, s.now/s.period
	for _, g := range s.log {
		switch s.limit.Algorithm() {
		case headgate.AlgorithmFixedWindow:
			if g.at/s.period == window {
				total += g.count * s.period
			}
		case headgate.AlgorithmSlidingWindow:
			switch g.at / s.period {
			case window:
				total += g.count * s.period
			case window - 1:
				total += g.count * (s.period - s.now%s.period)
			}
		default:
			if s.now-g.at < s.period {
				total += g.count * s.period
			}
		}
	}
	return total <= s.level
}

// initial reports whether all fits, now and later.
func (s *ticks) initial() bool {
	later := *s
	for range s.period {
		if !later.fits(s.limit.Capacity()) {
			return false
		}
		later.tick()
	}
	return true
}

// until counts the ticks from now on, by the clock, until ok.
func (s *ticks) until(now int64, ok func(*ticks) bool) time.Duration {
	later := *s
	for !ok(&later) {
		later.tick()
	}
	return time.Duration(later.now-now) * time.Microsecond
}

func (s *ticks) take(now int64, r headgate.Request) headgate.Decision {
	for s.now < now {
		s.tick()
	}
	d := headgate.Decision{Limit: r.Limit}
	switch {
	case r.Cost > r.Limit.Capacity():
		d.RetryAfter = headgate.Never
	case r.Cost >= 0:
		d.RetryAfter = s.until(now, func(s *ticks) bool { return s.fits(max(r.Cost, 1)) })
		if d.RetryAfter <= r.MaxWait {
			s.charge(now+d.RetryAfter.Microseconds(), r.Cost)
		}
	default:
		s.refund(-r.Cost)
	}
	for s.now == now && s.fits(d.Remaining+1) {
		d.Remaining++
	}
	d.ResetAfter = s.until(now, (*ticks).initial)
	return d
}

func (s *ticks) charge(start, cost int64) {
	if cost == 0 {
		return
	}
	for s.now < start {
		s.tick()
	}
	if s.level == s.limit.Capacity()*s.period {
		s.age = 0
	}
	if s.limit.Refill() == 0 {
		s.log = append(s.log, grant{s.now, cost})
		return
	}
	s.level -= cost * s.period
}

func (s *ticks) refund(n int64) {
	if s.limit.Refill() > 0 {
		s.level = min(s.level+n*s.period, s.limit.Capacity()*s.period)
		return
	}
	for i := len(s.log) - 1; i >= 0; i-- {
		back := min(s.log[i].count, n)
		s.log[i].count -= back
		n -= back
	}
}

// A change of numbers forgets nothing that is used, and adds little to it.
func TestScaledRoundsUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	for range 100_000 {
		from := 1 + random.Int64N(1<<(1+random.IntN(51)))
		to := 1 + random.Int64N(1<<(1+random.IntN(51)))
		used := 1 + random.Int64N(from)
		got := scaled(used, from, to, to)
		if used != from && !fractionBetween(got, used, from, to) || used == from && got != to {
			t.Fatalf("%d of %d is %d of %d", used, from, got, to)
		}
	}
}

// fractionBetween reports whether got/to is at least used/from, and at most 3/to more.
func fractionBetween(got, used, from, to int64) bool {
	exact := big.NewRat(used, from)
	exact.Mul(exact, big.NewRat(to, 1))
	more := new(big.Rat).Sub(big.NewRat(got, 1), exact)
	return more.Sign() >= 0 && more.Cmp(big.NewRat(3, 1)) <= 0
}
