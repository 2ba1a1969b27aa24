package replay

import (
	"math"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// rounded returns the smallest size, at least size, that can be counted exactly.
func (f family) rounded(size int64) int64 {
	if f.rate > 0 || size <= f.most(size) {
		return size
	}
	best := int64(math.MaxInt64)
	for d := int64(1); d <= f.period/d; d++ {
		if f.period%d == 0 {
			best = min(best, f.roundedTo(size, d), f.roundedTo(size, f.period/d))
		}
	}
	return best
}

// roundedTo returns the smallest multiple of d that is at least size, if it can be counted.
func (f family) roundedTo(size, d int64) int64 {
	n := (size + d - 1) / d * d
	if n > f.most(n) {
		return math.MaxInt64
	}
	return n
}

// most returns the largest bucket, at the rate of size, that can be counted exactly.
func (f family) most(size int64) int64 {
	t := algorithm.Terms{
		Algorithm: algorithm.TokenBucket,
		Refill:    f.refill(size),
		Every:     time.Duration(f.period) * time.Microsecond,
	}
	return t.MaxCapacity()
}
