package fallback_test

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
)

// untilRetry is the RetryAfter just after the circuit opened, with the default OpenTimeout.
const untilRetry = time.Second + time.Microsecond

func TestClosedDeniesUntilTheStoreIsCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s := newStore(t, b, fallback.Options{Mode: fallback.Closed, Failures: 1})
		b.how.Store(fails)
		r := request("10/s")
		want := headgate.Decision{
			Limit: r.Limit.Share(0), RetryAfter: untilRetry, ResetAfter: untilRetry,
		}
		if d := take(t, s, r); d != want || !d.Degraded() || !d.Unchecked() {
			t.Errorf("%+v; want %+v", d, want)
		}
		time.Sleep(999 * time.Millisecond)
		if d := take(t, s, r); d.RetryAfter != 50*time.Millisecond {
			t.Errorf("just before the store is called: retry after %s", d.RetryAfter)
		}
		for cost, wait := range map[int64]time.Duration{11: headgate.Never, -1: 0} {
			r.Cost = cost
			if d := take(t, s, r); d.RetryAfter != wait {
				t.Errorf("cost %d: retry after %s; want %s", cost, d.RetryAfter, wait)
			}
		}
		r.Cost, r.MaxWait = 1, time.Hour
		if d, err := s.Take(t.Context(), r); !errors.Is(err, errBroken) {
			t.Errorf("a reservation: %+v, %v", d, err)
		}
		if err := s.Reset(t.Context(), r.Key, r.Limit); !errors.Is(err, errBroken) {
			t.Errorf("a reset: %v", err)
		}
		// A caller that retries after RetryAfter gets an answer of the store.
		b.how.Store(works)
		r.MaxWait = 0
		time.Sleep(time.Millisecond + time.Microsecond)
		if d := take(t, s, r); d.Degraded() || !d.Allowed() {
			t.Errorf("after that: %+v", d)
		}
	})
}

func TestOpenGrantsWhatTheLimitCanGrant(t *testing.T) {
	b := newBreakable()
	s := newStore(t, b, fallback.Options{
		Mode: fallback.Open, Failures: 1, OpenTimeout: time.Hour,
	})
	b.how.Store(fails)
	r := request("10/s")
	want := headgate.Decision{Limit: r.Limit.Share(0), Remaining: 10}
	for i := range 100 {
		r.MaxWait = time.Duration(i%2) * time.Hour // a reservation starts at once
		if d := take(t, s, r); d != want {
			t.Fatalf("%+v; want %+v", d, want)
		}
	}
	for cost, wait := range map[int64]time.Duration{10: 0, 11: headgate.Never, -1: 0} {
		r.Cost = cost
		if d := take(t, s, r); d.RetryAfter != wait {
			t.Errorf("cost %d: retry after %s; want %s", cost, d.RetryAfter, wait)
		}
	}
	two := []headgate.Request{request("a=10/s"), request("b=10/s")}
	two[1].Cost = 11
	if ds := takeAll(t, s, two...); !ds[0].Allowed() || ds[1].RetryAfter != headgate.Never {
		t.Errorf("%+v", ds)
	}
	if got := s.Stats().Decisions; got != 105 {
		t.Errorf("%d decisions without the store", got)
	}
}

// A cost that the limit grants and the share never does is postponed until the store is called
// again. A cost that the limit never grants is denied. Other requests wait as the share says.
func TestLocalDecidesByTheShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s, _ := newLocal(t, b, 4)
		b.how.Store(fails)
		r := request("20/s")
		for _, r.Cost = range []int64{6, 20} {
			if d := take(t, s, r); d.RetryAfter != untilRetry || d.Remaining != 5 ||
				!d.Unchecked() {
				t.Errorf("cost %d: %+v", r.Cost, d)
			}
		}
		r.MaxWait = time.Minute
		if d, err := s.Take(t.Context(), r); !errors.Is(err, errBroken) {
			t.Errorf("a reservation of more than the share holds: %+v, %v", d, err)
		}
		r.Cost = 21
		if d := take(t, s, r); d.RetryAfter != headgate.Never || d.Unchecked() {
			t.Errorf("more than the limit holds: %+v", d)
		}
		r.Cost = 5
		for i, want := range []time.Duration{0, time.Second, 2 * time.Second} {
			if d := take(t, s, r); d.RetryAfter != want || !d.Degraded() {
				t.Errorf("reservation %d starts in %s; want %s", i, d.RetryAfter, want)
			}
		}
	})
}

