package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// A store that hangs costs each caller the time budget until the circuit opens. Then it costs one
// caller the budget after each OpenTimeout, and the others nothing.
func TestTimeBudgetOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Mode: fallback.Open})
		r := request("10/s")
		b.how.Store(hangs)
		took := func() time.Duration {
			start := time.Now()
			if d, err := s.Take(t.Context(), r); err != nil || !d.Degraded() || !d.Allowed() {
				t.Errorf("%+v, %v", d, err)
			}
			return time.Since(start)
		}
		for i := range 5 {
			if d := took(); d != 50*time.Millisecond {
				t.Errorf("call %d took %s", i, d)
			}
		}
		for range 1000 {
			if d := took(); d != 0 {
				t.Fatalf("a call with an open circuit took %s", d)
			}
		}
		time.Sleep(untilRetry)
		var group sync.WaitGroup
		all := make([]time.Duration, 10)
		for i := range all {
			group.Go(func() { all[i] = took() })
		}
		group.Wait()
		if slices.Sort(all); all[8] != 0 || all[9] != 50*time.Millisecond {
			t.Errorf("of ten calls, one should try the store: they took %s", all)
		}
		if n := b.calls.Load(); n != 6 {
			t.Errorf("the store was called %d times", n)
		}
		b.how.Store(works)
		time.Sleep(untilRetry)
		if d := take(t, s, r); d.Degraded() {
			t.Error("the store works again, and was not called")
		}
		want := fallback.Stats{Decisions: 1015, Failures: 6}
		if got := s.Stats(); got != want {
			t.Errorf("%+v; want %+v", got, want)
		}
	})
}

// stalls is a store that answers all calls at one moment.
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

// parts uses one store for the key "hangs", and another for other keys after a millisecond.
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

// So it is, though there are always callers of either part, and the answers are many more.
func TestTheCircuitOpensIfMostOfTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, parts{headgate.NewMemory(), b}, fallback.Options{Mode: fallback.Closed})
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
		t.Error("the circuit is closed after two seconds")
	})
}

func TestFailuresThatOpenTheCircuit(t *testing.T) {
	for _, c := range []struct {
		every, failures int // every so many calls fail; Options.Failures
		opens           bool
	}{
		{1, 5, true}, {2, 5, true}, {10, 5, false}, {1, math.MaxInt, false},
	} {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Mode: fallback.Closed, Failures: c.failures})
		for i := range 100 {
			b.how.Store(works)
			if i%c.every == c.every-1 {
				b.how.Store(fails)
			}
			take(t, s, request("1000000/s"))
		}
		want := uint64(100 / c.every)
		if c.opens {
			want = 5
		}
		if got := s.Stats(); got.Degraded != c.opens || got.Failures != want {
			t.Errorf("%+v: %+v; want %d failures", c, got, want)
		}
	}
}

// Denials, invalid input and callers that leave say nothing about the store.
func TestWhatIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{
			Mode:     fallback.Closed,
			Failures: 1, OnChange: func(bool, error) { t.Error("the circuit opened") },
		})
		r := request("1/h")
		for range 3 {
			take(t, s, r) // two are denied
		}
		if _, err := s.Take(t.Context(), headgate.Request{}); !invalid(err) {
			t.Errorf("no limit: %v", err)
		}
		if err := s.TakeAll(t.Context(), []headgate.Request{r}, nil); !invalid(err) {
			t.Errorf("no room for decisions: %v", err)
		}
		if err := s.Reset(t.Context(), "k", headgate.Limit{}); !invalid(err) {
			t.Errorf("reset of no limit: %v", err)
		}
		b.how.Store(refuses)
		if _, err := s.Take(t.Context(), r); !invalid(err) {
			t.Errorf("input that the store refuses: %v", err)
		}
		b.how.Store(hangs)
		gone, leave := context.WithCancel(t.Context())
		leave()
		err := s.TakeAll(gone, []headgate.Request{r}, make([]headgate.Decision, 1))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that left: %v", err)
		}
		if got := s.Stats(); got != (fallback.Stats{}) {
			t.Errorf("%+v", got)
		}
	})
}

