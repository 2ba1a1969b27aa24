package headgate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// steady is a way to the store that takes half a millisecond in each direction.
func steady() time.Duration { return 500 * time.Microsecond }

// A process asks for a token each 100 microseconds.
func TestLeaseSavesCalls(t *testing.T) {
	for _, text := range []string{"50000/s burst 100000", "50000/s", "50000/s fixed-window", "100/2ms burst 50000 stepped"} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{store: NewMemory(100), limit: must(ParseLimit(text))}
			defer time.Sleep(time.Second) // until all that is on its way has arrived
			p := f.process(LeaseOptions{}, steady)
			const asked = 8000
			var wg sync.WaitGroup
			for range asked {
				wg.Go(func() {
					if d, _ := p.ask(t.Context(), 1); !d.Allowed() {
						t.Errorf("%s: refused: %+v", text, d)
					}
				})
				time.Sleep(100 * time.Microsecond)
			}
			wg.Wait()
			calls := p.calls.Load()
			t.Logf("%s: %d calls for %d requests", text, calls, asked)
			// Tokens last for seven eighths of 50 or 100 ms. Until there are new ones, in one round trip or,
			// if some are to be taken away from a bucket, in two, eleven or 22 ask the store.
			if most := int64(asked / 12); calls > most {
				t.Errorf("%s: %d calls for %d requests; want at most %d", text, calls, asked, most)
			}
		})
	}
}

// What is not hot, and what takes no part, costs one call a request.
func TestLeaseOfColdKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100000), limit: must(ParseLimit("1000/s"))}
		defer time.Sleep(time.Second) // until all that is on its way has arrived
		p := f.process(LeaseOptions{Keys: 64}, steady)
		calls := int64(0)
		take := func(r Request) {
			calls++
			if _, err := p.lease.Take(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3000 { // at most 15 of a key in a term
			take(Request{Key: fmt.Sprint(i % 7), Limit: f.limit, Cost: 1})
		}
		for i := range 3000 {
			take(Request{Key: fmt.Sprint("once", i), Limit: f.limit, Cost: 1})
		}
		time.Sleep(time.Second)
		small, sliding, log := must(ParseLimit("300/s")), must(ParseLimit("1000/s sliding-window")), must(ParseLimit("1000/s sliding-log"))
		for range 100 {
			for _, r := range []Request{
				{Limit: f.limit, Cost: 0}, {Limit: f.limit, Cost: -1}, {Limit: f.limit, Cost: 1, At: time.Now()}, {Limit: f.limit, Cost: 1, MaxWait: 1},
				{Limit: f.limit, Cost: 1, Ticket: 1}, {Limit: small, Cost: 1}, {Limit: sliding, Cost: 1}, {Limit: log, Cost: 1},
				{Limit: f.limit, Cost: f.limit.Capacity() + 1},
			} {
				r.Key = "apart"
				take(r)
			}
		}
		rs, ds := []Request{{Key: "apart", Limit: f.limit, Cost: 1}}, make([]Decision, 1)
		for range 100 {
			calls++
			if err := p.lease.TakeAll(t.Context(), rs, ds); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if got := p.calls.Load(); got != calls {
			t.Errorf("%d calls; want %d", got, calls)
		}
		if n := len(p.lease.demands.rows) * demandWays; n != 64 {
			t.Errorf("%d keys are counted; want 64", n)
		}
	})
}

