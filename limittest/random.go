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
	headgate.AlgorithmStepped,
	headgate.AlgorithmFixedWindow,
	headgate.AlgorithmSlidingWindow,
	headgate.AlgorithmSlidingLog,
}

// sequence is a source of random requests for one key: a clock that mostly goes
// on, sometimes far or back, and costs from giving back to beyond capacity.
type sequence struct {
	*rand.Rand
	key    string
	limit  headgate.Limit
	micros int64
}

func newSequence(a headgate.Algorithm, seed uint64) *sequence {
	r := rand.New(rand.NewPCG(seed, uint64(a)))
	return &sequence{
		Rand:   r,
		key:    fmt.Sprintf("random {%s} %d", a, seed),
		limit:  randomLimit(r, a),
		micros: epoch.UnixMicro() + r.Int64N(int64(48*time.Hour/time.Microsecond)),
	}
}

// randomLimit is a valid limit of a, often an odd one.
func randomLimit(r *rand.Rand, a headgate.Algorithm) headgate.Limit {
	for {
		capacity, refill := randomCount(r), randomCount(r)
		every := time.Duration(randomMicros(r)) * time.Microsecond
		var l headgate.Limit
		switch a {
		case headgate.AlgorithmTokenBucket:
			l = headgate.Per(refill, every).Burst(capacity)
		case headgate.AlgorithmStepped:
			l = headgate.SteppedTokenBucket(refill, every).Burst(capacity)
		case headgate.AlgorithmFixedWindow:
			l = headgate.FixedWindow(capacity, every)
		case headgate.AlgorithmSlidingWindow:
			l = headgate.SlidingWindow(capacity, every)
		default:
			l = headgate.SlidingLog(capacity, every)
		}
		if l.Validate() == nil {
			return l
		}
	}
}

func randomCount(r *rand.Rand) int64 {
	switch r.IntN(10) {
	case 0:
		return 1
	case 1:
		return 1 + r.Int64N(1<<r.IntN(40))
	default:
		return 1 + r.Int64N(20)
	}
}

func randomMicros(r *rand.Rand) int64 {
	round := []int64{1, 1000, 250_000, 1_000_000, 10_000_000, 60_000_000, 900_000_000, 3_600_000_000, 86_400_000_000}
	if r.IntN(2) == 0 {
		return round[r.IntN(len(round))]
	}
	return 1 + r.Int64N(1<<(1+r.IntN(36)))
}

// next is the next request. Its time moves by about what a few tokens take.
func (s *sequence) next() headgate.Request {
	s.micros = max(s.micros+s.step(), epoch.UnixMicro()-int64(time.Hour/time.Microsecond))
	return headgate.Request{Key: s.key, Limit: s.limit, Cost: s.cost(), At: time.UnixMicro(s.micros)}
}

func (s *sequence) step() int64 {
	period := s.limit.Period().Microseconds()
	switch s.IntN(20) {
	case 0:
		return 0
	case 1:
		return -s.Int64N(period + 1) // the clock steps back
	case 2:
		return 3 * s.Int64N(period+1)
	case 3:
		return period - s.micros%period // to the edge of the next window
	case 4:
		return period - s.micros%period - 1
	default:
		return s.Int64N(period/s.limit.Capacity() + 2)
	}
}

func (s *sequence) cost() int64 {
	capacity := s.limit.Capacity()
	switch s.IntN(24) {
	case 0:
		return capacity
	case 1:
		return capacity + 1
	case 2:
		return -1
	case 3:
		return -1 - s.Int64N(capacity)
	case 4, 5:
		return 0
	case 6:
		return []int64{math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 1<<53 + 1, -1 << 53, math.MaxInt32}[s.IntN(6)]
	case 7, 8, 9, 10:
		return 1 + s.Int64N(capacity)
	default:
		return 1
	}
}
