package headgate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A reservation has its delay, and is settled once.
func TestReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(NewLimiter(NewMemorySize(1000), PerMinute(100).Named("model")))
		left := func() int64 { return must(l.Peek(t.Context(), "k")).Remaining }
		settle := func(want int64, err error) {
			t.Helper()
			if err != nil || left() != want {
				t.Errorf("%d are left, want %d: %v", left(), want, err)
			}
		}
		a, b := must(l.Reserve(t.Context(), "k", 90)), must(l.Reserve(t.Context(), "k", 40))
		if a.Delay() != 0 || b.Delay() != 18*time.Second {
			t.Errorf("delays %s, %s", a.Delay(), b.Delay())
		}
		settle(10, b.Cancel(t.Context()))
		settle(10, b.Cancel(t.Context()))
		settle(80, a.Commit(t.Context(), 20))
		settle(0, must(l.Reserve(t.Context(), "k", 10)).Commit(t.Context(), 80))
		if err := a.Commit(t.Context(), -1); err == nil {
			t.Error("a use of -1 was committed")
		}
	})
}

// A reservation that is cancelled gives its tokens back, unless another start was booked after it.
func TestACancelledReservationGivesItsTokensBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(NewLimiter(NewMemorySize(1000), PerSecond(1).Burst(2)))
		first := must(l.Reserve(t.Context(), "k", 2))
		second := must(l.Reserve(t.Context(), "k", 1))
		third := must(l.Reserve(t.Context(), "k", 2))
		if err := second.Cancel(t.Context()); err != nil || third.Delay() != 3*time.Second {
			t.Errorf("%s, %v", third.Delay(), err)
		}
		if err := third.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if r := must(l.Reserve(t.Context(), "k", 2)); r.Delay() != 3*time.Second || first.Delay() != 0 {
			t.Errorf("starts in %s and %s; want 3s and 0s", r.Delay(), first.Delay())
		}
	})
}

// A Cancel or Commit is done though its context has ended, and an error of the store is returned.
func TestACancelIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &networkStore{Store: NewMemorySize(1000)}
		l := must(NewLimiter(s, PerHour(1).Burst(10)))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		remaining := func() int64 { return must(l.Peek(t.Context(), "k")).Remaining }
		if err := must(l.Reserve(t.Context(), "k", 10)).Cancel(ended); err != nil || remaining() != 10 {
			t.Errorf("a cancel after the context has ended: %v, %d remain", err, remaining())
		}
		if err := must(l.Reserve(t.Context(), "k", 10)).Commit(ended, 4); err != nil || remaining() != 6 {
			t.Errorf("a commit after the context has ended: %v, %d remain", err, remaining())
		}
		if err := must(l.Reserve(t.Context(), "k", 7)).Cancel(ended); err != nil || remaining() != 6 {
			t.Errorf("a cancel ahead of the start, after the context has ended: %v, %d remain", err, remaining())
		}
		now, ahead := must(l.Reserve(t.Context(), "other", 10)), must(l.Reserve(t.Context(), "other", 10))
		s.lose = func(Request) bool { return true }
		if now.Cancel(t.Context()) == nil || ahead.Cancel(t.Context()) == nil {
			t.Error("a lost answer is no error")
		}
	})
}

// A reservation whose caller gives up while it waits is cancelled.
func TestAReservationIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(NewLimiter(&networkStore{Store: NewMemorySize(1000)}, PerMinute(1)))
		must(l.Reserve(t.Context(), "k", 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := must(l.Reserve(t.Context(), "k", 1)).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		if r := must(l.Reserve(context.Background(), "k", 1)); r.Delay() != 59*time.Second {
			t.Errorf("the next start time is in %s, want 59s", r.Delay())
		}
	})
}