// A burst comes after the key was hot in four processes.
func TestLeaseIsShortByAtMostThreeShares(t *testing.T) {
	for _, text := range []string{"5000/s", "1000/s burst 5000", "20/10ms burst 5000 stepped", "5000/s fixed-window"} {
		least := int64(math.MaxInt64)
		for offset := range 10 {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{store: NewMemory(100), limit: must(ParseLimit(text))}
				defer time.Sleep(time.Second) // until all that is on its way has arrived
				var wg sync.WaitGroup
				for range 4 {
					p := f.process(LeaseOptions{}, steady)
					wg.Go(func() {
						for range 1000 {
							p.ask(t.Context(), 1)
							time.Sleep(4 * time.Millisecond)
						}
					})
				}
				time.Sleep(2*time.Second + time.Duration(offset)*10*time.Millisecond)
				d := must(f.store.Take(t.Context(), Request{Key: "k", Limit: f.limit}))
				used := int64(0)
				f.mu.Lock()
				for _, u := range f.uses { // in this window; a bucket has refilled most of it
					if now := time.Now(); f.limit.Algorithm() == AlgorithmFixedWindow && u.at >= now.Truncate(time.Second).UnixMicro() {
						used += u.n
					}
				}
				f.mu.Unlock()
				least = min(least, d.Remaining+used)
				wg.Wait()
			})
		}
		capacity := must(ParseLimit(text)).Capacity()
		t.Logf("%s: a burst of %d, of %d", text, least, capacity)
		if want := capacity * 7 / 10; least < want {
			t.Errorf("%s: a burst finds %d tokens; want at least %d", text, least, want)
		}
	}
}

// Whoever comes back when told to, in any of four processes, leaves nothing over.
func TestLeaseHasTheWholeRate(t *testing.T) {
	for _, text := range []string{"2000/s", "1000/s burst 2000", "20/10ms burst 2000 stepped", "2000/s fixed-window"} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{store: NewMemory(100), limit: must(ParseLimit(text))}
			defer time.Sleep(time.Second) // until all that is on its way has arrived
			const span = 5 * time.Second
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			end := time.Now().Add(span)
			var wg sync.WaitGroup
			for i := range 4 {
				p := f.process(LeaseOptions{}, steady)
				for range 5 {
					wg.Go(func() {
						for time.Now().Before(end) {
							if d, _ := p.ask(t.Context(), 1); !d.Allowed() {
								time.Sleep(d.RetryAfter)
							}
							time.Sleep(time.Duration(i) * 100 * time.Microsecond)
						}
					})
				}
			}
			wg.Wait()
			l := f.limit
			rate := int64(span / l.Period() * time.Duration(max(l.Refill(), 0)))
			if l.Refill() == 0 {
				rate = int64(span/l.Period()) * l.Capacity()
			}
			want := rate - l.Capacity()/10 // which may lie in a process
			t.Logf("%s: %d granted, %d flew in", text, f.granted(), rate)
			if got := f.granted(); got < want {
				t.Errorf("%s: %d granted in %s; want at least %d", text, got, span, want)
			}
		})
	}
}

func TestLeaseOptions(t *testing.T) {
	for _, c := range []struct {
		store Store
		o     LeaseOptions
		field string
	}{
		{nil, LeaseOptions{}, "store"},
		{&Memory{}, LeaseOptions{}, "store"},
		{NewMemory(1), LeaseOptions{Share: -0.1}, "share"},
		{NewMemory(1), LeaseOptions{Share: 0.26}, "share"},
		{NewMemory(1), LeaseOptions{Share: math.NaN()}, "share"},
		{NewMemory(1), LeaseOptions{Term: -1}, "term"},
		{NewMemory(1), LeaseOptions{Term: 1500 * time.Microsecond}, "term"},
		{NewMemory(1), LeaseOptions{Term: time.Hour}, "term"},
		{NewMemory(1), LeaseOptions{Keys: -1}, "keys"},
		{NewMemory(1), LeaseOptions{Keys: 1<<24 + 1}, "keys"},
	} {
		_, err := NewLease(c.store, c.o)
		if e, ok := errors.AsType[*InvalidError](err); !ok || e.Field != c.field {
			t.Errorf("%+v: %v; want an error about the %s", c.o, err, c.field)
		}
	}
	l := must(NewLease(NewMemory(1), LeaseOptions{}))
	if _, err := l.Take(t.Context(), Request{Cost: 1}); !isInvalid(err) {
		t.Errorf("no limit: %v", err)
	}
	if err := l.Reset(t.Context(), "k", Limit{}); !isInvalid(err) {
		t.Errorf("a reset of no limit: %v", err)
	}
}

