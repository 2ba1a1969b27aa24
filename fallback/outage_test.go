package fallback_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
)

func request(text string) headgate.Request {
	l, err := headgate.ParseLimit(text)
	if err != nil {
		panic(err)
	}
	return headgate.Request{Key: "k", Limit: l, Cost: 1}
}

// A store that hangs costs each caller the budget, until it is left alone; then it costs one caller
// a pause the budget, and the others nothing.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Mode: fallback.Open})
		r := request("10/s")
		b.how.Store(hangs)
		took := func() time.Duration {
			start := time.Now()
			if d := take(t, s, r); !d.Degraded() || !d.Allowed() {
				t.Fatalf("%+v", d)
			}
			return time.Since(start)
		}
		for i := range 5 {
			if d := took(); d != 50*time.Millisecond {
				t.Errorf("call %d of a store that hangs took %s", i, d)
			}
		}
		for range 1000 {
			if d := took(); d != 0 {
				t.Fatalf("a store that is left alone cost %s", d)
			}
		}
		time.Sleep(time.Second + time.Microsecond)
		var group sync.WaitGroup
		var mu sync.Mutex
		var all []time.Duration
		for range 10 {
			group.Go(func() {
				d := took()
				mu.Lock()
				defer mu.Unlock()
				all = append(all, d)
			})
		}
		group.Wait()
		if slices.Sort(all); all[8] != 0 || all[9] != 50*time.Millisecond {
			t.Errorf("of ten, one should ask again: they took %s", all)
		}
		if n := b.asked.Load(); n != 6 {
			t.Errorf("the store was asked %d times", n)
		}
		b.how.Store(works)
		time.Sleep(time.Second + time.Microsecond)
		if d := take(t, s, r); d.Degraded() {
			t.Error("the store is back, and was not asked")
		}
		want := fallback.Stats{DegradedFor: 2*time.Second + 50*time.Millisecond + 2*time.Microsecond, Instead: 1015, Failures: 6}
		if got := s.Stats(); got != want {
			t.Errorf("%+v; want %+v", got, want)
		}
	})
}

// What says nothing of the store does not count against it: wrong input, denials, callers who leave.
func TestWhatIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Failures: 1, OnChange: func(bool, error) { t.Error("the store was left alone") }})
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
			t.Errorf("what the store refuses: %v", err)
		}
		b.how.Store(hangs)
		ctx, cancel := context.WithTimeout(t.Context(), 49*time.Millisecond)
		defer cancel()
		if _, err := s.Take(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a deadline before the budget: %v", err)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := s.TakeAll(gone, []headgate.Request{r}, make([]headgate.Decision, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who left: %v", err)
		}
		if got := s.Stats(); got != (fallback.Stats{}) {
			t.Errorf("%+v", got)
		}
	})
}

func invalid(err error) bool {
	_, is := errors.AsType[*headgate.InvalidError](err)
	return is
}

// An observer is told of each change once, in order, and may ask the store himself.
func TestOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		var s *fallback.Store
		var told []string
		r := request("10/s")
		s = newStore(t, b, fallback.Options{Failures: 2, OnChange: func(degraded bool, err error) {
			if degraded != s.Stats().Degraded {
				t.Error("the counts say otherwise")
			}
			take(t, s, r)
			if degraded {
				told = append(told, "down: "+err.Error())
			} else {
				told = append(told, "up")
			}
		}})
		for range 3 {
			b.how.Store(fails)
			for range 4 {
				take(t, s, r)
			}
			time.Sleep(time.Second + time.Microsecond)
			take(t, s, r) // fails once more, which is no change
			b.how.Store(works)
			time.Sleep(time.Second + time.Microsecond)
			take(t, s, r)
		}
		if want := []string{"down: broken", "up", "down: broken", "up", "down: broken", "up"}; !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
	})
}

// An observer that panics does so in the caller who tells him, and is told of the next change.
func TestOnChangeThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		var told []bool
		s := newStore(t, b, fallback.Options{Failures: 1, OnChange: func(degraded bool, _ error) {
			told = append(told, degraded)
			panic("observer")
		}})
		for _, how := range []int32{fails, works, fails} {
			b.how.Store(how)
			func() {
				defer func() {
					if p := recover(); p != "observer" {
						t.Errorf("recovered %v", p)
					}
				}()
				_, _ = s.Take(t.Context(), request("10/s"))
			}()
			time.Sleep(time.Second + time.Microsecond)
		}
		if want := []bool{true, false, true}; !slices.Equal(told, want) {
			t.Errorf("told %v", told)
		}
	})
}

// A store of which every second call fails is left alone, too.
func TestHalfOfTheCallsFail(t *testing.T) {
	b := newBreakable()
	s := newStore(t, b, fallback.Options{})
	r := request("1000000/s")
	for i := range 20 {
		b.how.Store(works)
		if i%2 == 1 {
			b.how.Store(fails)
		}
		take(t, s, r)
	}
	if got := s.Stats(); !got.Degraded || got.Failures != 5 {
		t.Errorf("%+v", got)
	}
}

