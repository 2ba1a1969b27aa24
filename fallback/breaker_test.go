package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/redisstore"
)

// stalls is a store in which no call ends before a moment, after which all are answered at once.
type stalls struct {
	headgate.Store
	until time.Time
}

func (s *stalls) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	select {
	case <-time.After(time.Until(s.until)):
		return s.Store.Take(ctx, r)
	case <-ctx.Done():
		return headgate.Decision{}, ctx.Err()
	}
}

// Ten callers a millisecond wait while the store stands still: that counts as what one of
// them would see, a failure each budget, and as he comes at most a millisecond after it.
func TestCallersWhoWaitForTheSameAnswer(t *testing.T) {
	for _, c := range []struct {
		still time.Duration
		after time.Duration // when it is left alone; 0: it is not
	}{
		{60 * time.Millisecond, 0},
		{240 * time.Millisecond, 0}, // in which one caller is disappointed four times
		{time.Second, 250 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			after := time.Duration(0)
			s := newStore(t, &stalls{headgate.NewMemory(0), start.Add(c.still)}, fallback.Options{OnChange: func(degraded bool, _ error) {
				if degraded {
					after = time.Since(start)
				}
			}})
			var group sync.WaitGroup
			for range 300 {
				for range 10 {
					group.Go(func() {
						if d, err := s.Take(t.Context(), request("1000000/s")); err != nil || d.Limit.Name() == "" {
							t.Errorf("%+v, %v", d, err)
						}
					})
				}
				time.Sleep(time.Millisecond)
			}
			group.Wait()
			if after < c.after || after > c.after/50*51 {
				t.Errorf("a store that stands still for %s is left alone after %s; want %s", c.still, after, c.after)
			}
			if stats := s.Stats(); stats.Failures < 100 || stats.Failures != stats.Instead && after == 0 {
				t.Errorf("%s: %+v", c.still, stats)
			}
		})
	}
}

// A store of which most hangs while the rest answers is left alone, also if there are always some
// who wait for either, and the answers are many more.
func TestMostOfTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, parts{headgate.NewMemory(0), b}, fallback.Options{})
		b.how.Store(hangs)
		var group sync.WaitGroup
		defer group.Wait()
		random := rand.New(rand.NewPCG(1, 1))
		for range 2000 {
			r := request("1000000/s")
			r.Key = []string{"hangs", "hangs", "hangs", "works"}[random.IntN(4)]
			group.Go(func() { _, _ = s.Take(context.Background(), r) })
			time.Sleep(time.Millisecond)
			if s.Stats().Degraded {
				return
			}
		}
		t.Error("it was asked for two seconds")
	})
}

// parts asks one store for some keys, and another for the others after a millisecond.
type parts struct {
	headgate.Store
	hangs headgate.Store
}

func (p parts) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if r.Key == "hangs" {
		return p.hangs.Take(ctx, r)
	}
	time.Sleep(time.Millisecond)
	return p.Store.Take(ctx, r)
}

// Who is turned away because too many wait is decided here, and that is all: the store is asked by the
// next one. If it gives no answer to those who wait, it is left alone all the same; and when it is asked again, to be
// turned away neither ends that nor prolongs it.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Failures: 2})
		r := request("10/s")
		b.how.Store(busy)
		for range 100 {
			if d := take(t, s, r); !d.Degraded() {
				t.Fatalf("%+v", d)
			}
		}
		if got, want := s.Stats(), (fallback.Stats{Instead: 100}); got != want {
			t.Errorf("%+v; want %+v", got, want)
		}
		r.MaxWait = time.Second
		if _, err := s.Take(t.Context(), r); !errors.Is(err, redisstore.ErrBusy) || !errors.Is(err, fallback.ErrDegraded) {
			t.Errorf("a turn: %v", err)
		}
		r.MaxWait = 0
		b.how.Store(works)
		if d := take(t, s, r); d.Degraded() {
			t.Error("the next one was not asked")
		}
		for _, how := range []int32{fails, busy, fails} {
			b.how.Store(how)
			take(t, s, r)
		}
		if !s.Stats().Degraded {
			t.Error("those who were not turned away were given no answer, and it is asked still")
		}
		b.how.Store(busy)
		time.Sleep(time.Second + time.Microsecond)
		take(t, s, r)
		take(t, s, r)
		if n := b.asked.Load(); n != 107 || !s.Stats().Degraded {
			t.Errorf("asked %d times; want each time while it is busy, and left alone still", n)
		}
		b.how.Store(works)
		if d := take(t, s, r); d.Degraded() || s.Stats().Degraded {
			t.Error("it is back, and was not asked")
		}
	})
}

// lateBusy is a store that hangs, but turns some away, and late.
type lateBusy struct{ *breakable }

func (s lateBusy) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if r.Key == "busy" {
		time.Sleep(40 * time.Millisecond)
		return headgate.Decision{}, redisstore.ErrBusy
	}
	return s.breakable.Take(ctx, r)
}

// Why the store is left alone is what was counted against it, and not that somebody was turned away.
func TestBusyIsNotWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		b.how.Store(hangs)
		s := newStore(t, lateBusy{b}, fallback.Options{Failures: 1})
		r := request("10/s")
		go func() { _, _ = s.Take(t.Context(), r) }()
		time.Sleep(20 * time.Millisecond)
		turnedAway := r
		turnedAway.Key = "busy"
		take(t, s, turnedAway)
		r.MaxWait = time.Second
		if _, err := s.Take(t.Context(), r); !s.Stats().Degraded || !errors.Is(err, fallback.ErrDegraded) || errors.Is(err, redisstore.ErrBusy) {
			t.Errorf("%v", err)
		}
	})
}

