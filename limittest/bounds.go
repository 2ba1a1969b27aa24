package limittest

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// neverOver checks every interval of random histories of one limit against the bound of its
// algorithm, in exact fractions. The clock jumps both ways; grants are booked ahead,
// cancelled and refunded.
func neverOver(t *testing.T, s headgate.Store) {
	checkBounds(t, s, [][]string{
		{"7/s burst 5"}, {"3/s"}, {"11/7ms burst 40"}, {"1000000/d burst 3"},
		{"7/s burst 5 stepped"}, {"3/2s burst 8 stepped"},
		{"7/s fixed-window"}, {"20/m fixed-window"},
		{"7/s sliding-window"}, {"20/m sliding-window"},
		{"7/s sliding-log"}, {"20/m sliding-log"},
	})
}

// alternating does so while the numbers of a named limit change to and fro, as in a fleet
// that is half way through a change.
func alternating(t *testing.T, s headgate.Store) {
	checkBounds(t, s, [][]string{
		{"api=1000/m", "api=10/m"}, {"api=1000/m", "api=1000/m burst 10"},
		{"api=1000/m burst 500", "api=7/h burst 3"}, {"api=1000000/h", "api=1/d"},
		{"api=3/s", "api=7/s", "api=11/7ms burst 5"}, {"api=1000/m", "api=500/m burst 1000"},
		{"api=1000000/d", "api=999983/s burst 1000", "api=1/s burst 4000000"},
		{"api=1000/m stepped", "api=10/m stepped"}, {"api=10000/d stepped", "api=1/h stepped"},
		{"api=1000/m stepped", "api=1000/m burst 10 stepped", "api=7/s burst 3 stepped"},
		{"api=5/s burst 7 stepped", "api=1/s burst 3 stepped", "api=1/200ms burst 7 stepped"},
		{"api=100/m fixed-window", "api=10/m fixed-window"},
		{"api=100/m sliding-window", "api=10/m sliding-window"},
		{"api=100/m sliding-log", "api=10/m sliding-log", "api=11/m sliding-log"},
	})
}

func checkBounds(t *testing.T, s headgate.Store, sets [][]string) {
	eachSeed(t, 4*uint64(len(sets)), func(seed uint64) error {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 3)), store: s, now: epoch.UnixMicro()}
		for _, text := range sets[seed%uint64(len(sets))] {
			h.limits = append(h.limits, parse(t, text))
		}
		h.key = fmt.Sprint("bounds ", h.limits, seed)
		h.bound = newBound(h.limits)
		for i := range 150 {
			if err := h.step(t); err != nil {
				return fmt.Errorf("%v, request %d: %w", h.limits, i, err)
			}
		}
		if h.granted == 0 {
			return fmt.Errorf("%v: nothing granted: this shows nothing", h.limits)
		}
		return nil
	})
}

// history is a random history of one key.
type history struct {
	*rand.Rand
	store   headgate.Store
	key     string
	limits  []headgate.Limit
	now     int64 // of the clock
	starts  []time.Time
	granted int
	bound   *bound
}

// step takes, books, refunds or cancels something at the next time.
func (h *history) step(t *testing.T) error {
	l := h.limits[h.IntN(len(h.limits))]
	token := l.Period().Microseconds()/max(l.Refill(), l.Capacity()) + 1
	if h.IntN(3) == 0 {
		h.now += h.Int64N(3 * token)
	}
	if h.IntN(30) == 0 {
		h.now += (h.Int64N(2*20) - 20) * token // a jump
	}
	r := headgate.Request{Key: h.key, Limit: l, At: time.UnixMicro(h.now), Start: new(time.Time)}
	r.Cost = 1 + h.Int64N(l.Capacity())
	switch h.IntN(8) {
	case 0:
		r.MaxWait = l.Period() * time.Duration(1+h.IntN(3))
	case 1:
		r.Cost = -r.Cost
		if len(h.starts) > 0 && h.IntN(2) == 0 {
			r.Start = new(h.starts[len(h.starts)-1])
		}
	case 2, 3:
		r.Cost = 1
	}
	d, err := h.store.Take(t.Context(), r)
	if err != nil {
		return err
	}
	return h.record(r, d)
}

