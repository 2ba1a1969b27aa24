package limittest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate"
)

var algorithms = []headgate.Algorithm{
	headgate.AlgorithmTokenBucket,
	headgate.AlgorithmSteppedTokenBucket,
	headgate.AlgorithmFixedWindow,
	headgate.AlgorithmSlidingWindow,
	headgate.AlgorithmSlidingLog,
	headgate.AlgorithmCalendarWindow,
}

// sequence makes random requests for one key. Its clock mostly goes on, and sometimes jumps
// far ahead or back; costs go from refunds to more than the capacity.
type sequence struct {
	*rand.Rand
	key    string
	limits []headgate.Limit // numbers of one named limit
	limit  headgate.Limit
	books  bool // takes may book ahead
	micros int64
	latest int64              // calendars: the latest micros
	booked []headgate.Request // the grants that have a start time
}

func newSequence(a headgate.Algorithm, seed uint64, books bool) *sequence {
	r := rand.New(rand.NewPCG(seed, uint64(a)))
	s := &sequence{
		Rand:   r,
		books:  books,
		key:    fmt.Sprintf("random {%s} %d", a, seed),
		micros: epoch.UnixMicro() + r.Int64N(int64(48*time.Hour/time.Microsecond)),
	}
	for range 4 {
		s.limits = append(s.limits, randomLimit(r, a).Named("random"))
	}
	// One differs in its capacity alone, as most changes do.
	s.limits[1] = resized(s.limits[0], s.limits[1].Capacity())
	for i, l := range s.limits[2:] { // so that no start is ahead of all bounds of another zone
		if a == headgate.AlgorithmCalendarWindow && l.ID() == s.limits[0].ID() {
			s.limits[2+i] = resized(s.limits[0], l.Capacity())
		}
	}
	if a == headgate.AlgorithmCalendarWindow && s.limits[2].ID() == s.limits[3].ID() {
		s.limits[3] = resized(s.limits[2], s.limits[3].Capacity())
	}
	s.limit = s.limits[0]
	return s
}

// randomLimit is a valid limit of a, often an odd one.
func randomLimit(r *rand.Rand, a headgate.Algorithm) headgate.Limit {
	if a == headgate.AlgorithmCalendarWindow {
		return randomCalendar(r)
	}
	for {
		period := time.Duration(randomMicros(r)) * time.Microsecond
		if l := newLimit(a, randomCount(r), randomCount(r), period); l.Validate() == nil {
			return l
		}
	}
}

func newLimit(a headgate.Algorithm, capacity, refill int64, period time.Duration) headgate.Limit {
	switch a {
	case headgate.AlgorithmTokenBucket:
		return headgate.Per(refill, period).Burst(capacity)
	case headgate.AlgorithmSteppedTokenBucket:
		return headgate.SteppedTokenBucket(refill, period).Burst(capacity)
	case headgate.AlgorithmFixedWindow:
		return headgate.FixedWindow(capacity, period)
	case headgate.AlgorithmSlidingWindow:
		return headgate.SlidingWindow(capacity, period)
	default:
		return headgate.SlidingLog(capacity, period)
	}
}

// resized is l with another capacity, or l if that would not be valid.
func resized(l headgate.Limit, capacity int64) headgate.Limit {
	if l.Algorithm() == headgate.AlgorithmCalendarWindow {
		return withCapacity(l, capacity).Named(l.Name())
	}
	other := newLimit(l.Algorithm(), capacity, l.Refill(), l.Period())
	if other.Validate() != nil {
		return l
	}
	return other.Named(l.Name())
}

func randomCount(r *rand.Rand) int64 {
	switch r.IntN(10) {
	case 0:
		return 1
	case 1:
		return 1 + r.Int64N(1<<r.IntN(53))
	default:
		return 1 + r.Int64N(20)
	}
}

func randomMicros(r *rand.Rand) int64 {
	round := []int64{1, 1000, 250_000, 1e6, 10e6, 60e6, 900e6, 3600e6, 86400e6}
	if r.IntN(2) == 0 {
		return round[r.IntN(len(round))]
	}
	return 1 + r.Int64N(1<<(1+r.IntN(36)))
}

