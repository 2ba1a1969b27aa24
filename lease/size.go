package lease

import (
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// plan is how much of a limit is prefetched, and for how long. The zero plan prefetches nothing.
type plan struct {
	max    int64 // tokens of one prefetch
	ttl    time.Duration
	inflow int64 // the most tokens that flow into a bucket within ttl; 0 for a window
	drain  headgate.Limit
}

func (s *Store) plan(l headgate.Limit) plan {
	p := plan{max: int64(s.fraction * float64(l.Capacity()))}
	p.ttl = min(s.ttl, refillTime(l, p.max)).Truncate(time.Microsecond)
	if p.max < hotTakes || p.ttl < s.ttl/8 {
		return plan{}
	}
	if !window(l) {
		p.inflow = inflow(l, p.ttl)
		p.drain = drainLimit(l, p.inflow)
	}
	return p
}

// window reports whether tokens of l that are prefetched are forgotten at a time that is known.
func window(l headgate.Limit) bool {
	a := l.Algorithm()
	return a == headgate.AlgorithmFixedWindow || a == headgate.AlgorithmCalendarWindow
}

// drainLimit returns the limit of what all processes drain from buckets of l: n tokens, and what
// flows in. Without it, many that find a full bucket at the same moment would empty it.
func drainLimit(l headgate.Limit, n int64) headgate.Limit {
	id := fnv.New64a() // a hash, because the name of l may be too long for a prefix
	_, _ = id.Write([]byte(l.ID()))
	return l.Burst(n).Named("lease-drain-" + strconv.FormatUint(id.Sum64(), 16))
}

// refillTime returns in what time no more than n tokens flow in. A window counts as a refill of
// its capacity.
func refillTime(l headgate.Limit, n int64) time.Duration {
	refill, period := l.Rate()
	if l.Algorithm() == headgate.AlgorithmSteppedTokenBucket { // one step more may come
		if n -= n % refill; n == 0 {
			return 0
		}
	}
	d := float64(n) / float64(refill) * float64(period)
	return time.Duration(min(d, float64(maxTTL))) - time.Microsecond
}

// inflow returns how many tokens flow into a bucket within d, and one more at most: what remains in
// a bucket is rounded down.
func inflow(l headgate.Limit, d time.Duration) int64 {
	if l.Algorithm() == headgate.AlgorithmSteppedTokenBucket {
		return min(int64(d/l.Period())+1, l.Capacity()/l.Refill()+1) * l.Refill()
	}
	n := math.Ceil(float64(d) / float64(l.Period()) * float64(l.Refill()))
	return int64(min(n, float64(l.Capacity()))) + 1
}

// usable returns the part of a time for which tokens are used. In the rest, the clocks of store and
// process may have run apart.
func usable(d time.Duration) int64 { return d.Microseconds() / 8 * 7 }

// size returns how many tokens to prefetch for a key that was granted so much within span: half of
// what it will use within a TTL, so that little is lost if it uses less. It returns 0 if that is
// good for fewer than 4 requests.
func (p *plan) size(granted tally, span time.Duration) int64 {
	use := float64(granted.tokens) * float64(p.ttl) / float64(span)
	n := min(int64(use/2), p.max)
	if float64(n)*float64(granted.takes) < 4*float64(granted.tokens) {
		return 0
	}
	return n
}

// batch returns what may be used of n tokens that d granted: so many that at least inflow tokens
// were missing from the bucket before they were taken. The others are lost, and let the bucket
// refill until the batch ends without being fuller than if all tokens had been taken when used.
func (p *plan) batch(n int64, d headgate.Decision, asked int64) batch {
	b := batch{tokens: min(n, p.max), end: asked + usable(p.ttl)}
	if window(d.Limit) {
		b.end = min(b.end, asked+usable(d.ResetAfter))
	} else {
		b.tokens = max(min(b.tokens, d.Limit.Capacity()-d.Remaining-p.inflow), 0)
	}
	b.size = b.tokens
	return b
}
