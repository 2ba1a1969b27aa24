package fallback_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/httplimit"
)

func newLocal(t testing.TB, b headgate.Store, instances int) (*fallback.Store, *headgate.Memory) {
	t.Helper()
	local := headgate.NewMemory(0)
	return newStore(t, b, fallback.Options{Mode: fallback.Local, Instances: of(instances), Local: local, Failures: 1}), local
}

// While the store answers the share is charged, so an instance that used its share up has nothing of it
// left when the store fails, and one that did not has what is left.
func TestGoingOverBringsNoFreshShare(t *testing.T) {
	for _, c := range []struct{ before, left int64 }{{0, 5}, {3, 2}, {5, 0}, {9, 0}} {
		b := newBreakable()
		s, _ := newLocal(t, b, 4)
		r := request("20/h")
		for range c.before {
			take(t, s, r)
		}
		b.how.Store(fails)
		r.Cost = 0
		if d := take(t, s, r); d.Remaining != c.left || d.Limit != r.Limit.Share(4) || !d.Degraded() {
			t.Errorf("after %d of the store: %+v; want %d left", c.before, d, c.left)
		}
	}
}

// The share is charged with what is granted and with nothing else: not for denials, looks or groups that
// are refused; a large grant drains it, a refund and a reset fill it again.
func TestChargesOfTheShare(t *testing.T) {
	b := newBreakable()
	s, local := newLocal(t, b, 4)
	r, other := request("20/h"), request("other=7/h")
	want := func(when string, n int64) {
		t.Helper()
		look := headgate.Request{Key: r.Key, Limit: r.Limit.Share(4)}
		if d := take(t, local, look); d.Remaining != n {
			t.Errorf("%s: the share has %d left; want %d", when, d.Remaining, n)
		}
	}
	ask := func(cost int64, wait time.Duration) {
		t.Helper()
		take(t, s, headgate.Request{Key: r.Key, Limit: r.Limit, Cost: cost, MaxWait: wait})
	}
	both := func(cost, otherCost int64) {
		t.Helper()
		r.Cost, other.Cost = cost, otherCost
		if err := s.TakeAll(t.Context(), []headgate.Request{r, other}, make([]headgate.Decision, 2)); err != nil {
			t.Fatal(err)
		}
	}
	ask(0, 0)
	want("a look", 5)
	ask(1, 0)
	want("a grant", 4)
	ask(-1, 0)
	want("a refund", 5)
	both(2, 8)
	want("a group that is refused", 5)
	both(2, 1)
	want("a group that is granted", 3)
	group := func(rs ...headgate.Request) {
		t.Helper()
		for i := range rs {
			rs[i].Key = r.Key
		}
		if err := s.TakeAll(t.Context(), rs, make([]headgate.Decision, len(rs))); err != nil {
			t.Fatal(err)
		}
	}
	empty := request("empty=1/h").Limit
	take(t, b.Store, headgate.Request{Key: r.Key, Limit: empty, Cost: 1})
	group(headgate.Request{Limit: r.Limit, Cost: 1}, headgate.Request{Limit: empty})
	want("a grant beside a look that sees nothing left", 2)
	group(headgate.Request{Limit: r.Limit, Cost: 1}, headgate.Request{Limit: empty, Cost: 1, MaxWait: 2 * time.Hour})
	want("a group that does not wait for the turn of one", 2)
	group(headgate.Request{Limit: r.Limit, Cost: 1}, headgate.Request{Limit: empty, Ticket: 7})
	want("a group with a ticket that nobody has", 2)
	ask(12, 0)
	want("a grant of more than is left", 0)
	if err := s.Reset(t.Context(), r.Key, r.Limit); err != nil {
		t.Fatal(err)
	}
	want("a reset", 5)
	ask(18, 0)
	if err := local.Reset(t.Context(), r.Key, r.Limit); err != nil {
		t.Fatal(err)
	}
	ask(3, 0)
	want("a denial", 5)
	ask(3, time.Hour)
	want("a turn ahead", 2)
}

