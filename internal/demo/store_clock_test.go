package demo

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// slow is a store that takes its time for each answer.
type slow struct {
	headgate.Store

	mu      sync.Mutex    // of highest
	takes   atomic.Int64  // nanoseconds, for one answer
	under   atomic.Int64  // answers under way
	highest atomic.Int64  // of them, at the same time
	ahead   time.Duration // of our own clock, for the clock of the store
}

func (s *slow) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	s.enter()
	defer s.under.Add(-1)
	select {
	case <-time.After(time.Duration(s.takes.Load())):
	case <-ctx.Done():
		return headgate.Decision{}, ctx.Err()
	}
	d, err := s.Store.Take(ctx, r)
	if r.Limit == dayLimit {
		d.ResetAfter -= s.ahead
	}
	return d, err
}

func (s *slow) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.highest.Store(max(s.highest.Load(), s.under.Add(1)))
}

func slowStore(takes time.Duration) *slow {
	s := &slow{Store: headgate.NewMemory()}
	s.takes.Store(int64(takes))
	return s
}

func TestClockOfAnotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowStore(time.Second)
		store.ahead = 42 * time.Minute
		c := storeClock{store: store}
		if err := c.adjust(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The store answers after the second, and we think that it was half way.
		now := time.Now()
		if got := c.at(now).Sub(now) - store.ahead; got < 0 || got > time.Second {
			t.Errorf("it is %s off", got)
		}
	})
}

// A caller waits for a store that does not answer until its own context ends.
func TestClockOfStoreThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := storeClock{store: slowStore(time.Hour)}
		first := make(chan error, 1)
		go func() { first <- c.adjust(t.Context()) }()
		synctest.Wait()
		begun := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		c.at(begun)
		if took := time.Since(begun); took != 0 {
			t.Errorf("the time was told after %s", took)
		}
		if err := c.adjust(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 100*time.Millisecond {
			t.Errorf("given up after %s with %v", time.Since(begun), err)
		}
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != patience {
			t.Errorf("the first gave up after %s with %v", time.Since(begun), err)
		}
	})
}

// Many who find the clock unknown wait for one answer; many who find it old wait
// for none but who asks.
func TestClockIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowStore(3 * time.Second)
		c := storeClock{store: store}
		together := func() (waited [2]int) {
			var all sync.WaitGroup
			var mu sync.Mutex
			begun := time.Now()
			for range 8 {
				all.Go(func() {
					err := c.adjust(t.Context())
					mu.Lock()
					defer mu.Unlock()
					switch took := time.Since(begun); {
					case err != nil:
						t.Error(err)
					case took == 0:
						waited[0]++
					case took == 3*time.Second:
						waited[1]++
					}
				})
			}
			all.Wait()
			return waited
		}
		if got := together(); got != [2]int{0, 8} {
			t.Errorf("at first %v went on at once and waited", got)
		}
		if got := together(); got != [2]int{8, 0} {
			t.Errorf("a moment later %v", got)
		}
		time.Sleep(2 * stale)
		if got := together(); got != [2]int{7, 1} {
			t.Errorf("when it was old %v", got)
		}
		if high := store.highest.Load(); high != 1 {
			t.Errorf("%d questions at the same time", high)
		}
	})
}

// Who asked first may go away; those who wait get the answer nevertheless.
func TestClockOutlivesWhoAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := storeClock{store: slowStore(time.Second)}
		ctx, stop := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- c.adjust(ctx) }()
		synctest.Wait()
		stop()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := c.adjust(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