// Callers whose deadlines end before the budget are told so, and find out together that the store
// gives no answer: also when it is asked again.
func TestCallersOfLittlePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		var why error
		s := newStore(t, b, fallback.Options{Failures: 2, OnChange: func(degraded bool, err error) {
			if degraded {
				why = err
			}
		}})
		b.how.Store(hangs)
		ask := func(patience time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := s.Take(ctx, request("10/s"))
			return err
		}
		for i := range 6 { // of 20 ms each: the third and the sixth fill a budget of 50
			if s.Stats().Degraded {
				t.Fatalf("left alone after %d", i)
			}
			if err := ask(20 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fallback.ErrDegraded) {
				t.Fatalf("%d: %v", i, err)
			}
			if i < 2 { // which is no answer
				b.how.Store(busy)
				take(t, s, request("10/s"))
				b.how.Store(hangs)
			}
		}
		if got, want := s.Stats(), (fallback.Stats{Degraded: true, Failures: 2, Instead: 2}); got != want || why == nil || !strings.Contains(why.Error(), "no answer") {
			t.Errorf("%+v, %v; want %+v", got, why, want)
		}
		time.Sleep(time.Second + time.Microsecond)
		for i := range 3 {
			if err := ask(20 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d, when it is asked again: %v", i, err)
			}
		}
		asked := b.asked.Load()
		if err := ask(20 * time.Millisecond); err != nil || b.asked.Load() != asked {
			t.Errorf("after that it is left alone for another pause: %v", err)
		}
	})
}

// An answer to anybody, and a failure that counts, ends the silence in which those waited who left.
func TestSilenceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Failures: 2})
		leave := func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			b.how.Store(hangs)
			_, _ = s.Take(ctx, request("10/s"))
		}
		answer := func() {
			b.how.Store(works)
			take(t, s, request("10/s"))
		}
		for range 10 {
			leave()
			answer()
		}
		if got := s.Stats(); got != (fallback.Stats{}) {
			t.Errorf("%+v", got)
		}
		for range 10 {
			go leave() // while the breaker watches this one, another has an answer
			time.Sleep(10 * time.Millisecond)
			answer()
			time.Sleep(20 * time.Millisecond)
			leave()
			answer()
		}
		if got := s.Stats(); got != (fallback.Stats{}) {
			t.Errorf("with answers beside: %+v", got)
		}
		leave()
		b.how.Store(fails)
		take(t, s, request("10/s")) // the first of two
		leave()
		if got := s.Stats(); got.Degraded {
			t.Errorf("after a failure: %+v", got)
		}
	})
}

// What another caller met is told, and is not taken for the end of one's own context.
func TestErrDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Failures: 1, Pause: time.Hour})
		r := request("10/s")
		r.MaxWait = time.Second
		b.how.Store(hangs)
		for _, who := range []string{"the one who waited", "another"} {
			_, err := s.Take(t.Context(), r)
			if !errors.Is(err, fallback.ErrDegraded) || errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), "context deadline exceeded") {
				t.Errorf("%s: %v", who, err)
			}
			if err := s.TakeAll(t.Context(), []headgate.Request{r}, make([]headgate.Decision, 1)); !errors.Is(err, fallback.ErrDegraded) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, together: %v", who, err)
			}
			if err := s.Reset(t.Context(), r.Key, r.Limit); !errors.Is(err, fallback.ErrDegraded) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, reset: %v", who, err)
			}
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		for range 2 {
			if _, err := s.Take(gone, r); !errors.Is(err, context.Canceled) || errors.Is(err, fallback.ErrDegraded) {
				t.Errorf("who left: %v", err)
			}
		}
	})
}

// ends is a store that panics, or ends its caller, until it is good.
type ends struct {
	headgate.Store
	how func()
}

func (s *ends) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if s.how != nil {
		s.how()
	}
	return s.Store.Take(ctx, r)
}

// A store that panics or ends its caller when it is asked again is left alone for another pause, and asked after that.
func TestStoreThatEndsItsCallers(t *testing.T) {
	for name, how := range map[string]func(){"panics": func() { panic("store") }, "ends its goroutine": runtime.Goexit} {
		synctest.Test(t, func(t *testing.T) {
			store := &ends{Store: headgate.NewMemory(0), how: how}
			var told []string
			s := newStore(t, store, fallback.Options{Failures: 1, OnChange: func(degraded bool, err error) { told = append(told, fmt.Sprint(degraded, err)) }})
			for range 3 {
				var one sync.WaitGroup
				one.Go(func() {
					defer func() { _ = recover() }()
					_, _ = s.Take(t.Context(), request("10/s"))
				})
				one.Wait()
				if !s.Stats().Degraded {
					t.Errorf("a store that %s is asked", name)
				}
				time.Sleep(time.Second + time.Millisecond)
			}
			store.how = nil
			take(t, s, request("10/s"))
			if s.Stats().Degraded {
				t.Errorf("a store that %s is left alone though it is good again", name)
			}
			if want := []string{"true the store ended its caller", "false <nil>"}; !slices.Equal(told, want) {
				t.Errorf("told %q", told)
			}
		})
	}
}