// While the store is silent, the mode decides before the deadline of a caller. Neither a caller
// with less time than the budget nor one that leaves opens the circuit for others.
func TestCallersThatAreLessPatientThanTheBudget(t *testing.T) {
	for _, c := range []struct{ deadline, leaves, answered time.Duration }{
		{4 * time.Millisecond, 0, 3 * time.Millisecond},
		{20 * time.Millisecond, 0, 15 * time.Millisecond},
		{60 * time.Millisecond, 0, 45 * time.Millisecond},
		{0, 12 * time.Millisecond, 12 * time.Millisecond},
		{time.Minute, 0, 50 * time.Millisecond},
		{time.Minute, 49 * time.Millisecond, 49 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBreakable()
			s := newStore(t, b, fallback.Options{Mode: fallback.Open})
			impatient := func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				if c.leaves > 0 {
					time.AfterFunc(c.leaves, cancel)
				}
				start := time.Now()
				d, err := s.Take(ctx, request("1/h"))
				left := c.leaves > 0 && errors.Is(err, context.Canceled)
				if decided := err == nil && d.Degraded(); left == decided ||
					time.Since(start) != c.answered {
					t.Errorf("%+v: %+v, %v after %s", c, d, err, time.Since(start))
				}
			}
			b.how.Store(hangs)
			for range 10 {
				if !s.Stats().Degraded {
					impatient()
				}
			}
			b.how.Store(works)
			opens := c.answered == 50*time.Millisecond
			if d := take(t, s, request("1/h")); d.Degraded() != opens {
				t.Errorf("%+v: a patient caller gets %+v", c, d)
			}
		})
	}
}

// Callers with less time than the budget try an open circuit one at a time, and close it.
func TestHurriedCallersCloseTheCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Mode: fallback.Open, Failures: 1})
		hurried := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			d, err := s.Take(ctx, request("10/s"))
			if err != nil {
				t.Error(err)
			}
			return d.Degraded()
		}
		b.how.Store(hangs)
		take(t, s, request("10/s"))
		for range 20 {
			time.Sleep(untilRetry)
			var group sync.WaitGroup
			before := b.calls.Load()
			for range 9 {
				group.Go(func() { hurried() })
			}
			group.Wait()
			if n := b.calls.Load() - before; n != 1 || !s.Stats().Degraded {
				t.Fatalf("%d calls, %+v", n, s.Stats())
			}
		}
		b.how.Store(works)
		if hurried() || s.Stats().Degraded {
			t.Error("the store works again, and the circuit is open")
		}
	})
}

// A request that was rejected because too many wait is decided without the store. It neither opens
// the circuit nor keeps it open.
func TestBusyIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Mode: fallback.Closed, Failures: 2})
		r := request("10/s")
		b.how.Store(busy)
		for range 100 {
			if d := take(t, s, r); !d.Degraded() {
				t.Fatalf("%+v", d)
			}
		}
		if got, want := s.Stats(), (fallback.Stats{Decisions: 100}); got != want {
			t.Errorf("%+v; want %+v", got, want)
		}
		r.MaxWait = time.Second
		_, err := s.Take(t.Context(), r)
		if !errors.Is(err, redisstore.ErrBusy) || !errors.Is(err, fallback.ErrDegraded) {
			t.Errorf("a reservation: %v", err)
		}
		r.MaxWait = 0
		for _, how := range []int32{works, fails, busy, fails} {
			b.how.Store(how)
			if d := take(t, s, r); d.Degraded() != (how != works) {
				t.Errorf("the store is %d: %+v", how, d)
			}
		}
		if !s.Stats().Degraded {
			t.Error("the circuit is closed after two failures")
		}
		b.how.Store(busy)
		time.Sleep(untilRetry)
		take(t, s, r)
		take(t, s, r)
		if n := b.calls.Load(); n != 107 || !s.Stats().Degraded {
			t.Errorf("%d calls; want one for each request while the store is busy", n)
		}
		b.how.Store(works)
		if d := take(t, s, r); d.Degraded() || s.Stats().Degraded {
			t.Error("the store works again, and was not called")
		}
	})
}

// lateError is a store that hangs, and answers the key "late" with an error after a while.
type lateError struct {
	*breakable
	err error
}

func (s lateError) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if r.Key == "late" {
		time.Sleep(40 * time.Millisecond)
		return headgate.Decision{}, s.err
	}
	return s.breakable.Take(ctx, r)
}

