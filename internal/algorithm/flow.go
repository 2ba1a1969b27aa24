package algorithm

import "time"

// Rate returns how many tokens become available in each period, on average.
func (t *Terms) Rate() (n int64, period time.Duration) {
	if t.IsBucket() {
		return t.Refill, t.Every
	}
	return t.Capacity, t.Every
}

// Flow returns the time in which n tokens become available, on average.
func (t *Terms) Flow(n int64) time.Duration {
	each, period := t.Rate()
	micros := float64(max(n, 0)) / float64(each) * float64(period.Microseconds())
	return time.Duration(min(micros, MaxExact)) * time.Microsecond
}

// Least returns the time from the start of n tokens that were denied before it until so many tokens
// more can be granted, at least.
func (t *Terms) Least(n, more int64) time.Duration {
	switch t.Algorithm {
	case TokenBucket:
		return t.Flow(more)
	case Stepped:
		return t.Flow(more - t.Refill)
	case SlidingWindow:
		return t.Flow(n + more - 2*t.Capacity)
	case CalendarWindow: // which is never shorter than nine tenths of the longest
		return t.Flow(n+more-t.Capacity) / 10 * 9
	default:
		return t.Flow(n + more - t.Capacity)
	}
}