// A reservation that waited is settled as any other.
func TestAReservationThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(NewLimiter(NewMemorySize(1000), PerSecond(1).Burst(5)))
		start := time.Now()
		must(l.Allow(t.Context(), "k"))
		r := must(l.ReserveWait(t.Context(), "k", 5))
		if took := time.Since(start); took != time.Second || r.Delay() != 0 {
			t.Errorf("after %s, with a delay of %s", took, r.Delay())
		}
		if err := r.Commit(t.Context(), 2); err != nil || must(l.Peek(t.Context(), "k")).Remaining != 3 {
			t.Error(must(l.Peek(t.Context(), "k")), err)
		}
		for _, n := range []int64{0, 6} {
			if _, err := l.ReserveWait(t.Context(), "k", n); !isInvalid(err) {
				t.Errorf("n = %d: %v", n, err)
			}
		}
	})
}

// punctual is a store that does nothing for a context that has ended, as one across a network.
type punctual struct{ Store }

func (s punctual) Take(ctx context.Context, r Request) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	return s.Store.Take(ctx, r)
}

// A deadline bounds the wait of a reservation, and not its settlement.
func TestAReservationWithADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(NewLimiter(punctual{NewMemorySize(1000)}, PerSecond(1).Burst(10)))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r := must(l.Reserve(ctx, "k", 10))
		_, err := l.Reserve(ctx, "k", 6)
		if d, late := errors.AsType[*DeadlineError](err); !late || d.Wait != 6*time.Second {
			t.Errorf("error %v, want a wait of 6s", err)
		}
		<-ctx.Done()
		if err := r.Commit(ctx, 8); err != nil {
			t.Error(err)
		}
		if left := must(l.Peek(t.Context(), "k")).Remaining; left != 7 {
			t.Errorf("%d are left, want 7: 5 s, and 2 that were not used", left)
		}
	})
}

// A reservation that is settled after its window has ended gives nothing back, however it was made; one
// that is settled before gives back what was not used. Under a bucket, it gives back all of that.
func TestAReservationSettledLate(t *testing.T) {
	for name, store := range map[string]func() Store{
		"memory":  func() Store { return NewMemorySize(1000) },
		"network": func() Store { return &networkStore{Store: NewMemorySize(1000), back: time.Millisecond} },
	} {
		for _, limit := range everyAlgorithm(10, time.Minute) {
			for way, reserve := range map[string]reserveFunc{
				"Reserve":     (*Limiter).Reserve,
				"ReserveNow":  (*Limiter).ReserveNow,
				"ReserveWait": (*Limiter).ReserveWait,
			} {
				t.Run(name+"/"+limit.String()+"/"+way, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { settleLate(t, store(), limit, reserve) })
				})
			}
		}
	}
}

type reserveFunc func(*Limiter, context.Context, string, int64) (*Reservation, error)

func settleLate(t *testing.T, store Store, limit Limit, reserve reserveFunc) {
	t.Helper()
	l := must(NewLimiter(store, limit, Yearly(1000)))
	first := must(reserve(l, t.Context(), "k", 6))
	time.Sleep(5 * time.Second)
	if err := first.Commit(t.Context(), 4); err != nil {
		t.Error(err)
	}
	left := must(l.AllowEach(t.Context(), "k", 0, nil))
	if left[0].Remaining < 6 || left[1].Remaining != 996 {
		t.Errorf("%d are left after a commit of 4, and %d of the year", left[0].Remaining, left[1].Remaining)
	}
	time.Sleep(3 * time.Minute)
	second := must(reserve(l, t.Context(), "k", 6))
	time.Sleep(3 * time.Minute)
	must(l.AllowN(t.Context(), "k", 10))
	if err := second.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	want := int64(0)
	if limit.Refill() > 0 {
		want = 6
	}
	if left := must(l.Peek(t.Context(), "k")).Remaining; left != want {
		t.Errorf("%d are left after a late cancel; want %d", left, want)
	}
}