// The reason for an open circuit is a failure that counted, though a call was rejected later, or
// met a bad state.
func TestTheReasonForAnOpenCircuitIsAFailureThatCounted(t *testing.T) {
	for _, late := range []error{redisstore.ErrBusy, headgate.ErrBadState} {
		synctest.Test(t, func(t *testing.T) {
			b := newBreakable()
			b.how.Store(hangs)
			s := newStore(t, lateError{b, late},
				fallback.Options{Mode: fallback.Closed, Failures: 1})
			r, other := request("10/s"), request("10/s")
			other.Key = "late"
			go func() { _, _ = s.Take(t.Context(), r) }()
			time.Sleep(20 * time.Millisecond)
			take(t, s, other)
			r.MaxWait = time.Second
			_, err := s.Take(t.Context(), r)
			if !errors.Is(err, fallback.ErrDegraded) ||
				err.Error() != "fallback: store unavailable: context deadline exceeded" {
				t.Errorf("after %q: %v", late, err)
			}
		})
	}
}

// The error of the time budget, or of another caller's context, is not returned as the caller's.
func TestErrDegradedDoesNotWrapAnotherContextsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Mode: fallback.Closed, Failures: 1,
			OpenTimeout: time.Hour})
		r := request("10/s")
		r.MaxWait = time.Second
		b.how.Store(hangs)
		for _, who := range []string{"the caller that waited", "the next caller"} {
			_, err := s.Take(t.Context(), r)
			all := s.TakeAll(t.Context(), []headgate.Request{r}, make([]headgate.Decision, 1))
			reset := s.Reset(t.Context(), r.Key, r.Limit)
			for i, err := range []error{err, all, reset} {
				own := errors.Is(err, context.DeadlineExceeded)
				if !errors.Is(err, fallback.ErrDegraded) || own ||
					!strings.HasSuffix(err.Error(), "unavailable: context deadline exceeded") {
					t.Errorf("%s, call %d: %v", who, i, err)
				}
			}
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		for range 2 {
			_, err := s.Take(gone, r)
			if !errors.Is(err, context.Canceled) || errors.Is(err, fallback.ErrDegraded) {
				t.Errorf("a caller that left: %v", err)
			}
		}
	})
}

// exits is a store whose calls run a function first, if there is one.
type exits struct {
	headgate.Store
	how func()
}

func (s *exits) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if s.how != nil {
		s.how()
	}
	return s.Store.Take(ctx, r)
}

func TestACallThatDoesNotReturnIsAFailure(t *testing.T) {
	for name, how := range map[string]func(){
		"panics": func() { panic("store") }, "exits its goroutine": runtime.Goexit,
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &exits{Store: headgate.NewMemory(), how: how}
			var changes []string
			s := newStore(t, store, fallback.Options{
				Mode:     fallback.Closed,
				Failures: 1,
				OnChange: func(degraded bool, err error) {
					changes = append(changes, fmt.Sprint(degraded, err))
				},
			})
			for range 3 {
				var one sync.WaitGroup
				one.Go(func() {
					defer func() { _ = recover() }()
					_, _ = s.Take(t.Context(), request("10/s"))
				})
				one.Wait()
				if !s.Stats().Degraded {
					t.Errorf("a store that %s is called", name)
				}
				time.Sleep(untilRetry)
			}
			store.how = nil
			take(t, s, request("10/s"))
			if s.Stats().Degraded {
				t.Error("the store works again, and the circuit is open")
			}
			want := []string{
				"true the store's call panicked or exited its goroutine", "false <nil>",
			}
			if !slices.Equal(changes, want) {
				t.Errorf("changes %q", changes)
			}
		})
	}
}

// OnChange is called once for each change, in order, and may use the store itself.
func TestOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		var s *fallback.Store
		var changes []string
		r := request("10/s")
		s = newStore(t, b, fallback.Options{Mode: fallback.Closed, Failures: 2,
			OnChange: func(degraded bool, err error) {
				if degraded != s.Stats().Degraded {
					t.Error("Stats differ")
				}
				take(t, s, r)
				changes = append(changes, fmt.Sprint(degraded, err))
			}})
		for range 3 {
			b.how.Store(fails)
			for range 4 {
				take(t, s, r)
			}
			time.Sleep(untilRetry)
			take(t, s, r) // fails once more, which is no change
			b.how.Store(works)
			time.Sleep(untilRetry)
			take(t, s, r)
		}
		want := slices.Repeat([]string{"true broken", "false <nil>"}, 3)
		if !slices.Equal(changes, want) {
			t.Errorf("changes %q", changes)
		}
	})
}
