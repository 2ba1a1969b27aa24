package fallback_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// While the store answers the share is charged, so an instance that used its share has nothing left
// of it when the store fails.
func TestAFailureDoesNotBringAFreshShare(t *testing.T) {
	for _, c := range []struct{ before, left int64 }{{0, 5}, {3, 2}, {5, 0}, {9, 0}} {
		b := newBreakable()
		s, _ := newLocal(t, b, 4)
		r := request("20/h")
		for range c.before {
			take(t, s, r)
		}
		b.how.Store(fails)
		r.Cost = 0
		d := take(t, s, r)
		if d.Remaining != c.left || d.Limit != r.Limit.Share(4) || !d.Degraded() {
			t.Errorf("after %d grants of the store: %+v; want %d left", c.before, d, c.left)
		}
	}
}

// A request that has a time is charged to the share at that time.
func TestTheShareIsChargedAtTheTimeOfTheRequest(t *testing.T) {
	b := newBreakable()
	s, _ := newLocal(t, b, 4)
	r := request("20/h")
	r.Cost, r.At = 5, time.Now().Add(10*time.Hour)
	take(t, s, r)
	b.how.Store(fails)
	r.Cost = 1
	if d := take(t, s, r); d.Allowed() || !d.Degraded() {
		t.Errorf("%+v; want a denial by the share, which is used up at that time", d)
	}
}

func TestTheShareIsChargedWithGrantsOnly(t *testing.T) {
	b := newBreakable()
	s, local := newLocal(t, b, 4)
	l, other, empty := request("20/h").Limit, request("other=7/h").Limit, request("empty=1/h").Limit
	take(t, b.Store, headgate.Request{Key: "k", Limit: empty, Cost: 1})
	for _, step := range []struct {
		what  string
		group []headgate.Request
		left  int64 // of the share of 5
	}{
		{"a peek", []headgate.Request{{Limit: l}}, 5},
		{"a grant", []headgate.Request{{Limit: l, Cost: 1}}, 4},
		{"a refund", []headgate.Request{{Limit: l, Cost: -1}}, 5},
		{"a denied group", []headgate.Request{{Limit: l, Cost: 2}, {Limit: other, Cost: 8}}, 5},
		{"a granted group", []headgate.Request{{Limit: l, Cost: 2}, {Limit: other, Cost: 1}}, 3},
		{"a grant beside a peek", []headgate.Request{{Limit: l, Cost: 1}, {Limit: empty}}, 2},
		{
			"a group that does not wait for the start time of one request",
			[]headgate.Request{{Limit: l, Cost: 1},
				{Limit: empty, Cost: 1, MaxWait: 2 * time.Hour}},
			2,
		},
		{"a grant of more than is left", []headgate.Request{{Limit: l, Cost: 12}}, 0},
		{"a denial", []headgate.Request{{Limit: l, Cost: 19}}, 0},
		{"a large refund", []headgate.Request{{Limit: l, Cost: -20}}, 5},
		{"a forced grant", []headgate.Request{{Limit: l, Cost: 2, Force: true}}, 3},
		{"a forced request of a denied group",
			[]headgate.Request{{Limit: l, Cost: 1, Force: true}, {Limit: other, Cost: 8},
				{Limit: empty, Cost: 1}}, 2},
		{"a forced request that does not fit",
			[]headgate.Request{{Limit: l, Cost: 90, Force: true}}, 0},
		{"a refund of it", []headgate.Request{{Limit: l, Cost: -1}}, 1},
	} {
		for i := range step.group {
			step.group[i].Key = "k"
		}
		if len(step.group) == 1 {
			take(t, s, step.group[0])
		} else {
			takeAll(t, s, step.group...)
		}
		d := take(t, local, headgate.Request{Key: "k", Limit: l.Share(4)})
		if d.Remaining != step.left {
			t.Errorf("after %s the share has %d left; want %d", step.what, d.Remaining, step.left)
		}
	}
}

func TestAResetFillsTheShare(t *testing.T) {
	s, local := newLocal(t, newBreakable(), 4)
	r := request("20/h")
	r.Cost = 20
	take(t, s, r)
	if err := s.Reset(t.Context(), r.Key, r.Limit); err != nil {
		t.Fatal(err)
	}
	peek := headgate.Request{Key: r.Key, Limit: r.Limit.Share(4)}
	if d := take(t, local, peek); d.Remaining != 5 {
		t.Errorf("%d left of the share of 5", d.Remaining)
	}
}