// next makes the next group of requests. The time moves by about the time of a few tokens.
func (s *sequence) next() []headgate.Request {
	s.micros = max(s.micros+s.step(), epoch.UnixMicro()-int64(time.Hour/time.Microsecond))
	if s.limit.Algorithm() == headgate.AlgorithmCalendarWindow {
		s.stayInWindow()
	}
	if s.IntN(20) == 0 {
		s.limit = s.limits[s.IntN(len(s.limits))]
	}
	rs := []headgate.Request{s.request(s.key, s.limit)}
	switch s.IntN(20) {
	case 0:
		rs = append(rs, s.request(s.key, headgate.PerSecond(3).Named("sibling")))
	case 1:
		rs = append(rs, s.request(s.key, headgate.PerSecond(3).Named("sibling")),
			s.request(s.key, headgate.SlidingLog(40, time.Minute)))
	}
	return rs
}

// stayInWindow keeps the clock from stepping back over a boundary, because Redis knows only the
// next two, and in the years of the almanacs.
func (s *sequence) stayInWindow() {
	s.micros = min(s.micros, time.Date(lastYear-6, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	s.latest = max(s.latest, s.micros)
	for _, l := range s.limits {
		s.micros = max(s.micros, windowStart(l, s.latest))
	}
}

func (s *sequence) request(key string, l headgate.Limit) headgate.Request {
	r := headgate.Request{Key: key, Limit: l, Cost: s.cost(l.Capacity()),
		At: time.UnixMicro(s.micros)}
	if s.IntN(5) == 0 {
		r.Force = true
	} else if s.IntN(3) == 0 && s.books {
		r.MaxWait = []time.Duration{time.Microsecond, l.Period(), 10 * l.Period(),
			1 << 55}[s.IntN(4)]
	}
	switch s.IntN(8) {
	case 0:
		s.cancel(&r)
	case 1, 2, 3, 4:
		if s.books {
			r.Start = new(time.Time)
		}
	}
	if r.Cost >= 0 && !r.Force && r.MaxWait == 0 && s.IntN(3) == 0 {
		r.Headroom = s.headroom(l.Capacity())
	}
	return r
}

func (s *sequence) headroom(capacity int64) int64 {
	switch s.IntN(8) {
	case 0:
		return []int64{capacity, math.MaxInt64, 1<<53 - 1, 1 << 53}[s.IntN(4)]
	case 1, 2:
		return 1
	default:
		return s.Int64N(capacity)
	}
}

// cancel makes r a cancel of a late grant of the same name, under the numbers that it was
// booked with: mostly of the last one, and of all of it.
func (s *sequence) cancel(r *headgate.Request) {
	late := 0
	if s.IntN(3) == 0 {
		late = s.IntN(3)
	}
	for i := len(s.booked) - 1; i >= 0; i-- {
		b := &s.booked[i]
		if b.Limit.Name() != r.Limit.Name() {
			continue
		}
		if late--; late >= 0 {
			continue
		}
		r.Limit, r.Cost, r.Start = b.Limit, -b.Cost, new(*b.Start)
		if s.IntN(8) == 0 {
			r.Cost = -1 - s.Int64N(2*b.Cost)
		}
		s.booked = append(s.booked[:i], s.booked[i+1:]...)
		return
	}
}

func (s *sequence) step() int64 {
	period := s.limit.Period().Microseconds()
	edge := windowBound(s.limit, s.micros, 1) - s.micros
	switch s.IntN(20) {
	case 0:
		return 0
	case 1:
		return -s.Int64N(period + 1) // the clock steps back
	case 2:
		return 3 * s.Int64N(period+1)
	case 3:
		return edge // to the edge of the next window
	case 4:
		return edge - 1
	default:
		return s.Int64N(period/s.limit.Capacity() + 2)
	}
}

func (s *sequence) cost(capacity int64) int64 {
	switch s.IntN(24) {
	case 0:
		return capacity
	case 1:
		return capacity + 1
	case 2, 3:
		return -1
	case 4:
		return -1 - s.Int64N(capacity)
	case 5, 6:
		return 0
	case 7:
		return []int64{math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 1<<53 + 1, -1 << 53,
			math.MaxInt32}[s.IntN(6)]
	case 8, 9, 10, 11:
		return 1 + s.Int64N(capacity)
	default:
		return 1
	}
}
