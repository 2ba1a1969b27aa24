package ratelimiter_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate/ratelimiter"
)

// rates are buckets of all kinds, with their rates as fractions.
var rates = []struct {
	capacity int
	rate     float64
	num, den int64
	interval time.Duration
}{
	{10, 1, 1, 1, time.Second},
	{1, 1, 1, 1, time.Microsecond},
	{10, 1, 1, 1, 100 * time.Millisecond},
	{5, 0.5, 1, 2, time.Second},
	{3, 0.1, 1, 10, 100 * time.Millisecond},
	{10, 2.5, 5, 2, 300 * time.Millisecond},
	{7, 1.0 / 3, 1, 3, time.Second},
	{100, 10.0 / 60, 1, 6, time.Second},
	{10, 0.7, 7, 10, 33 * time.Millisecond},
	{5, 1e300, 5, 1, time.Minute},
	{1_000_000, 16666.666666666668, 50000, 3, time.Second},
	{1 << 26, 7.0 / 1048573, 7, 1048573, time.Microsecond}, // nearly as many parts as can be
	{60, 1, 1, 1, time.Minute},
	{3, 1, 1, 1, 24 * time.Hour},
}

// TestEdges takes the only token and comes back at the very microsecond at which the next
// is due, and one before it: 500 times, so that the least drift would show.
func TestEdges(t *testing.T) {
	for _, c := range []struct {
		rate     float64
		interval time.Duration
		each     time.Duration
	}{
		{1, time.Microsecond, time.Microsecond},
		{1, 100 * time.Millisecond, 100 * time.Millisecond},
		{1, 33 * time.Millisecond, 33 * time.Millisecond},
		{1, time.Second / 3, 333_334 * time.Microsecond},
		{1, time.Hour, time.Hour},
		{0.5, 100 * time.Millisecond, 200 * time.Millisecond},
		{0.1, 100 * time.Millisecond, time.Second},
		{1.0 / 3, time.Second, 3 * time.Second},
		{10.0 / 60, time.Second, 6 * time.Second},
	} {
		limiter, _, key := bucket(t, ratelimiter.TokenBucketConfig{Capacity: 1, RefillRate: c.rate, RefillInterval: c.interval})
		at := time.UnixMicro(1_700_000_000_123_457)
		takeAt(t, limiter, key, at)
		for i := range 500 {
			at = at.Add(c.each)
			if v := takeAt(t, limiter, key, at.Add(-time.Microsecond)); v.Allowed || v.Retry != time.Microsecond {
				t.Fatalf("%v each %v, token %d: a microsecond early: %+v", c.rate, c.interval, i, v)
			}
			if v := takeAt(t, limiter, key, at); !v.Allowed {
				t.Fatalf("%v each %v, token %d: a tick late: %+v", c.rate, c.interval, i, v)
			}
		}
	}
}

// model is a bucket by definition, in exact fractions.
type model struct {
	capacity, rate *big.Rat
	interval       int64
	tokens         *big.Rat
	since          int64
}

// take refills in whole intervals and takes a token.
func (m *model) take(now int64) (allowed bool, remaining int64) {
	if m.tokens == nil {
		m.tokens, m.since = m.capacity, now
	}
	for m.since+m.interval <= now {
		m.since += m.interval
		m.tokens = new(big.Rat).Add(m.tokens, m.rate)
		if m.tokens.Cmp(m.capacity) > 0 {
			m.tokens = m.capacity
		}
	}
	one := big.NewRat(1, 1)
	if m.tokens.Cmp(one) >= 0 {
		m.tokens = new(big.Rat).Sub(m.tokens, one)
		allowed = true
	}
	return allowed, new(big.Int).Div(m.tokens.Num(), m.tokens.Denom()).Int64()
}

// full is when the bucket is full again, if no request takes from it.
func (m *model) full() int64 {
	missing := new(big.Rat).Sub(m.capacity, m.tokens)
	ticks := missing.Quo(missing, m.rate)
	up := new(big.Int).Add(ticks.Num(), new(big.Int).Sub(ticks.Denom(), big.NewInt(1)))
	return m.since + new(big.Int).Div(up, ticks.Denom()).Int64()*m.interval
}

// TestAsDefined compares with the model, call by call, at random times of which many lie
// on an edge. A retry that a denial names is due: not a microsecond before.
func TestAsDefined(t *testing.T) {
	t.Parallel()
	for i, c := range rates {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		limiter, _, key := bucket(t, ratelimiter.TokenBucketConfig{Capacity: c.capacity, RefillRate: c.rate, RefillInterval: c.interval})
		m := &model{capacity: big.NewRat(int64(c.capacity), 1), rate: big.NewRat(c.num, c.den), interval: c.interval.Microseconds()}
		now := int64(1_700_000_000_000_001) + random.Int64N(1e6)
		due := false
		for range 1000 {
			v := takeAt(t, limiter, key, time.UnixMicro(now))
			allowed, remaining := m.take(now)
			if v.Allowed != allowed || v.Remaining != remaining || v.Full.UnixMicro() != m.full() || (due && !v.Allowed) {
				t.Fatalf("%+v: %+v; want %v, %d remaining, full at %d; due: %v", c, v, allowed, remaining, m.full(), due)
			}
			due = !v.Allowed && random.IntN(2) == 0
			if due {
				now += v.Retry.Microseconds()
				if early, _ := m.take(now - 1); early {
					t.Fatalf("%+v: a retry after %s, and there is a token before that", c, v.Retry)
				}
				continue
			}
			switch next := m.since + m.interval*random.Int64N(4); random.IntN(4) {
			case 0:
				now = max(now, next)
			case 1:
				now = max(now, next-1)
			case 2:
				now += random.Int64N(2 * m.interval)
			}
		}
	}
}