// A cost that the limit grants and the share never does waits for the store; one that the limit never
// grants waits for ever; and turns within the share come by its rate.
func TestBeyondTheShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s, _ := newLocal(t, b, 4)
		b.how.Store(fails)
		r := request("20/s")
		r.Cost = 6
		if d := take(t, s, r); d.RetryAfter != time.Second+time.Microsecond || d.Remaining != 5 {
			t.Errorf("more than the share holds: %+v", d)
		}
		r.Cost = 20
		if d := take(t, s, r); d.RetryAfter != time.Second+time.Microsecond {
			t.Errorf("as much as the limit holds: %+v", d)
		}
		r.MaxWait = time.Minute
		if d, err := s.Take(t.Context(), r); !errors.Is(err, errBroken) {
			t.Errorf("a turn of more than the share holds: %+v, %v", d, err)
		}
		r.Cost = 21
		if d := take(t, s, r); d.RetryAfter != headgate.Never {
			t.Errorf("more than the limit holds: %+v", d)
		}
		r.Cost = 5
		for i, want := range []time.Duration{0, time.Second, 2 * time.Second} {
			if d := take(t, s, r); d.RetryAfter != want {
				t.Errorf("turn %d comes in %s; want %s", i, d.RetryAfter, want)
			}
		}
	})
}

// What was granted here is taken back here, also when the store is back; what the store granted cannot be
// taken back while it is gone, and says so; and each is given back once, where it was taken.
func TestTickets(t *testing.T) {
	for _, limits := range [][]headgate.Limit{{request("a=10/h").Limit}, {request("a=10/h").Limit, request("b=10/h").Limit}} {
		synctest.Test(t, func(t *testing.T) { testTickets(t, limits) })
	}
}

func testTickets(t *testing.T, limits []headgate.Limit) {
	t.Helper()
	b := newBreakable()
	s, local := newLocal(t, b, 2)
	l, err := headgate.NewLimiter(s, limits...)
	if err != nil {
		t.Fatal(err)
	}
	reserve := func(n int64) *headgate.Reservation {
		t.Helper()
		r, err := l.Reserve(t.Context(), "k", n)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	left := func(s headgate.Store, l headgate.Limit) int64 {
		t.Helper()
		return take(t, s, headgate.Request{Key: "k", Limit: l}).Remaining
	}
	atStore := reserve(4)
	for _, l := range limits {
		if err := local.Reset(t.Context(), "k", l); err != nil {
			t.Fatal(err)
		}
	}
	b.how.Store(fails)
	here, another := reserve(2), reserve(1)
	if n := left(local, limits[0].Share(2)); n != 2 {
		t.Errorf("%d left of the share", n)
	}
	if err := here.Cancel(t.Context()); err != nil || left(local, limits[0].Share(2)) != 4 {
		t.Errorf("taken back here: %v", err)
	}
	if err := atStore.Cancel(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("taken back while the store is gone: %v", err)
	}
	b.how.Store(works)
	time.Sleep(time.Second + time.Microsecond)
	if err := atStore.Cancel(t.Context()); err != nil || left(b, limits[0]) != 10 {
		t.Errorf("taken back when it is back: %v", err)
	}
	if err := another.Cancel(t.Context()); err != nil || left(local, limits[0].Share(2)) != 5 || left(b, limits[0]) != 10 {
		t.Errorf("taken back here, when the store is back: %v", err)
	}
}

// A look by a ticket is answered by who knows it, and by the store if nobody does.
func TestLooksByTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s, _ := newLocal(t, b, 2)
		b.how.Store(fails)
		r := request("10/h")
		r.Ticket, r.Hold = 7, time.Hour
		take(t, s, r)
		b.how.Store(works)
		time.Sleep(time.Second + time.Microsecond)
		look := func(ticket uint64) (ds [2]headgate.Decision) {
			t.Helper()
			look := headgate.Request{Key: "k", Limit: r.Limit, Ticket: ticket}
			ds[0] = take(t, s, look)
			if err := s.TakeAll(t.Context(), []headgate.Request{look}, ds[1:]); err != nil {
				t.Fatal(err)
			}
			return ds
		}
		for i, d := range look(7) {
			if !d.Allowed() || !d.Degraded() {
				t.Errorf("%d: granted here: %+v", i, d)
			}
		}
		for i, d := range look(8) {
			if d.RetryAfter != headgate.Never || d.Degraded() {
				t.Errorf("%d: granted nowhere: %+v", i, d)
			}
		}
	})
}

