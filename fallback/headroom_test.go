package fallback_test

import (
	"math"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
)

// The share of an instance keeps the same part of itself as headroom, rounded up.
func TestAShareKeepsItsPartAsHeadroom(t *testing.T) {
	b := newBreakable()
	s := newStore(t, b, fallback.Options{
		Mode: fallback.Local, Instances: func() int { return 4 }, Failures: 1, OpenTimeout: time.Hour,
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
	if err := s.TakeAll(t.Context(), group, ds); err != nil || !ds[0].Allowed() || ds[1].Allowed() ||
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