// A reservation has the decision with which its tokens were granted, and the wait that is left.
func TestTheDecisionOfAReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second, hour := PerSecond(1).Burst(5), FixedWindow(8, time.Hour)
		l := must(NewLimiter(NewMemorySize(1000), second, hour))
		check := func(what string, r *Reservation, limit Limit, remaining int64, wait time.Duration) {
			t.Helper()
			d := r.Decision()
			if d.Limit != limit || d.Remaining != remaining || d.RetryAfter != wait || d.ResetAfter <= 0 {
				t.Errorf("%s: %+v; want %d of %v left, in %s", what, d, remaining, limit, wait)
			}
		}
		check("at once", must(l.Reserve(t.Context(), "k", 2)), second, 3, 0)
		check("now", must(l.ReserveNow(t.Context(), "k", 3)), second, 0, 0)
		ahead := must(l.Reserve(t.Context(), "k", 1))
		check("ahead", ahead, second, 0, time.Second)
		time.Sleep(400 * time.Millisecond)
		check("nearer", ahead, second, 0, 600*time.Millisecond)
		check("in the line", must(l.ReserveWait(t.Context(), "k", 1)), second, 0, 0)
		time.Sleep(5 * time.Second)
		check("by the other limit", must(l.ReserveWait(t.Context(), "k", 1)), hour, 0, 0)

		free := must(NewLimiterFunc(NewMemorySize(1000), func(context.Context, string) ([]Limit, error) { return nil, nil }))
		for _, r := range []*Reservation{must(free.Reserve(t.Context(), "k", 1)), must(free.ReserveWait(t.Context(), "k", 1))} {
			if d := r.Decision(); d.Limit != Unlimited() || !d.Allowed() {
				t.Errorf("without limits: %+v", d)
			}
		}
	})
}

// The decision of a caller of the line is that of the start that it got from one that left.
func TestTheDecisionOfAStartThatWasPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(NewLimiter(&networkStore{Store: NewMemorySize(1000), there: 50 * time.Millisecond, back: 50 * time.Millisecond}, PerSecond(1).Burst(1)))
		must(l.Allow(t.Context(), "k"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(990*time.Millisecond, cancel)
		begin := time.Now()
		defer time.Sleep(time.Minute) // until no call is under way
		go func() { _, _ = l.ReserveWait(ctx, "k", 1) }()
		synctest.Wait()
		r, err := l.ReserveWait(t.Context(), "k", 1)
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Decision(); !d.Allowed() || d.Limit != PerSecond(1).Burst(1) || d.Remaining != 0 || d.ResetAfter <= 0 {
			t.Errorf("%+v", d)
		}
		if took := time.Since(begin); took > 1100*time.Millisecond {
			t.Errorf("it took %s: the start was not passed on", took)
		}
	})
}

// orgTeamUser are requests of three keys, as of a call that counts against each.
func orgTeamUser(user string) []Request {
	return []Request{
		{Key: "org", Limit: PerMinute(60).Named("tokens"), Cost: 10},
		{Key: "team", Limit: FixedWindow(1000, time.Hour), Cost: 10},
		{Key: user, Limit: PerSecond(1).Burst(2), Cost: 1},
	}
}

// Requests are reserved together: with one start, or not at all.
func TestReserveAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemorySize(1000)
		check := func(org, team, ann int64) {
			t.Helper()
			for i, want := range []int64{org, team, ann} {
				r := orgTeamUser("ann")[i]
				r.Cost = 0
				if d := must(m.Take(t.Context(), r)); d.Remaining != want {
					t.Errorf("%s has %d left; want %d", r.Key, d.Remaining, want)
				}
			}
		}
		first := must(ReserveAll(t.Context(), m, orgTeamUser("ann")...))
		if check(50, 990, 1); first.Delay() != 0 || first.Decision().Limit != PerSecond(1).Burst(2) {
			t.Errorf("%s, %+v", first.Delay(), first.Decision())
		}
		must(ReserveAll(t.Context(), m, orgTeamUser("ann")...))
		ahead := must(ReserveAll(t.Context(), m, orgTeamUser("ann")...))
		if ahead.Delay() != time.Second {
			t.Errorf("a start in %s; want that of the strictest, in 1s", ahead.Delay())
		}
		if err := ahead.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		check(40, 980, 0)

		soon, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err := ReserveAll(soon, m, orgTeamUser("ann")...)
		if d, late := errors.AsType[*DeadlineError](err); !late || d.Wait != time.Second {
			t.Errorf("a start after the deadline: %v", err)
		}
		check(40, 980, 0)

		if err := first.Commit(t.Context(), 4, 30, 1); err != nil { // less, more, and as many
			t.Error(err)
		}
		check(46, 960, 0)
		all := must(ReserveAll(t.Context(), m, orgTeamUser("bob")[:2]...))
		if err := all.Commit(t.Context(), 7); err != nil { // each
			t.Error(err)
		}
		check(39, 953, 0)
	})
}