func TestLocalDecidesGroupsByTheirShares(t *testing.T) {
	b := newBreakable()
	s, local := newLocal(t, b, 2)
	b.how.Store(fails)
	one, two := request("a=10/h"), request("b=4/h")
	for _, step := range []struct{ cost, left, otherLeft int64 }{{2, 4, 0}, {1, 4, 0}, {-1, 5, 1}} {
		two.Cost = step.cost
		one.Cost = min(step.cost, 1)
		takeAll(t, s, one, two)
		peeks := []headgate.Request{
			{Key: "k", Limit: one.Limit.Share(2)}, {Key: "k", Limit: two.Limit.Share(2)},
		}
		ds := takeAll(t, local, peeks...)
		if ds[0].Remaining != step.left || ds[1].Remaining != step.otherLeft {
			t.Errorf("after a cost of %d: %+v", step.cost, ds)
		}
	}
}

// A refund is made where decisions are made at that time, and mirrored by the share.
func TestARefundGoesToWhateverDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		s, local := newLocal(t, b, 2)
		r := request("10/h")
		left := func(atStore, ofShare int64) {
			t.Helper()
			store := take(t, b.Store, headgate.Request{Key: "k", Limit: r.Limit}).Remaining
			share := take(t, local, headgate.Request{Key: "k", Limit: r.Limit.Share(2)}).Remaining
			if store != atStore || share != ofShare {
				t.Errorf("%d left at the store and %d of the share; want %d and %d",
					store, share, atStore, ofShare)
			}
		}
		r.Cost = 3
		take(t, s, r)
		left(7, 2)
		b.how.Store(fails)
		r.Cost = -1
		take(t, s, r)
		left(7, 3)
		b.how.Store(works)
		time.Sleep(untilRetry)
		take(t, s, r)
		left(8, 4)
	})
}

// A change of the number of instances changes the share at once and brings no fresh one.
func TestTheNumberOfInstancesChanges(t *testing.T) {
	b := newBreakable()
	instances := 1
	s := newStore(t, b, fallback.Options{
		Mode: fallback.Local, Instances: func() int { return instances },
		Failures: 1, OpenTimeout: time.Hour,
	})
	b.how.Store(fails)
	r := request("12/h")
	take(t, s, r)
	for _, step := range []struct {
		instances int
		capacity  int64
	}{{2, 6}, {1, 12}, {3, 4}} {
		instances = step.instances
		d := take(t, s, r)
		if d.Limit.Capacity() != step.capacity || d.Remaining > step.capacity-2 || !d.Allowed() {
			t.Errorf("%d instances: %+v of %d", instances, d, d.Limit.Capacity())
		}
	}
}

// While the number is unknown no share is granted. What the store granted meanwhile counts when the
// number is known.
func TestTheNumberOfInstancesIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakable()
		instances := 0
		s := newStore(t, b, fallback.Options{
			Mode: fallback.Local, Instances: func() int { return instances }, Failures: 1,
		})
		r, other := request("20/h"), request("other=20/h")
		for range 8 {
			take(t, s, r)
		}
		b.how.Store(fails)
		for _, instances = range []int{0, -3} {
			want := headgate.Decision{
				Limit: r.Limit.Share(0), RetryAfter: untilRetry, ResetAfter: untilRetry,
			}
			if d := take(t, s, r); d != want || !d.Unchecked() {
				t.Errorf("%d instances: %+v; want %+v", instances, d, want)
			}
			if ds := takeAll(t, s, r, other); ds[0] != want || ds[1].Allowed() {
				t.Errorf("%d instances: %+v; want %+v", instances, ds, want)
			}
			reserve := r
			reserve.MaxWait = time.Hour
			if d, err := s.Take(t.Context(), reserve); !errors.Is(err, errBroken) {
				t.Errorf("%d instances: a reservation: %+v, %v", instances, d, err)
			}
		}
		instances = 4
		r.Cost = 0
		if d := take(t, s, r); d.Remaining > 3 || d.Limit.Capacity() != 5 {
			t.Errorf("4 instances: %+v; want at most 3 left of 5", d)
		}
	})
}

// A client that has used its share is denied for that, also if the share is the whole limit.
func TestADenialByAShareIsNotUnchecked(t *testing.T) {
	b := newBreakable()
	s, _ := newLocal(t, b, 1)
	b.how.Store(fails)
	r := request("1/h")
	take(t, s, r)
	if d := take(t, s, r); d.Allowed() || !d.Degraded() || d.Unchecked() {
		t.Errorf("%+v", d)
	}
}