// One of which every tenth call fails is asked still; and who says that no number of failures is enough, is heard.
func TestFewCallsFail(t *testing.T) {
	for failures, calls := range map[int]int{0: 10, 1 << 32: 1} {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Failures: failures})
		for i := range 100 {
			b.how.Store(works)
			if i%calls == calls-1 {
				b.how.Store(fails)
			}
			take(t, s, request("1000000/s"))
		}
		if got := s.Stats(); got.Degraded || got.Failures != uint64(100/calls) {
			t.Errorf("%d failures: %+v", failures, got)
		}
	}
}

// Closed tells when the store is asked again; what it could not tell truly is an error.
func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Failures: 1})
		b.how.Store(fails)
		r := request("10/s")
		d := take(t, s, r)
		if want := (headgate.Decision{Limit: r.Limit.Share(1), RetryAfter: time.Second + time.Microsecond, ResetAfter: time.Second + time.Microsecond}); d != want || !d.Degraded() {
			t.Errorf("%+v; want %+v", d, want)
		}
		time.Sleep(999 * time.Millisecond)
		if d := take(t, s, r); d.RetryAfter != 50*time.Millisecond {
			t.Errorf("just before the store is asked: %s", d.RetryAfter)
		}
		r.Cost = 11
		if d := take(t, s, r); d.RetryAfter != headgate.Never {
			t.Errorf("more than the limit grants: %s", d.RetryAfter)
		}
		r.Cost = -1
		if d := take(t, s, r); !d.Allowed() {
			t.Errorf("a refund: %+v", d)
		}
		r.Cost, r.MaxWait = 1, time.Hour
		if d, err := s.Take(t.Context(), r); !errors.Is(err, errBroken) {
			t.Errorf("a turn: %+v, %v", d, err)
		}
		if err := s.Reset(t.Context(), r.Key, r.Limit); !errors.Is(err, errBroken) {
			t.Errorf("reset: %v", err)
		}
		// Who comes when he was told to is answered by the store.
		b.how.Store(works)
		r.MaxWait = 0
		time.Sleep(time.Millisecond + time.Microsecond)
		if d := take(t, s, r); d.Degraded() || !d.Allowed() {
			t.Errorf("after that: %+v", d)
		}
	})
}

func TestOpen(t *testing.T) {
	b := newBreakable()
	s := newStore(t, b, fallback.Options{Mode: fallback.Open, Failures: 1, Pause: time.Hour})
	b.how.Store(fails)
	r := request("10/s")
	for range 100 {
		r.MaxWait = time.Hour - r.MaxWait // a turn comes at once
		if d := take(t, s, r); d != (headgate.Decision{Limit: r.Limit.Share(1), Remaining: 10}) {
			t.Fatalf("%+v", d)
		}
	}
	all := r
	all.Cost, all.Ticket = 10, 7
	if d := take(t, s, all); !d.Allowed() {
		t.Errorf("all at once: %+v", d)
	}
	all.Cost = 0
	if d, err := s.Take(t.Context(), all); !errors.Is(err, fallback.ErrDegraded) {
		t.Errorf("a look at that, which has had its turn: %+v, %v", d, err)
	}
	two := []headgate.Request{request("a=10/s"), request("b=10/s")}
	two[1].Cost = 11
	ds := make([]headgate.Decision, 2)
	if err := s.TakeAll(t.Context(), two, ds); err != nil || !ds[0].Allowed() || ds[1].RetryAfter != headgate.Never {
		t.Errorf("%+v, %v", ds, err)
	}
	if got := s.Stats().Instead; got != 104 {
		t.Errorf("%d decisions instead of the store", got)
	}
}

// Many callers at once, while the store fails and answers at random and the number of instances changes:
// each is answered, and who asks with more limits than are remembered is, too.
func TestManyCallers(t *testing.T) {
	b := newBreakable()
	var round atomic.Int64
	s := newStore(t, b, fallback.Options{
		Mode: fallback.Local, Failures: 2, Pause: time.Microsecond, OnChange: func(bool, error) {},
		Instances: func() int { return int(round.Load() % 5) },
	})
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range int64(1500) {
				b.how.Store(int32(round.Add(1) % 2))
				l := headgate.PerSecond(10).Burst(10 + i)
				d, err := s.Take(t.Context(), headgate.Request{Key: "k", Limit: l, Cost: 1})
				if err != nil || d.Limit.Name() != l.Name() {
					t.Errorf("caller %d: %+v, %v", g, d, err)
				}
			}
		})
	}
	group.Wait()
	if stats := s.Stats(); stats.Instead == 0 || stats.Instead == 6000 {
		t.Errorf("%+v", stats)
	}
}