// What is lent of a limit, whatever its numbers: no more flows in within a term than is lent.
func TestLendingOf(t *testing.T) {
	for text, want := range map[string]lending{
		"1000/s":                               {most: 50, term: 50 * time.Millisecond},
		"1000/s burst 10000":                   {most: 500, term: 100 * time.Millisecond},
		"1000/s burst 320":                     {most: 16, term: 16 * time.Millisecond},
		"1000/s burst 319":                     {},
		"100000/s burst 1000":                  {},
		"1000/s fixed-window":                  {most: 50, term: 50 * time.Millisecond},
		"50/10ms burst 2000 stepped":           {most: 100, term: 20*time.Millisecond - time.Microsecond},
		"1000/s stepped":                       {},
		"1/d burst 1000":                       {most: 50, term: 100 * time.Millisecond},
		"9007199254740991/285y fixed-window":   {},
		"1000000000000/d burst 4000000000":     {most: 200000000, term: 100 * time.Millisecond},
		"1000000000000/ms burst 1000000000000": {},
	} {
		l, err := ParseLimit(text)
		if err != nil {
			l = FixedWindow(maxExact, 285*365*24*time.Hour)
		}
		got, ok := lendingOf(l, DefaultLeaseShare, DefaultLeaseTerm)
		if ok != (want.most > 0) || got.most != want.most || got.term != want.term {
			t.Errorf("%s: %d for %s, %v; want %d for %s", text, got.most, got.term, ok, want.most, want.term)
		}
		if ok && got.drain.rule != nil && got.drain.Validate() != nil {
			t.Errorf("%s: %v", text, got.drain.Validate())
		}
	}
}

// A process forgets what it took ahead when it resets the key, and gives it back when it is closed.
func TestLeaseResetAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10000/s"))}
		defer time.Sleep(time.Second) // until all that is on its way has arrived
		p := f.process(LeaseOptions{}, func() time.Duration { return 0 })
		p.hold(t)
		if err := p.lease.Reset(t.Context(), "k", f.limit); err != nil {
			t.Fatal(err)
		}
		if _, ahead := p.ask(t.Context(), 1); ahead {
			t.Error("after a reset something was ahead")
		}
		look := func() int64 {
			return must(f.store.Take(t.Context(), Request{Key: "k", Limit: f.limit})).Remaining
		}
		time.Sleep(time.Second)

		left, before := p.hold(t).left, look()
		d, ahead := p.ask(t.Context(), left+1)
		if ahead || d.Allowed() && d.Remaining != before-left-1 {
			t.Errorf("more than was ahead: %+v, %v", d, ahead)
		}
		synctest.Wait()
		left, before = p.hold(t).left, look()
		if d, ahead := p.ask(t.Context(), 1); !ahead || !d.Allowed() || d.Remaining > f.limit.Capacity() || d.Remaining < left || d.ResetAfter <= 0 || d.Limit != f.limit {
			t.Errorf("ahead: %+v, %v", d, ahead)
		}
		if err := p.lease.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := look(); got != before+left-1 {
			t.Errorf("%d remain after %d of %d were given back", got, left-1, before)
		}
		for range 100 {
			if _, ahead := p.ask(t.Context(), 1); ahead {
				t.Fatal("taken ahead after Close")
			}
			synctest.Wait()
		}
		if f.over() != 0 {
			t.Errorf("%d over", f.over())
		}
	})
}

// While a reset is on its way nothing is used that was taken ahead before, and when it is back, nothing
// that was taken ahead meanwhile.
func TestLeaseResetOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10000/s"))}
		var late atomic.Int64
		p := f.process(LeaseOptions{}, func() time.Duration { return time.Duration(late.Load()) })
		defer func() { _ = p.lease.Close(t.Context()) }()
		p.hold(t)
		late.Store(int64(15 * time.Millisecond))
		reset := make(chan error)
		go func() { reset <- p.lease.Reset(t.Context(), "k", f.limit) }()
		synctest.Wait()
		late.Store(0)
		if _, ahead := p.ask(t.Context(), 1); ahead {
			t.Error("what was taken ahead before the reset is used")
		}
		again := false
		for range 25 { // of the 30 milliseconds that the reset takes
			_, ahead := p.ask(t.Context(), 1)
			again = again || ahead
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		if !again {
			t.Error("nothing was taken ahead during the reset")
		}
		if err := <-reset; err != nil {
			t.Fatal(err)
		}
		if _, ahead := p.ask(t.Context(), 1); ahead {
			t.Error("what was taken ahead during the reset is used")
		}
	})
}