// A late answer was charged by the store, and is decided by the share all the same.
func TestALateAnswerIsChargedTwice(t *testing.T) {
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

// Goroutines that use more limits than are kept, while the store fails now and then and the number
// of instances changes, all get answers.
func TestManyGoroutinesWithManyLimits(t *testing.T) {
	b := newBreakable()
	var round atomic.Int64
	s := newStore(t, b, fallback.Options{
		Mode: fallback.Local, Failures: 2, OpenTimeout: time.Microsecond,
		OnChange:  func(bool, error) {},
		Instances: func() int { return int(round.Load() / 100 % 5) },
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
	if n := s.Stats().Decisions; n == 0 || n == 6000 {
		t.Errorf("%d of 6000 decisions were made without the store", n)
	}
}

// Without the store, a forced request is charged to the share, and denied where nothing is charged.
func TestForcedRequestsWithoutTheStore(t *testing.T) {
	r := request("20/h")
	r.Force, r.Cost = true, 7
	b := newBreakable()
	b.how.Store(fails)
	s, _ := newLocal(t, b, 4)
	for _, remaining := range []int64{-2, -9} {
		if d := take(t, s, r); d.Remaining != remaining || d.Allowed() || !d.Degraded() {
			t.Errorf("7 of a share of 5: %+v; want remaining %d", d, remaining)
		}
	}
	other := headgate.Request{Key: "other", Limit: r.Limit, Cost: 6}
	forced := headgate.Request{Key: "forced", Limit: r.Limit, Cost: 6, Force: true}
	if ds := takeAll(t, s, other, forced); ds[0].Remaining != 5 || ds[1].Remaining != -1 {
		t.Errorf("a forced request of a denied group: %+v", ds)
	}
	s = newStore(t, b, fallback.Options{Mode: fallback.Closed, Failures: 1})
	if d := take(t, s, r); d.Remaining != 0 || d.Allowed() || !d.Degraded() {
		t.Errorf("closed: %+v", d)
	}
	s, r.Cost = newStore(t, b, fallback.Options{Mode: fallback.Open, Failures: 1}), 21
	if d := take(t, s, r); d.Remaining != 0 || d.RetryAfter != headgate.Never {
		t.Errorf("open: %+v", d)
	}
}

// The share of an instance keeps the same part of itself as headroom, rounded up.
func TestAShareKeepsItsPartAsHeadroom(t *testing.T) {
	b := newBreakable()
	s := newStore(t, b, fallback.Options{
		Mode: fallback.Local, Instances: func() int { return 4 }, Failures: 1,
		OpenTimeout: time.Hour,
	})
	b.how.Store(fails)
	for _, step := range []struct {
		cost, headroom, remaining int64
		allowed                   bool
	}{
		{1, 98, 25, false}, // 24.5 of 25, rounded up
		{1, 96, 24, true},
		{11, 50, 13, true}, // 12.5
		{1, 50, 13, false},
		{0, 50, 13, false},
		{1, 48, 12, true},
		{12, 0, 0, true},
	} {
		r := request("100/m")
		r.Cost, r.Headroom = step.cost, step.headroom
		d := take(t, s, r)
		if !d.Degraded() || d.Allowed() != step.allowed || d.Remaining != step.remaining {
			t.Errorf("%+v: %+v", step, d)
		}
		if d.RetryAfter == headgate.Never {
			t.Errorf("%+v: never, and the limit can hold it", step)
		}
	}
	group := []headgate.Request{request("a=100/m"), request("b=100/m")}
	group[0].Cost, group[0].Headroom = 12, 50
	group[1].Cost, group[1].Headroom = 13, 50
	ds := make([]headgate.Decision, 2)
	if err := s.TakeAll(t.Context(), group, ds); err != nil || !ds[0].Allowed() ||
		ds[1].Allowed() ||
		ds[0].Remaining != 25 {
		t.Errorf("12 and 13 of 25, which leave 13: %+v, %v; want neither charged", ds, err)
	}
}

// A request whose cost and headroom are above the capacity is never granted, in each mode.
func TestHeadroomAboveTheCapacityIsNeverGranted(t *testing.T) {
	for _, mode := range []fallback.Mode{fallback.Closed, fallback.Open, fallback.Local} {
		b := newBreakable()
		o := fallback.Options{Mode: mode, Failures: 1, OpenTimeout: time.Hour}
		if mode == fallback.Local {
			o.Instances = func() int { return 3 }
		}
		s := newStore(t, b, o)
		b.how.Store(fails)
		for _, headroom := range []int64{100, 1 << 53, math.MaxInt64} {
			for cost := range int64(2) {
				r := request("100/m")
				r.Cost, r.Headroom = cost, headroom
				if d := take(t, s, r); d.RetryAfter != headgate.Never {
					t.Errorf("mode %d, cost %d, headroom %d: %+v", mode, cost, headroom, d)
				}
			}
		}
	}
}
