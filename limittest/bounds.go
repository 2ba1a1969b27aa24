package limittest

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// neverOver checks every interval of random histories of one limit against the bound of its
// algorithm, in exact fractions. The clock jumps both ways; grants are booked ahead,
// cancelled and refunded. What is forced and does not fit is no grant.
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
// that is half way through a change. What one of them has booked it cancels itself.
func alternating(t *testing.T, s headgate.Store) {
	checkBounds(t, s, [][]string{
		{"api=1000/m", "api=10/m"}, {"api=1000/m", "api=1000/m burst 10"},
		{"api=1000/m burst 500", "api=7/h burst 3"}, {"api=1000000/h", "api=1/d"},
		{"api=3/s", "api=7/s", "api=11/7ms burst 5"}, {"api=1/s burst 5", "api=999983/s burst 5"},
		{"api=1000/m", "api=500/m burst 1000"},
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
	n, books := uint64(len(sets)), books(t, s)
	eachSeed(t, 6*n, func(seed uint64) error {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 3)), store: s, books: books,
			now: epoch.UnixMicro()}
		for _, text := range sets[seed%n] {
			h.limits = append(h.limits, parse(t, text))
		}
		h.mode = mode(seed / n % 3)
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

// mode is what a history gives back. What is cancelled before its start counts as never
// granted, and refunds count below 0 at the time at which they are done. Where both happen, a
// refund may give back what flowed in before the start that was cancelled: then all that was
// refunded may be granted on top.
type mode int

const (
	cancels mode = iota
	refundsOnly
	refundsAndCancels
)

// history is a random history of one key.
type history struct {
	*rand.Rand
	mode    mode
	store   headgate.Store
	books   bool
	key     string
	limits  []headgate.Limit
	now     int64 // of the clock
	booked  []headgate.Request
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
		jump := (h.Int64N(2*20) - 20) * token
		if jump < 0 && h.mode != refundsOnly && l.Refill() > 0 {
			// a cancel may move the time of a bucket back as well: the bound could not follow
			jump = 0
		}
		h.now += jump
	}
	r := headgate.Request{Key: h.key, Limit: l, Start: new(time.Time)}
	r.Cost = 1 + h.Int64N(l.Capacity())
	switch h.IntN(8) {
	case 0, 1:
		if !h.books {
			break
		}
		r.MaxWait = l.Period() * time.Duration(1+h.IntN(3))
	case 2:
		h.giveBack(&r)
	case 3, 4:
		r.Cost = 1
	case 5:
		// A log forgets grants for what is forced, and a refund of that does not bring them back.
		r.Force = h.IntN(3) == 0 &&
			(h.mode == cancels || l.Algorithm() != headgate.AlgorithmSlidingLog)
	}
	r.At = time.UnixMicro(h.now)
	d, err := h.take(t, r)
	if err != nil {
		return err
	}
	return h.record(r, d)
}

// giveBack makes r a refund, or a cancel of the last booking whose start is ahead.
func (h *history) giveBack(r *headgate.Request) {
	last := len(h.booked) - 1
	if last >= 0 && h.booked[last].Start.UnixMicro() > h.now && h.mode != refundsOnly {
		*r = h.booked[last]
		r.Cost, h.booked = -r.Cost, h.booked[:last]
	} else if h.mode != cancels {
		r.Cost = -r.Cost
	}
}

// take puts r to the store; some bookings together with one of another limit, so that they
// start later than they might.
func (h *history) take(t *testing.T, r headgate.Request) (headgate.Decision, error) {
	if r.MaxWait == 0 || r.Cost < 0 || h.IntN(3) > 0 {
		return h.store.Take(t.Context(), r)
	}
	slow := headgate.Per(1, max(r.MaxWait/8, time.Microsecond)).Named("other")
	other := headgate.Request{Key: h.key, Limit: slow, Cost: 1, MaxWait: r.MaxWait, At: r.At}
	ds := make([]headgate.Decision, 2)
	err := h.store.TakeAll(t.Context(), []headgate.Request{r, other}, ds)
	if !ds[1].Within(other.MaxWait) {
		ds[0].RetryAfter = headgate.Never // it was not charged
	}
	return ds[0], err
}

// record adds what was granted, refunded or cancelled to the bound.
func (h *history) record(r headgate.Request, d headgate.Decision) error {
	if !d.Within(r.MaxWait) || r.Cost < 0 && d.RetryAfter == headgate.Never {
		if r.Force { // it is no grant, but the state has its time
			h.bound.moved = max(h.bound.moved, h.now)
		}
		return nil
	}
	if r.Cost < 0 && !r.Start.IsZero() {
		h.bound.cancel(h.now, r.Start.UnixMicro(), -r.Cost)
		h.forget(d)
		return nil
	}
	start := h.now + d.RetryAfter.Microseconds()
	if r.Cost > 0 {
		h.granted++
		if d.RetryAfter > 0 {
			h.booked = append(h.booked, r)
		}
	} else if h.mode == refundsAndCancels {
		h.bound.refund(r.Limit, -r.Cost)
	}
	if err := h.bound.add(event{limit: r.Limit, start: start, cost: r.Cost}); err != nil {
		return fmt.Errorf("%s: %s: %w", show(r), describe(d), err)
	}
	if r.Cost < 0 {
		h.forget(d)
	}
	return nil
}

// forget starts a new bound after a refund that left the initial state, which remembers no time.
func (h *history) forget(d headgate.Decision) {
	if d.ResetAfter == 0 {
		h.bound, h.booked = newBound(h.limits), nil
	}
}

// bound is what limits that alternate on one key may grant together.
type bound struct {
	limits   []headgate.Limit
	events   []event
	latest   int64    // no time passes before that of the last event,
	moved    int64    // nor before that of the last cancel, or of what was forced
	level    *big.Rat // buckets: the most that was granted in any interval up to the last event
	speed    *big.Rat // less what refilled: the fraction of a bucket each microsecond
	capacity *big.Rat // 1, a step's fraction, and what was refunded
	refunded int64
}

// event is a grant, or below 0 a refund.
type event struct {
	limit       headgate.Limit
	start, cost int64
	at          int64 // start, or when time has gone on
}

func newBound(limits []headgate.Limit) *bound {
	b := &bound{limits: limits, level: new(big.Rat), speed: new(big.Rat),
		capacity: big.NewRat(1, 1)}
	step := new(big.Rat)
	for _, l := range limits {
		refill := big.NewRat(l.Refill(), l.Capacity())
		if l.Algorithm() == headgate.AlgorithmSteppedTokenBucket && refill.Cmp(step) > 0 {
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

// refund allows for n tokens more.
func (b *bound) refund(l headgate.Limit, n int64) {
	b.refunded += n
	b.capacity.Add(b.capacity, big.NewRat(n, l.Capacity()))
}

// cancel forgets the last grant of cost at start, as if it had never been made.
func (b *bound) cancel(now, start, cost int64) {
	b.moved = max(b.moved, now)
	for i, e := range slices.Backward(b.events) {
		if e.start == start && e.cost == cost {
			rest := slices.Delete(b.events, i, i+1)
			b.events, b.latest = nil, 0
			b.level.SetInt64(0)
			for _, e := range rest {
				b.append(e)
			}
			return
		}
	}
}

// add records e, and reports what is more than the limits grant.
func (b *bound) add(e event) error {
	e.at = max(e.start, b.latest, b.moved)
	b.append(e)
	if e.limit.Refill() == 0 {
		return b.checkWindow(e.limit)
	}
	if b.level.Cmp(b.capacity) > 0 {
		return fmt.Errorf("over: in some interval %s buckets more than refilled",
			b.level.FloatString(6))
	}
	return nil
}

// append records e. In any interval t, the fractions cost/capacity add up to at most
// 1 + t x max(rate / capacity): so the costs to at most max capacity times that. Over all
// intervals that is a leaky bucket.
func (b *bound) append(e event) {
	passed := big.NewRat(e.at-b.latest, 1)
	b.level.Sub(b.level, passed.Mul(passed, b.speed))
	b.latest = e.at
	b.events = append(b.events, e)
	if b.level.Sign() < 0 {
		b.level.SetInt64(0)
	}
	b.level.Add(b.level, big.NewRat(e.cost, e.limit.Capacity()))
	if b.level.Sign() < 0 {
		b.level.SetInt64(0)
	}
}

// checkWindow adds up the grants of the last window, from each of them on, less what was
// refunded meanwhile.
func (b *bound) checkWindow(l headgate.Limit) error {
	most, sum := b.refunded, int64(0)
	for _, l := range b.limits {
		most = max(most, b.refunded+l.Capacity())
	}
	latest := b.events[len(b.events)-1].at
	period := l.Period().Microseconds()
	since := windowStart(l, latest)
	if l.Algorithm() == headgate.AlgorithmSlidingLog {
		since = latest - period + 1
	}
	for i := len(b.events) - 1; i >= 0 && b.events[i].at >= since; i-- {
		if sum += b.events[i].cost; sum > most {
			return fmt.Errorf("over: %d of %d in the window since %d", sum, most, since)
		}
	}
	return nil
}
