package headgate

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The worst that the line has to bear: two loans within a term, as large as the pool gives, the first
// given back in time, the second used at its end, when all that may flow in has.
func TestLeaseAtTheLine(t *testing.T) {
	for _, text := range []string{"1250/s burst 1000", "125/100001us burst 1000 stepped"} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{store: NewMemory(100), limit: must(ParseLimit(text))}
			l := must(NewLease(f.store, LeaseOptions{Share: 0.25}))
			lent, _ := lendingOf(f.limit, l.share, l.term)
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			take := func(n int64) {
				if d := must(f.store.Take(t.Context(), Request{Key: "k", Limit: f.limit, Cost: n})); !d.Allowed() {
					t.Fatalf("%s: %d refused: %+v", text, n, d)
				}
				f.used(n)
			}
			look := func(limit Limit) int64 {
				return must(f.store.Take(t.Context(), Request{Key: "k", Limit: limit})).Remaining
			}
			take((lineOfMost-1)*lent.most + 1)
			first := newLoan(lent, "k", lent.most)
			if got := l.borrow(first); got.until == 0 {
				t.Fatalf("%s: the first: %+v", text, got)
			}
			time.Sleep(lent.term - 2*time.Millisecond)
			got := l.borrow(newLoan(lent, "k", min(look(lent.pool), lent.most)))
			l.giveBack(first, lent.most)
			if got.tokens < lent.most*9/10 || got.until == 0 {
				t.Fatalf("%s: the second: %+v", text, got)
			}
			time.Sleep(time.Duration(got.until-l.now()) - time.Microsecond)
			take(look(f.limit))
			f.used(got.tokens)
			if over := f.over(); over != 0 {
				t.Errorf("%s: %d tokens over", text, over)
			}
		})
	}
}

// If it is another's turn to take tokens away, a loan may be used if he did, and not if the bucket is full
// again. And what has no ticket is not given back.
func TestLeaseOfWhichAnotherDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &instead{Store: NewMemory(100), own: NewMemory(100)}
		l := must(NewLease(s, LeaseOptions{}))
		lent, _ := lendingOf(must(ParseLimit("1/d burst 10000")), l.share, l.term)
		n := newLoan(lent, "k", 10)
		if got := l.borrow(n); got.until == 0 || n.said.Remaining != 10000-downOfMost*lent.most-1 { // a token may be missing in part
			t.Errorf("the first: %+v, %+v", got, n.said)
		}
		n.ticket = 0
		l.giveBack(n, 10)
		if got := l.borrow(newLoan(lent, "k", 10)); got.until == 0 {
			t.Errorf("when enough is missing: %+v", got)
		}
		if left := must(s.Take(t.Context(), Request{Key: "k", Limit: lent.limit})).Remaining; left != n.said.Remaining-10 {
			t.Errorf("%d are left", left)
		}
		if err := s.Reset(t.Context(), "k", lent.limit); err != nil {
			t.Fatal(err)
		}
		if got := l.borrow(newLoan(lent, "k", 10)); got.until != 0 {
			t.Errorf("when it is full again: %+v", got)
		}
	})
}

// However many ask for loans, and whatever they ask for, no more than a Share is lent within a term.
func TestLeaseLendsAShareInATerm(t *testing.T) {
	for _, text := range []string{"1250/s burst 1000", "125/100001us burst 1000 stepped", "1000/s fixed-window"} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			l := must(NewLease(NewMemory(100), LeaseOptions{Share: 0.25}))
			lent, _ := lendingOf(must(ParseLimit(text)), l.share, l.term)
			sum := int64(0)
			for range 100 {
				for sum < 1000 {
					got := l.borrow(newLoan(lent, "k", 1))
					if got.tokens == 0 {
						break
					}
					sum++
				}
				time.Sleep(lent.term / 100)
			}
			if sum < 2*lent.most*9/10 || sum > 2*lent.most {
				t.Errorf("%s: %d lent in %s; want %d", text, sum, lent.term, 2*lent.most)
			}
		})
	}
}

// A loan is spent on what it was taken for, and before its end.
func TestLoanSpend(t *testing.T) {
	limit, other := must(ParseLimit("1000/s")), must(ParseLimit("1001/s"))
	for _, c := range []struct {
		what string
		r    Request
		now  int64
		ok   bool
	}{
		{"all of it", Request{Key: "k", Limit: limit, Cost: 10}, 99, true},
		{"more than it has", Request{Key: "k", Limit: limit, Cost: 11}, 99, false},
		{"at its end", Request{Key: "k", Limit: limit, Cost: 1}, 100, false},
		{"another key of that hash", Request{Key: "K", Limit: limit, Cost: 1}, 99, false},
		{"another limit of that hash", Request{Key: "k", Limit: other, Cost: 1}, 99, false},
	} {
		n := loan{lending: lending{limit: limit}, key: "k", left: 10, until: 100, said: Decision{Limit: limit}}
		d, ok := n.spend(&c.r, c.now)
		if want := n.left == 10-c.r.Cost; ok != c.ok || ok != want || ok != d.Allowed() {
			t.Errorf("%s: %v, %d left", c.what, ok, n.left)
		}
	}
}