// A cancel gives back all requests or none, as it was granted.
func TestACancelOfRequestsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemorySize(1000)
		shared, own := PerSecond(1).Burst(1), PerSecond(1).Burst(2)
		both := []Request{{Key: "all", Limit: shared, Cost: 1}, {Key: "own", Limit: own, Cost: 1}}
		must(ReserveAll(t.Context(), m, both...))
		second := must(ReserveAll(t.Context(), m, both...))
		must(ReserveAll(t.Context(), m, both[0]))
		if err := second.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if d := must(m.Take(t.Context(), Request{Key: "own", Limit: own})); d.Remaining != 0 {
			t.Errorf("%+v: a part was given back", d)
		}
	})
}

func TestReserveAllAndWaitAllRefuse(t *testing.T) {
	m, now := NewMemory(), time.Now()
	l := must(NewLimiter(m, PerSecond(1)))
	ok := Request{Key: "k", Limit: PerHour(5), Cost: 1}
	for name, change := range map[string]func(r *Request){
		"no cost":      func(r *Request) { r.Cost = 0 },
		"a refund":     func(r *Request) { r.Cost = -1 },
		"too much":     func(r *Request) { r.Cost = 6 },
		"no limit":     func(r *Request) { r.Limit = Limit{} },
		"the same key": func(r *Request) { r.Key = "other" },
		"a wait":       func(r *Request) { r.MaxWait = 1 },
		"force":        func(r *Request) { r.Force = true },
		"a time":       func(r *Request) { r.At = now },
	} {
		wrong := ok
		change(&wrong)
		other := Request{Key: "other", Limit: PerHour(5), Cost: 2}
		if _, err := ReserveAll(t.Context(), m, other, wrong); !isInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := l.WaitAll(t.Context(), other, wrong); !isInvalid(err) {
			t.Errorf("WaitAll, %s: %v", name, err)
		}
		if d := must(m.Take(t.Context(), Request{Key: "other", Limit: PerHour(5)})); d.Remaining != 5 {
			t.Fatalf("%s was charged: %+v", name, d)
		}
	}
	ok.Headroom = 1
	if _, err := ReserveAll(t.Context(), m, ok); !errors.Is(err, ErrNoBooking) {
		t.Errorf("headroom: %v", err)
	}
	if _, err := ReserveAll(t.Context(), nil, ok); !isInvalid(err) {
		t.Errorf("no store: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReserveAll(ended, m, ok); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	r, err := ReserveAll(t.Context(), m)
	if err != nil || !r.Decision().Allowed() || r.Commit(t.Context()) != nil || r.Commit(t.Context(), 3) != nil {
		t.Errorf("no requests: %+v, %v", r, err)
	}
	r = must(ReserveAll(t.Context(), m, orgTeamUser("ann")...))
	for _, used := range [][]int64{nil, {1, 2}, {1, 2, -3}, {1, 2, 3, 4}} {
		if err := r.Commit(t.Context(), used...); !isInvalid(err) {
			t.Errorf("a commit of %v: %v", used, err)
		}
	}
}
