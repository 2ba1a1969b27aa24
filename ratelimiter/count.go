package ratelimiter

import (
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

const (
	// maxParts bounds a full bucket in parts: text of 17 digits must keep them apart.
	maxParts = 1 << 46
	// longestFill is the longest time from empty to full, in microseconds: 142 years, so that
	// the sum with the time of today stays below 2^53.
	longestFill = 1 << 52
	// lifeGrace is added to twice the time from empty to full for the expiry, in milliseconds.
	lifeGrace = 60_000
)

// numbers are a bucket's settings, counted in parts of a token. Rates such as 0.1 and 1.0/3 are
// whole numbers of parts, which do not drift.
type numbers struct {
	full     int64 // parts in a full bucket
	unit     int64 // parts in a token
	amount   int64 // parts that arrive each interval
	interval int64 // microseconds
	life     int64 // expiry of the hash after a grant, in milliseconds
}

// count validates a configuration that has its defaults, and converts it to numbers.
func count(cfg TokenBucketConfig) (numbers, error) {
	if cfg.Capacity < 1 || int64(cfg.Capacity) > maxParts {
		return numbers{}, invalid("Capacity", strconv.Itoa(cfg.Capacity),
			"from 1 to "+strconv.FormatInt(maxParts, 10)+", or 0 for 10")
	}
	if !(cfg.RefillRate > 0) || math.IsInf(cfg.RefillRate, 0) {
		return numbers{}, invalid("RefillRate", rateText(cfg.RefillRate),
			"a number of tokens above 0, or 0 for 1")
	}
	if cfg.RefillInterval < time.Microsecond {
		return numbers{}, invalid("RefillInterval", cfg.RefillInterval.String(),
			"at least 1µs, or 0 for 1s")
	}
	capacity := int64(cfg.Capacity)
	// Tokens that do not fit into the bucket make no difference.
	amount, unit, ok := fraction(min(cfg.RefillRate, float64(capacity)))
	if !ok || unit > maxParts/capacity {
		return numbers{}, invalid("RefillRate", rateText(cfg.RefillRate),
			"a rounder number, such as 0.1 or 1.0/3: with this capacity, a token is counted "+
				"in at most "+strconv.FormatInt(maxParts/capacity, 10)+" parts")
	}
	n := numbers{full: capacity * unit, unit: unit, amount: amount,
		interval: ceilDiv(int64(cfg.RefillInterval), 1000)}
	steps := ceilDiv(n.full, n.amount)
	if n.interval > longestFill/steps {
		return numbers{}, invalid("RefillInterval", cfg.RefillInterval.String(),
			"at most "+(time.Duration(longestFill/steps)*time.Microsecond).String()+
				", so that the bucket fills within 142 years")
	}
	n.life = 2*ceilDiv(steps*n.interval, 1000) + lifeGrace
	return n, nil
}

// fraction returns the simplest fraction that equals x > 0 in 53 bits: the first such convergent
// of its continued fraction. So 0.1 is 1/10 and 10.0/60 is 1/6.
func fraction(x float64) (num, den int64, ok bool) {
	rest := new(big.Rat).SetFloat64(x)
	n0, d0, n, d := big.NewInt(0), big.NewInt(1), big.NewInt(1), big.NewInt(0)
	for {
		whole := new(big.Int).Div(rest.Num(), rest.Denom())
		n0, n = n, new(big.Int).Add(n0, new(big.Int).Mul(whole, n))
		d0, d = d, new(big.Int).Add(d0, new(big.Int).Mul(whole, d))
		if near, _ := new(big.Rat).SetFrac(n, d).Float64(); near == x {
			return n.Int64(), d.Int64(), n.IsInt64() && d.IsInt64()
		}
		rest.Inv(rest.Sub(rest, new(big.Rat).SetInt(whole)))
	}
}

// ceilDiv returns a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	if a%b > 0 {
		return a/b + 1
	}
	return a / b
}

func rateText(rate float64) string { return strconv.FormatFloat(rate, 'g', -1, 64) }

func invalid(field, value, want string) error {
	return &headgate.InvalidError{Field: field, Value: value, Want: want}
}