// quick is a store whose clock runs faster than that of the process, by less than an eighth.
type quick struct{ Store }

var quickSince = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when a bubble begins

func (s quick) now() time.Time {
	return quickSince.Add(time.Since(quickSince) * 112 / 100).Truncate(time.Microsecond)
}

func (s quick) Take(ctx context.Context, r Request) (Decision, error) {
	r.At = s.now()
	return s.Store.Take(ctx, r)
}

func (s quick) TakeAll(ctx context.Context, rs []Request, ds []Decision) error {
	rs = append([]Request(nil), rs...)
	for i := range rs {
		rs[i].At = s.now()
	}
	return s.Store.TakeAll(ctx, rs, ds)
}

// What lies in a process at the end of a window is not used in the next one, by the store's clock.
func TestLeaseOfAWindowByAQuickerClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quick{NewMemory(100)}
		l := must(NewLease(s, LeaseOptions{Share: 0.25}))
		r := Request{Key: "k", Limit: must(ParseLimit("1000/s fixed-window")), Cost: 1}
		used, ahead := map[int64]int64{}, 0
		row, hash := l.demands.row(r.Key, r.Limit)
		for range 20000 {
			now := s.now()
			window, at := now.Unix(), now.Sub(now.Truncate(time.Second))
			if all := (Request{Key: r.Key, Limit: r.Limit, Cost: 1000}); window%2 == 1 && used[window] == 0 && must(s.Take(t.Context(), all)).Allowed() {
				used[window] = 1000 // another process takes the whole of a new one
			}
			if window%2 == 0 && at > time.Duration(700+window*7%100)*time.Millisecond || window%2 == 1 && at < 20*time.Millisecond {
				row.mu.Lock()
				if d := row.find(hash); d != nil && d.loan != nil && d.loan.left > 0 {
					ahead++
				}
				row.mu.Unlock()
				if must(l.Take(t.Context(), r)).Allowed() {
					used[window]++
				}
			}
			synctest.Wait()
			time.Sleep(500 * time.Microsecond)
		}
		for window, n := range used {
			if n > 1000 {
				t.Errorf("window %d: %d tokens over", window-quickSince.Unix(), n-1000)
			}
		}
		if ahead < 1000 {
			t.Errorf("ahead only %d times", ahead)
		}
		_ = l.Close(t.Context())
	})
}

// What is left at the end of a loan comes back, though the store's clock is ahead of the process's by then.
func TestLeaseComesBackByAQuickerClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quick{NewMemory(100)}
		l := must(NewLease(s, LeaseOptions{Share: 0.25}))
		lent, _ := lendingOf(must(ParseLimit("1/d burst 1000")), l.share, l.term)
		look := func() int64 {
			return must(s.Take(t.Context(), Request{Key: "k", Limit: lent.limit})).Remaining
		}
		must(s.Take(t.Context(), Request{Key: "k", Limit: lent.limit, Cost: 500}))
		n := newLoan(lent, "k", 100)
		got := l.borrow(n)
		time.Sleep(time.Duration(got.until - l.now()))
		l.giveBack(n, got.tokens)
		if left := look(); left != 500 {
			t.Errorf("%d remain of 500 after all was given back", left)
		}
	})
}

// A request that is given back while tokens are lent, at once and unused, adds no more than what is lent; and
// that is what the docs of Lease say, so it is not never over.
func TestLeaseAndGiveBacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{store: NewMemory(100), limit: must(ParseLimit("1000/s"))}
		none := func() time.Duration { return 0 }
		holder, other := f.process(LeaseOptions{Share: 0.25}, none), f.process(LeaseOptions{Share: 0.25}, none)
		var lent int64
		for range 3 {
			r, err := must(NewLimiter(other.lease, f.limit)).Reserve(t.Context(), "k", 600)
			if err != nil || r.Delay() != 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			n := holder.hold(t)
			if err := r.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range f.uses {
				if f.uses[i].n == 600 { // which were not used
					f.uses[i].n = 0
				}
			}
			time.Sleep(time.Duration(n.until-holder.lease.now()) - 10*time.Microsecond)
			d := must(f.store.Take(t.Context(), Request{Key: "k", Limit: f.limit}))
			other.ask(t.Context(), d.Remaining)
			for range n.left {
				holder.ask(t.Context(), 1)
			}
			lent += n.left
			time.Sleep(2 * time.Second)
		}
		if over := f.over(); over == 0 || over > lent || over > 3*250 {
			t.Errorf("%d over, when %d were lent; want some, and no more", over, lent)
		}
	})
}

