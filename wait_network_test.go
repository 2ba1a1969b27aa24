package headgate

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// many waits for key with n callers again and again, for a time, and returns how many passed.
func many(l *Limiter, key string, n int, span time.Duration) (passed int64) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(span, cancel) // no deadline, of which the line would know
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for l.Wait(ctx, key) == nil {
				atomic.AddInt64(&passed, 1)
			}
		})
	}
	all.Wait()
	time.Sleep(time.Second) // for answers that come late
	return passed
}

func (s countingStore) TakeAll(ctx context.Context, rs []Request, ds []Decision) error {
	s.n.Add(1)
	return s.Store.TakeAll(ctx, rs, ds)
}

// distant is a store that is a trip away, and counts what it is asked.
func distant(m *Memory, trip time.Duration, calls *atomic.Int64) Store {
	return countingStore{&networkStore{Store: m, there: trip / 2, back: trip / 2}, calls}
}

// Under each algorithm, over a network, callers get the whole rate with few calls, and the key is
// not booked ahead when all have left. Once, all of a line asked for each token of a log.
func TestEachAlgorithmOverANetwork(t *testing.T) {
	for _, limit := range []Limit{
		PerSecond(10).Burst(100), SlidingLog(100, 10*time.Second),
		SlidingWindow(100, 10*time.Second),
		FixedWindow(100, 10*time.Second), SteppedTokenBucket(100, 10*time.Second),
	} {
		for _, trip := range []time.Duration{2 * time.Millisecond, 50 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				m := NewMemorySize(1000)
				here := must(NewLimiter(m, limit))
				for range 100 { // so that the grants of a log are spread over its window
					must(here.Allow(t.Context(), "k"))
					time.Sleep(100 * time.Millisecond)
				}
				var calls atomic.Int64
				var passed [2]int64
				var all sync.WaitGroup
				for p := range passed {
					l := must(NewLimiter(distant(m, trip, &calls), limit))
					all.Go(func() { passed[p] = many(l, "k", 150, time.Minute) })
				}
				all.Wait()
				sum := passed[0] + passed[1]
				if sum < 590 || calls.Load() > 4*sum {
					t.Errorf("%s, %s away: %d of 600 passed, with %d calls", limit, trip, sum,
						calls.Load())
				}
				r := must(must(NewLimiter(m, limit)).Reserve(t.Context(), "k", 1))
				if r.Delay() > limit.Period() {
					t.Errorf("%s, %s away: booked for %s ahead", limit, trip, r.Delay())
				}
			})
		}
	}
}

// Callers under more limits than a line's key has room for stand in one line, too.
func TestFiveLimitsAreOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		l := must(NewLimiterFunc(distant(NewMemorySize(1000), 10*time.Millisecond, &calls),
			func(context.Context, string) ([]Limit, error) {
				return []Limit{
					PerSecond(10).Burst(1), PerMinute(1000), PerHour(10000), PerDay(100_000),
					Daily(1e6),
				}, nil
			}))
		if n := many(l, "k", 100, 3*time.Second); n < 28 || calls.Load() > 3*n {
			t.Errorf("%d passed, with %d calls", n, calls.Load())
		}
		if d := must(l.Peek(t.Context(), "k")); !d.Allowed() {
			t.Errorf("the key is booked ahead: %+v", d)
		}
	})
}

// late is a store whose answers take a time of their own.
type late struct {
	Store

	n    atomic.Int64
	took func(call int64) time.Duration
}

func (s *late) Take(ctx context.Context, r Request) (Decision, error) {
	n := s.n.Add(1)
	d, err := s.Store.Take(ctx, r)
	time.Sleep(s.took(n))
	return d, err
}

// A denial that arrives before the grants of the same trip refuses nobody who can pass in time.
func TestADenialThatOvertakesGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &late{Store: NewMemorySize(1000), took: func(n int64) time.Duration {
			return time.Duration(20-n/6*10) * time.Millisecond // the sixth is denied
		}}
		l := must(NewLimiter(s, PerSecond(1).Burst(5)))
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() { _ = l.Wait(t.Context(), "k") })
			synctest.Wait()
		}
		time.Sleep(15 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if err := l.Wait(ctx, "k"); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
}

