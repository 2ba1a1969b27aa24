package headgate

import (
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
			var waited atomic.Int64
			for range asked {
				wg.Go(func() {
					d, ahead := p.ask(t.Context(), 1)
					if !d.Allowed() {
						t.Errorf("%s: refused: %+v", text, d)
					}
					if !ahead {
						waited.Add(1)
					}
				})
				time.Sleep(100 * time.Microsecond)
			}
			wg.Wait()
			calls := p.calls.Load()
			t.Logf("%s: %d calls for %d requests, of which %d waited", text, calls, asked, waited.Load())
			// Tokens last for seven eighths of 50 or 100 ms, and there are new ones before they are spent.
			if most := int64(asked / 60); calls > most || waited.Load() > most {
				t.Errorf("%s: %d calls for %d requests, of which %d waited; want at most %d", text, calls, asked, waited.Load(), most)
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

// Eight processes find at the same moments that less is missing from a bucket than loans need: one of
// them takes it away.
func TestLeaseIsShortByNoMoreInStep(t *testing.T) {
	for _, text := range []string{"3000/s burst 5000", "30/10ms burst 5000 stepped"} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{store: NewMemory(100), limit: must(ParseLimit(text))}
			defer time.Sleep(time.Second) // until all that is on its way has arrived
			var wg sync.WaitGroup
			for range 8 {
				p := f.process(LeaseOptions{}, steady)
				wg.Go(func() {
					for range 500 {
						p.ask(t.Context(), 1)
						time.Sleep(4 * time.Millisecond)
					}
				})
			}
			missing := int64(0)
			for range 400 {
				missing = max(missing, 5000-must(f.store.Take(t.Context(), Request{Key: "k", Limit: f.limit})).Remaining)
				time.Sleep(5 * time.Millisecond)
			}
			wg.Wait()
			t.Logf("%s: at most %d missing, of 5000", text, missing)
			if missing > 1500 || missing < 750 {
				t.Errorf("%s: %d are missing; want what loans need, and at most three Shares", text, missing)
			}
		})
	}
}

// Of two loans the first is spent first, the second by who asks for more than is left of it; and one that is
// spent makes room for another.
func TestLeaseSpendsTwoLoans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := must(ParseLimit("10/s burst 100000"))
		l := must(NewLease(NewMemory(100), LeaseOptions{}))
		row, hash := l.demands.row("k", limit)
		lent, _ := lendingOf(limit, l.share, l.term)
		d := row.begin(hash, 0, 1)
		loan := func(left int64) *loan {
			n := newLoan(lent, "k", left)
			n.left, n.until, n.said = left, int64(time.Second), Decision{Limit: limit}
			return n
		}
		d.loan, d.next, d.takes = loan(16), loan(10), leastTakes // and hot
		for i, c := range []struct{ cost, first, second int64 }{{13, 3, 10}, {4, 3, 6}, {2, 1, 6}, {1, 6, 0}, {6, 0, 0}} {
			if _, ok := l.spend(row, hash, &Request{Key: "k", Limit: limit, Cost: c.cost}); !ok {
				t.Fatalf("%d: not ahead", i)
			}
			if d.loan.has() != c.first || d.next.has() != c.second {
				t.Errorf("%d: %d and %d are left; want %d and %d", i, d.loan.has(), d.next.has(), c.first, c.second)
			}
		}
		d.loan, d.next = loan(5), loan(10)
		l.spend(row, hash, &Request{Key: "k", Limit: limit, Cost: 10})
		if d.loan.has() != 5 || d.next != nil {
			t.Errorf("the second is spent: %d are left, and %d", d.loan.has(), d.next.has())
		}
		d.loan, d.next, d.rest = loan(5), loan(10), 0
		l.granted(row, hash, &Request{Key: "k", Limit: limit, Cost: 20})
		if d.loan.has() != 5 || d.next.has() != 10 {
			t.Errorf("after a request for more than both have %d are left, and %d", d.loan.has(), d.next.has())
		}
	})
}

// has is what is left of n, if it is a loan.
func (n *loan) has() int64 {
	if n == nil {
		return 0
	}
	return n.left
}

func (m *Memory) left(t *testing.T, l Limit) int64 {
	t.Helper()
	return must(m.Take(t.Context(), Request{Key: "k", Limit: l})).Remaining
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
		calls := p.calls.Load()
		for range 100 {
			if _, ahead := p.ask(t.Context(), 1); ahead {
				t.Fatal("taken ahead after Close")
			}
			time.Sleep(time.Millisecond)
		}
		if n := p.calls.Load() - calls; n != 100 {
			t.Errorf("%d calls for 100 requests after Close", n)
		}
		if f.over() != 0 {
			t.Errorf("%d over", f.over())
		}
	})
}

// A loan is asked for once, however long the answer takes.
func TestLeaseAsksForALoanOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &instead{Store: NewMemory(100), own: NewMemory(100)}
		l := must(NewLease(s, LeaseOptions{}))
		var loans atomic.Int64
		s.taken = func(rs []Request) {
			if rs[0].Cost > 0 {
				loans.Add(1)
				time.Sleep(60 * time.Millisecond)
			}
		}
		for range 70 {
			must(l.Take(t.Context(), Request{Key: "k", Limit: must(ParseLimit("1000/s burst 100000")), Cost: 1}))
			time.Sleep(time.Millisecond)
		}
		if n := loans.Load(); n != 1 {
			t.Errorf("%d loans were asked for at a time", n)
		}
		time.Sleep(time.Second)
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