// instead is a store whose answers, while it is down, are those of a part of the limit.
type instead struct {
	Store
	down  atomic.Bool
	own   *Memory
	taken func(rs []Request) // told of each TakeAll
}

func (s *instead) Take(ctx context.Context, r Request) (Decision, error) {
	if !s.down.Load() {
		return s.Store.Take(ctx, r)
	}
	r.Limit = r.Limit.Share(2)
	return s.own.Take(ctx, r)
}

func (s *instead) TakeAll(ctx context.Context, rs []Request, ds []Decision) error {
	if s.taken != nil {
		s.taken(rs)
	}
	if !s.down.Load() {
		return s.Store.TakeAll(ctx, rs, ds)
	}
	rs = append([]Request(nil), rs...)
	for i := range rs {
		rs[i].Limit = rs[i].Limit.Share(2)
	}
	return s.own.TakeAll(ctx, rs, ds)
}

// Nothing of a share is taken ahead: what was goes back to it at once, and is not tried all the time.
func TestLeaseOfAShare(t *testing.T) {
	for _, text := range []string{"1000/d burst 10000", "10000/d fixed-window"} {
		synctest.Test(t, func(t *testing.T) {
			limit := must(ParseLimit(text))
			s := &instead{Store: NewMemory(100), own: NewMemory(100)}
			l := must(NewLease(s, LeaseOptions{}))
			defer func() { _ = l.Close(t.Context()) }()
			look := func(store Store, limit Limit) int64 {
				return must(store.Take(t.Context(), Request{Key: "k", Limit: limit})).Remaining
			}
			tries := 0
			s.taken = func(rs []Request) {
				if rs[0].Cost > 0 {
					tries++
				}
			}
			s.down.Store(true)
			for i := range int64(500) {
				d := must(l.Take(t.Context(), Request{Key: "k", Limit: limit, Cost: 1}))
				synctest.Wait()
				if left := look(s.own, limit.Share(2)); !d.Allowed() || !d.Degraded() || left != 5000-i-1 {
					t.Fatalf("%s: %d: %+v; %d left of the share", text, i, d, left)
				}
				time.Sleep(time.Millisecond)
			}
			if tries == 0 || tries > 10 { // one in half a Term
				t.Errorf("%s: tried %d times", text, tries)
			}
			s.down.Store(false)
			ahead := false
			for range 500 {
				before := look(s.Store, limit)
				must(l.Take(t.Context(), Request{Key: "k", Limit: limit, Cost: 1}))
				ahead = ahead || look(s.Store, limit) == before
				synctest.Wait()
				time.Sleep(time.Millisecond)
			}
			if !ahead {
				t.Errorf("%s: nothing was taken ahead after that", text)
			}
		})
	}
}

// A share cannot say that enough is missing from the bucket, though the limit lent: the loan goes back.
func TestLeaseOfWhichTheDrainIsOfAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := must(ParseLimit("1000/d burst 10000"))
		s := &instead{Store: NewMemory(100), own: NewMemory(100)}
		l := must(NewLease(s, LeaseOptions{}))
		drains := 0
		s.taken = func(rs []Request) {
			drain := strings.HasPrefix(rs[1].Limit.Name(), "drain-")
			if s.down.Store(drain); drain {
				drains++
			}
		}
		must(s.Take(t.Context(), Request{Key: "k", Limit: limit, Cost: 1400})) // so that a share may grant what is missing still
		for i := range int64(60) {
			must(l.Take(t.Context(), Request{Key: "k", Limit: limit, Cost: 1}))
			synctest.Wait()
			if d := must(s.Take(t.Context(), Request{Key: "k", Limit: limit})); d.Remaining != 8600-i-1 {
				t.Fatalf("%d of the bucket are left after %d were granted", d.Remaining, i+1)
			}
			time.Sleep(time.Millisecond)
		}
		if drains == 0 {
			t.Error("no bucket was too full")
		}
		_ = l.Close(t.Context())
	})
}

// What a share denies says nothing of the limit, whose turn it may be next; nor is it served as if it did.
func TestDenyCacheOfAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &instead{Store: NewMemory(100), own: NewMemory(100)}
		c := must(NewDenyCache(s, DenyCacheOptions{}))
		r := Request{Key: "k", Limit: must(ParseLimit("100/100s")), Cost: 1}
		s.down.Store(true)
		for i := range 60 {
			d := must(c.Take(t.Context(), r))
			if !d.Degraded() || d.Allowed() != (i < 50) {
				t.Fatalf("%d: %+v", i, d)
			}
		}
		s.down.Store(false)
		if d := must(c.Take(t.Context(), r)); !d.Allowed() || d.Remaining != 99 {
			t.Errorf("after it: %+v", d)
		}
	})
}
