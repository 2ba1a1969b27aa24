package gate

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A crowd is callers of one gate, and what they saw.
type crowd struct {
	gate   *Gate
	mu     sync.Mutex
	seen   []time.Time // one for each token
	random *rand.Rand
}

// upTo is a random number from 1 to n.
func (c *crowd) upTo(n int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.Int64N(n) + 1
}

// pass waits once for n tokens.
func (c *crowd) pass(ctx context.Context, n int64) error {
	err := c.gate.WaitN(ctx, n)
	now := time.Now()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		c.seen = append(c.seen, now)
	}
	return nil
}

// passUntil passes again and again until it fails.
func (c *crowd) passUntil(ctx context.Context, n int64) {
	for {
		if err := c.pass(ctx, n); err != nil {
			return
		}
	}
}

// The promise, under load: thousands of goroutines, some for several tokens, some that give up
// or have a deadline.
func TestGateHoldsItsPromiseUnderLoad(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			n, period := r.Int64N(20)+1,
				time.Duration(r.Int64N(int64(time.Second)))+time.Millisecond
			c := &crowd{gate: must(New(n, period)), random: r}
			var wg sync.WaitGroup
			for range 3000 {
				wg.Go(func() { c.caller(t, n, period) })
			}
			wg.Wait()
			holdPromise(t, c.seen, int(n), period)
			if len(c.seen) < 1000 {
				t.Errorf("only %d passed", len(c.seen))
			}
			if c.gate.waiting != 0 {
				t.Errorf("%d tokens wait without callers", c.gate.waiting)
			}
		})
	}
}

// caller comes at a random time and passes, or gives up.
func (c *crowd) caller(t *testing.T, n int64, period time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.Sleep(time.Duration(c.upTo(int64(10 * period))))
	switch c.upTo(4) {
	case 1:
		time.AfterFunc(time.Duration(c.upTo(int64(100*period))), cancel)
	case 2:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.upTo(int64(300*period))))
		defer cancel()
	}
	tokens := int64(1)
	if c.upTo(4) == 1 {
		tokens = c.upTo(n)
	}
	_ = c.pass(ctx, tokens)
}

// Nothing is lost: with callers who always wait and are woken on time, the whole limit passes.
func TestGateLetsTheWholeLimitPass(t *testing.T) {
	for _, callers := range []int{8, 1000} {
		synctest.Test(t, func(t *testing.T) {
			const n, period, periods = 7, 123 * time.Millisecond, 1000
			c := &crowd{gate: must(New(n, period)), random: rand.New(rand.NewPCG(1, 1))}
			ctx, cancel := context.WithTimeout(t.Context(), periods*period)
			defer cancel()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					time.Sleep(time.Duration(c.upTo(int64(period))))
					c.passUntil(ctx, 1)
				})
			}
			wg.Wait()
			holdPromise(t, c.seen, n, period)
			if got, want := len(c.seen), n*periods*99/100; got < want {
				t.Errorf("%d callers: %d passed; want at least %d", callers, got, want)
			}
		})
	}
}

// The same by a real clock, which wakes late when it likes to, and whose scheduler takes the
// processor away at any point.
func TestGateHoldsItsPromiseByARealClock(t *testing.T) {
	t.Parallel()
	const n, period, span = 100, 50 * time.Millisecond, time.Second
	c := &crowd{gate: must(New(n, period))}
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 2000 {
		wg.Go(func() {
			c.passUntil(ctx, int64(i%7/6)+1)
		})
	}
	wg.Wait()
	// The scheduler may preempt a caller that is about to read the clock, which then sees its
	// pass too late. That happens to one in some thousand.
	if short := shortWindows(c.seen, n, period); short > len(c.seen)/200 {
		t.Errorf("%d of %d windows hold more than %d passes", short, len(c.seen), n)
	}
	t.Logf("%d of at most %d passed", len(c.seen), int(n*(span/period)))
}

// shortWindows is how many passes are followed by n more within less than a period.
func shortWindows(seen []time.Time, n int, period time.Duration) (short int) {
	slices.SortFunc(seen, time.Time.Compare)
	for i := range max(len(seen)-n, 0) {
		if seen[i+n].Sub(seen[i]) < period {
			short++
		}
	}
	return short
}

// Those who ask again and again pass within nanoseconds of the first moment at which
// they may. A call that took long counts from its beginning: it may have been held up
// after the gate had let it pass.
func TestGateHoldsItsPromiseToTheNanosecond(t *testing.T) {
	t.Parallel()
	const n, period, span = 10, time.Millisecond, 500 * time.Millisecond
	g := must(New(n, period))
	type pass struct{ first, last time.Time } // the moments between which it was seen
	var passes []pass
	for start := time.Now(); time.Since(start) < span; {
		before := time.Now()
		if !tries(t, g, 0) {
			continue
		}
		p := pass{time.Now(), time.Now()}
		if p.last.Sub(before) > minLeeway {
			p.first = before
		}
		passes = append(passes, p)
	}
	for i := range len(passes) - n {
		if got := passes[i+n].last.Sub(passes[i].first); got < period {
			t.Fatalf("passes %d to %d, one too many, lie within %s", i, i+n, got)
		}
	}
	t.Logf("%d of at most %d passed", len(passes), int(n*(span/period)))
}

// A goroutine that is held up after its pass was recorded records it again.
func TestGateRecordsAgainWhatWasHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := exact(2, time.Second)
		g.mu.Lock()
		now := nanos()
		time.Sleep(300 * time.Millisecond) // between the first and the last reading of the clock
		g.pass(1, now)
		if open, _ := g.Peek(); !open {
			t.Error("one pass was recorded as two")
		}
		must(0, g.Wait(t.Context()))
		if _, in := g.Peek(); in < time.Second || in > time.Second+time.Microsecond {
			t.Errorf("the next pass comes in %s; want 1s", in)
		}
	})
}