// The number of instances may change at any time: the share changes with it, and keeps what was taken.
func TestInstancesChange(t *testing.T) {
	b := newBreakable()
	instances := 1
	s := newStore(t, b, fallback.Options{Mode: fallback.Local, Instances: func() int { return instances }, Failures: 1, Pause: time.Hour})
	b.how.Store(fails)
	r := request("12/h")
	for _, step := range []struct {
		instances      int
		left, capacity int64
	}{{1, 11, 12}, {2, 4, 6}, {1, 9, 12}, {3, 0, 4}} {
		instances = step.instances
		if d := take(t, s, r); d.Remaining != step.left || d.Limit.Capacity() != step.capacity || !d.Allowed() {
			t.Errorf("%d instances: %+v, of %d", instances, d, d.Limit.Capacity())
		}
	}
}

// While nobody knows how many instances there are, each grants nothing rather than all; what the store
// granted meanwhile counts against the share when somebody does.
func TestInstancesUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		instances := 0
		s := newStore(t, b, fallback.Options{Mode: fallback.Local, Instances: func() int { return instances }, Failures: 1})
		r, other := request("20/h"), request("other=20/h")
		take(t, s, r)
		take(t, s, r)
		b.how.Store(fails)
		for _, instances = range []int{0, -3} {
			want := headgate.Decision{Limit: r.Limit.Share(1), RetryAfter: time.Second + time.Microsecond, ResetAfter: time.Second + time.Microsecond}
			if d := take(t, s, r); d != want {
				t.Errorf("%d instances: %+v; want %+v", instances, d, want)
			}
			ds := make([]headgate.Decision, 2)
			if err := s.TakeAll(t.Context(), []headgate.Request{r, other}, ds); err != nil || ds[0] != want || ds[1].Allowed() {
				t.Errorf("%d instances: %+v, %v; want %+v", instances, ds, err, want)
			}
			ahead := r
			ahead.MaxWait = time.Hour
			if d, err := s.Take(t.Context(), ahead); !errors.Is(err, errBroken) {
				t.Errorf("%d instances: a turn: %+v, %v", instances, d, err)
			}
		}
		instances = 4
		if d := take(t, s, r); d.Remaining != 2 || !d.Allowed() {
			t.Errorf("4 instances: %+v; want 2 left of 5", d)
		}
	})
}

// An answer that is late was charged at the store, and is decided here all the same.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s, local := newLocal(t, b, 2)
		b.how.Store(charges)
		r := request("10/h")
		if d := take(t, s, r); !d.Degraded() || d.Remaining != 4 {
			t.Errorf("%+v", d)
		}
		r.Cost = 0
		if d := take(t, b.Store, r); d.Remaining != 9 {
			t.Errorf("the store has %d left", d.Remaining)
		}
		r.Limit = r.Limit.Share(2)
		if d := take(t, local, r); d.Remaining != 4 {
			t.Errorf("the share has %d left", d.Remaining)
		}
	})
}

// A decision instead of the store allocates nothing, alone or together.
func TestAllocations(t *testing.T) {
	for _, mode := range []fallback.Mode{fallback.Closed, fallback.Open, fallback.Local} {
		o := fallback.Options{Mode: mode, Pause: time.Hour, Failures: 1}
		if mode == fallback.Local {
			o.Instances = of(3)
		}
		b := newBreakable()
		b.how.Store(fails)
		s := newStore(t, b, o)
		rs := []headgate.Request{request("a=10/h"), request("b=10/h")}
		ds := make([]headgate.Decision, 2)
		ctx := context.Background()
		take(t, s, rs[0])
		if n := testing.AllocsPerRun(1000, func() { _, _ = s.Take(ctx, rs[0]) }); n > 0 {
			t.Errorf("mode %d: %v allocations", mode, n)
		}
		if n := testing.AllocsPerRun(1000, func() { _ = s.TakeAll(ctx, rs, ds) }); n > 0.1 {
			t.Errorf("mode %d: %v allocations together", mode, n)
		}
	}
}