// record adds what was granted or refunded to the bound.
func (h *history) record(r headgate.Request, d headgate.Decision) error {
	switch {
	case !d.Within(r.MaxWait):
		return nil
	case r.Cost > 0:
		h.granted++
		if r.MaxWait > 0 {
			h.starts = append(h.starts, *r.Start)
		}
	}
	if err := h.bound.add(r.Limit, h.now+d.RetryAfter.Microseconds(), r.Cost); err != nil {
		return fmt.Errorf("%s: %s: %w", show(r), describe(d), err)
	}
	if r.Cost < 0 && d.ResetAfter == 0 {
		h.bound = newBound(h.limits) // the initial state remembers no time
	}
	return nil
}

// bound is what limits that alternate on one key may grant together.
type bound struct {
	limits   []headgate.Limit
	latest   int64    // no time passes before that of the last grant or refund
	events   []grant  // windows and logs: grants, and refunds below 0
	level    *big.Rat // buckets: the most that was granted in any interval up to latest
	speed    *big.Rat // less what refilled: the fraction of a bucket each microsecond
	capacity *big.Rat // 1, and a step's fraction
}

func newBound(limits []headgate.Limit) *bound {
	b := &bound{limits: limits, level: new(big.Rat), speed: new(big.Rat), capacity: big.NewRat(1, 1)}
	step := new(big.Rat)
	for _, l := range limits {
		refill := big.NewRat(l.Refill(), l.Capacity())
		if l.Algorithm() == headgate.AlgorithmStepped && refill.Cmp(step) > 0 {
			step = refill
		}
		speed := new(big.Rat).Mul(refill, big.NewRat(1, l.Period().Microseconds()))
		if speed.Cmp(b.speed) > 0 {
			b.speed = speed
		}
	}
	if step.Cmp(b.capacity) > 0 {
		step = b.capacity
	}
	b.capacity = new(big.Rat).Add(b.capacity, step)
	return b
}

// add records that cost was granted at the time at, or refunded.
func (b *bound) add(l headgate.Limit, at, cost int64) error {
	passed := max(at-b.latest, 0)
	b.latest = max(b.latest, at)
	if l.Refill() == 0 {
		b.events = append(b.events, grant{b.latest, cost})
		return b.checkWindow(l)
	}
	// In any interval t, the fractions cost/capacity add up to at most 1 + t x max(rate /
	// capacity): so the costs to at most max capacity times that. Over all intervals that is
	// a leaky bucket.
	b.level.Sub(b.level, new(big.Rat).Mul(b.speed, big.NewRat(passed, 1)))
	if b.level.Sign() < 0 {
		b.level.SetInt64(0)
	}
	b.level.Add(b.level, big.NewRat(cost, l.Capacity()))
	if b.level.Sign() < 0 {
		b.level.SetInt64(0)
	}
	if b.level.Cmp(b.capacity) > 0 {
		return fmt.Errorf("over: in some interval %s buckets more than refilled", b.level.FloatString(6))
	}
	return nil
}

// checkWindow adds up the grants of the last window, from each of them on, less what was
// refunded meanwhile.
func (b *bound) checkWindow(l headgate.Limit) error {
	var most, sum int64
	for _, l := range b.limits {
		most = max(most, l.Capacity())
	}
	period := l.Period().Microseconds()
	since := b.latest - b.latest%period
	if l.Algorithm() == headgate.AlgorithmSlidingLog {
		since = b.latest - period + 1
	}
	for i := len(b.events) - 1; i >= 0 && b.events[i].at >= since; i-- {
		if sum += b.events[i].count; sum > most {
			return fmt.Errorf("over: %d of %d in the window since %d", sum, most, since)
		}
	}
	return nil
}
