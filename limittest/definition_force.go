package limittest

import (
	"math/big"
	"slices"

	"github.com/headgate/headgate"
)

// forced is the state after cost at t, whether or not it fits, as far as it is counted.
func (s *state) forced(l headgate.Limit, t, cost int64) state {
	next := state{limit: l, at: t}
	period, most := l.Period().Microseconds(), mostUsed(l)
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		_, unit := rate(l)
		next.used = raised(s.missing(l, t), cost, unit, most)
	case headgate.AlgorithmSteppedTokenBucket:
		next.used, next.step = s.stepped(l, t)
		next.used = raised(next.used, cost, 1, most)
	case headgate.AlgorithmCalendarWindow:
		next.used = raised(s.counted(l, t), cost, 1, most)
	case headgate.AlgorithmFixedWindow, headgate.AlgorithmSlidingWindow:
		cost = min(cost, most-s.count(t-t%period))
		next.grants = append(append(next.grants, s.grants...), grant{t, cost})
	default:
		used := s.count(t - period + 1)
		most = max(most, used)
		cost = min(cost, most)
		kept := without(reversed(s.grants), s.count(0)-min(used, most-cost)) // the oldest go
		next.grants = append(reversed(kept), grant{t, cost})
	}
	return next
}

// mostUsed is how far forced requests raise what is used: units of a token bucket, and otherwise
// tokens.
func mostUsed(l headgate.Limit) int64 {
	period := l.Period().Microseconds()
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		return 1<<52 - 1
	case headgate.AlgorithmSteppedTokenBucket:
		return max(l.Capacity(), raised(0, (1<<52-1)/period, min(l.Refill(), 1000), 1<<52-1))
	case headgate.AlgorithmFixedWindow, headgate.AlgorithmCalendarWindow:
		return 1<<53 - 1
	case headgate.AlgorithmSlidingWindow:
		return min(1<<32-1, (1<<53-1)/period)
	default:
		return min(2*l.Capacity(), 65535)
	}
}

// raised is used and n times each, at most most.
func raised(used, n, each, most int64) int64 {
	sum := new(big.Int).Mul(big.NewInt(n), big.NewInt(each))
	if sum.Add(sum, big.NewInt(used)).Cmp(big.NewInt(most)) >= 0 {
		return most
	}
	return sum.Int64()
}

func reversed(grants []grant) []grant {
	grants = slices.Clone(grants)
	slices.Reverse(grants)
	return grants
}