// Close ends with its context.
func TestLeaseCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10000/s"))}
		defer time.Sleep(time.Second) // until all that is on its way has arrived
		var late atomic.Int64
		p := f.process(LeaseOptions{}, func() time.Duration { return time.Duration(late.Load()) })
		p.hold(t)
		late.Store(int64(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		const want = "headgate: context deadline exceeded before all that was taken ahead was given back"
		if err := p.lease.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
		time.Sleep(2 * time.Hour)
	})
}

// Close says what the store did not get back: if it cannot say, if that is late, and if what was taken ahead
// arrives when it is closed already.
func TestLeaseCloseGivesNothingBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		refuse func(r *Request) error // to give it back
		is     error
		want   string
	}{
		{"a store that cannot say", func(*Request) error { return errDead }, errDead, "dead"},
		{"a store for which it is late", func(r *Request) error { r.Ticket++; return nil }, errLeaseOver, "it came too late"},
	} {
		for _, underWay := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10000/s burst 100000"))}
				p := f.process(LeaseOptions{}, func() time.Duration { return 0 })
				tokens := int64(0)
				p.bend = func(_ context.Context, rs []Request, _ []Decision) (done bool, err error) {
					if rs[0].Cost < 0 && p.lease.closed.Load() {
						tokens -= rs[0].Cost
						err = c.refuse(&rs[1])
					} else if underWay {
						time.Sleep(5 * time.Millisecond)
					}
					return err != nil, err
				}
				if underWay {
					for range leastTakes {
						p.ask(t.Context(), 1)
					}
				} else {
					p.hold(t)
				}
				for range 2 { // which says the same again
					err := p.lease.Close(t.Context())
					want := fmt.Sprintf("headgate: %d tokens that were taken ahead may not have been given back: %s", tokens, c.want)
					if tokens == 0 || !errors.Is(err, c.is) || err.Error() != want {
						t.Errorf("%s, under way %v: %v; want %s", c.name, underWay, err, want)
					}
				}
			})
		}
	}
}

// Nor may what was being taken ahead, if the answer is lost.
func TestLeaseCloseWithALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10000/s burst 100000"))}
		defer time.Sleep(time.Second) // until all that is on its way has arrived
		p := f.process(LeaseOptions{}, func() time.Duration { return 0 })
		var tokens atomic.Int64
		p.bend = func(_ context.Context, rs []Request, _ []Decision) (bool, error) {
			tokens.Store(rs[0].Cost)
			time.Sleep(200 * time.Millisecond)
			return false, nil
		}
		for range leastTakes {
			p.ask(t.Context(), 1)
		}
		err := p.lease.Close(t.Context())
		if want := fmt.Sprintf("headgate: %d tokens that were taken ahead may not have been given back: context deadline exceeded", tokens.Load()); tokens.Load() == 0 || fmt.Sprint(err) != want {
			t.Errorf("%v; want %s", err, want)
		}
	})
}

// What is not given back in the ordinary course, which is stated, is no error of Close.
func TestLeaseCloseWithNothingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("10000/s"))}
		p := f.process(LeaseOptions{}, func() time.Duration { return 0 })
		refused := 0
		p.bend = func(_ context.Context, rs []Request, _ []Decision) (done bool, err error) {
			if rs[0].Cost < 0 {
				refused++
				return true, errDead
			}
			return false, nil
		}
		p.hold(t)
		time.Sleep(time.Second)
		if err := p.lease.Close(t.Context()); err != nil || refused == 0 {
			t.Errorf("%v, after %d", err, refused)
		}
	})
}