// One slow answer does not make a process book far ahead.
func TestOneSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemorySize(1000)
		var all sync.WaitGroup
		var passed atomic.Int64
		end := time.Now().Add(40 * time.Second)
		for p := range 4 {
			l := must(NewLimiter(&late{Store: m, took: func(n int64) time.Duration {
				if n == 20 {
					return 4 * time.Second
				}
				return time.Millisecond
			}}, PerSecond(10)))
			all.Go(func() {
				for i := 0; time.Now().Before(end); i++ {
					ctx, leave := context.WithCancel(t.Context())
					time.AfterFunc(time.Duration(200+(i*37+p*11)%300)*time.Millisecond, leave)
					all.Go(func() {
						defer leave()
						if l.Wait(ctx, "k") == nil && time.Now().Before(end) {
							passed.Add(1)
						}
					})
					time.Sleep(200 * time.Millisecond)
				}
			})
		}
		all.Wait()
		time.Sleep(10 * time.Second)
		if n := passed.Load(); n < 392 {
			t.Errorf("%d of 400 served", n)
		}
	})
}

// cancelPanics is a store that panics when a start is cancelled.
type cancelPanics struct {
	Store

	cancels atomic.Int64
}

func (s *cancelPanics) Take(ctx context.Context, r Request) (Decision, error) {
	if r.Cost < 0 {
		s.cancels.Add(1)
		panic("mine")
	}
	time.Sleep(5 * time.Millisecond)
	return s.Store.Take(ctx, r)
}

// A store that panics as it cancels the start of a caller that has left does not end the process.
func TestACancelThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &cancelPanics{Store: NewMemorySize(10)}
		l := must(NewLimiter(s, PerSecond(1)))
		must(l.Allow(t.Context(), "k"))
		for i := range 40 {
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(time.Second-time.Duration(i)*time.Millisecond/2, leave)
			_ = l.Wait(ctx, "k")
			leave()
		}
		if s.cancels.Load() == 0 {
			t.Error("nothing was cancelled")
		}
		checkNoLineIsLeft(t, l)
	})
}

// Callers that wait when the limits change wait under the new ones, with those that come later.
func TestLimitsThatChangeWhileCallersWait(t *testing.T) {
	for _, c := range []struct{ from, to, least, most int64 }{{1, 50, 395, 420}, {50, 1, 55, 70}} {
		for _, store := range []Store{
			NewMemorySize(1000), distant(
				NewMemorySize(1000), 2*time.Millisecond, new(atomic.Int64)),
		} {
			synctest.Test(t, func(t *testing.T) {
				old, young := changeWhileWaiting(t, store, c.from, c.to)
				if n := old + young; n > c.most || n < c.least || c.to > c.from && old < 100 {
					t.Errorf("from %d to %d: %d and %d passed", c.from, c.to, old, young)
				}
			})
		}
	}
}

// changeWhileWaiting has 100 callers wait for a second, changes the limit, and returns how many of
// them and of callers that come then pass, until 8 seconds later.
func changeWhileWaiting(t *testing.T, store Store, from, to int64) (old, young int64) {
	t.Helper()
	l := must(NewLimiter(store, PerSecond(from).Burst(1).Named("api")))
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if l.Wait(ctx, "k") == nil {
				atomic.AddInt64(&old, 1)
			}
		})
	}
	time.Sleep(time.Second)
	if err := l.SetLimits(PerSecond(to).Burst(1).Named("api")); err != nil {
		t.Error(err)
	}
	for range 5 {
		all.Go(func() {
			for l.Wait(ctx, "k") == nil {
				atomic.AddInt64(&young, 1)
			}
		})
	}
	time.Sleep(8 * time.Second)
	leave()
	all.Wait()
	time.Sleep(time.Minute)
	return old, young
}

// Callers that exchange their starts, because a later one is answered first, ask once each: a
// second grant would be lost.
func TestAnAnswerThatOvertakesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &late{Store: NewMemorySize(1000), took: func(n int64) time.Duration {
			return time.Duration(20/n) * time.Millisecond
		}}
		l := must(NewLimiter(s, FixedWindow(200, time.Hour)))
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if err := l.WaitN(t.Context(), "k", 40); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		time.Sleep(time.Second)
		if d := must(l.Peek(t.Context(), "k")); d.Remaining != 120 || s.n.Load() != 3 {
			t.Errorf("%d of 200 remain after 80, with %d calls", d.Remaining, s.n.Load()-1)
		}
	})
}