// What clients are told are the numbers of the share, under the name of the limit.
func TestHeaderFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s, _ := newLocal(t, b, 4)
		b.how.Store(fails)
		for cost, want := range map[int64]string{1: `"api";r=4;t=1`, 6: `"api";r=5;t=2`} {
			r := request("api=20/s")
			r.Key, r.Cost = want, cost
			h := http.Header{}
			httplimit.AllFields.Write(h, time.Now(), take(t, s, r))
			if got := h["Ratelimit"]; len(got) != 1 || got[0] != want || h["Ratelimit-Policy"][0] != `"api";q=5;w=1` || h["X-Ratelimit-Limit"][0] != "5" {
				t.Errorf("cost %d: %v", cost, h)
			}
		}
	})
}

func TestOptions(t *testing.T) {
	memory := headgate.NewMemory(1)
	for _, c := range []struct {
		store headgate.Store
		o     fallback.Options
		want  string
	}{
		{nil, fallback.Options{}, "headgate: store is nil or a zero value; want a Store that others share, such as that of redisstore"},
		{new(headgate.Memory), fallback.Options{}, "headgate: store is nil or a zero value; want a Store that others share, such as that of redisstore"},
		{memory, fallback.Options{Mode: fallback.Local, Instances: of(1), Local: new(headgate.Memory)}, "headgate: Local is nil or a zero value; want a Store, such as headgate.NewMemory(0), or none"},
		{memory, fallback.Options{Mode: fallback.Local, Instances: of(1), Local: (*headgate.Memory)(nil)}, "headgate: Local is nil or a zero value; want a Store, such as headgate.NewMemory(0), or none"},
		{new(fallback.Store), fallback.Options{}, "headgate: store is nil or a zero value; want a Store that others share, such as that of redisstore"},
		{(*headgate.Memory)(nil), fallback.Options{}, "headgate: store is nil or a zero value; want a Store that others share, such as that of redisstore"},
		{memory, fallback.Options{Mode: 3}, "headgate: Mode is 3; want Closed, Open or Local"},
		{memory, fallback.Options{Mode: fallback.Local}, "headgate: Instances is nil; want a function, because Local grants this instance's share of a limit"},
		{memory, fallback.Options{Instances: of(1)}, "headgate: Instances is a function; want none, or the mode Local"},
		{memory, fallback.Options{Mode: fallback.Open, Local: memory}, "headgate: Local is a store; want none, or the mode Local"},
		{memory, fallback.Options{Timeout: -1}, "headgate: Timeout is -1ns; want more than 0, or 0 for 50ms"},
		{memory, fallback.Options{Failures: -1}, "headgate: Failures is -1; want at least 1, or 0 for 5"},
		{memory, fallback.Options{Pause: -1}, "headgate: Pause is -1ns; want more than 0, or 0 for 1s"},
	} {
		if _, err := fallback.New(c.store, c.o); !invalid(err) || err.Error() != c.want {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
}

// The zero Store, which New did not make, says so.
func TestZeroStore(t *testing.T) {
	s, r := new(fallback.Store), request("10/s")
	_, take := s.Take(t.Context(), r)
	for _, err := range []error{take, s.TakeAll(t.Context(), []headgate.Request{r}, make([]headgate.Decision, 1)), s.Reset(t.Context(), "k", r.Limit)} {
		if !invalid(err) || err.Error() != "headgate: fallback.Store is a zero value; want one made by fallback.New" {
			t.Errorf("%v", err)
		}
	}
}
