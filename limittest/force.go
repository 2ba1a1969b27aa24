package limittest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// forces are what must be true of requests that are charged whether or not they fit.
var forces = []check{
	{"an excess is paid back", paidBack},
	{"an excess is counted, and never wraps around", countedExcess},
	{"a forced request that fits is a plain one", forcedThatFits},
	{"a log stays short", shortLog},
	{"forced requests hold no other back", notHeldBack},
	{"forced requests alone", forcedAlone},
	{"a forced request cannot wait", forcedWait},
}

// paidBack charges more than there is: others are denied until the wait is over, to the
// microsecond, and so is the same request.
func paidBack(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		l := parse(t, text)
		ask := func(cost int64, force bool, after time.Duration) headgate.Decision {
			r := headgate.Request{Key: "paid", Limit: l, Cost: cost, Force: force,
				At: epoch.Add(after)}
			return take(t, s, r)
		}
		ask(100, false, 0)
		d := ask(30, true, 0)
		if d.Allowed() || d.Remaining != -30 || d.RetryAfter <= 0 ||
			d.RetryAfter == headgate.Never {
			t.Errorf("%s: 130 of 100: %s", text, describe(d))
		}
		if peek := ask(0, false, 0); peek.Allowed() || peek.Remaining != 0 ||
			peek.ResetAfter != d.ResetAfter {
			t.Errorf("%s: a peek after 130 of 100: %s; want a reset after %s", text, describe(peek),
				d.ResetAfter)
		}
		if early := ask(30, false,
			d.RetryAfter-time.Microsecond); early.RetryAfter != time.Microsecond {
			t.Errorf("%s: a microsecond too early: %s", text, describe(early))
		}
		if late := ask(30, false, d.RetryAfter); !late.Allowed() {
			t.Errorf("%s: after the wait: %s", text, describe(late))
		}
	}
}

// countedExcess charges costs of up to 2^63 - 1: what is over grows or stays, and a window or a
// bucket counts 2^32 hits one by one.
func countedExcess(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		r := headgate.Request{Key: "huge", Limit: parse(t, text), Force: true, At: epoch}
		over := int64(1)
		for _, cost := range []int64{
			101, 1, 1 << 31, 1<<32 + 1, 1<<53 - 1, 1,
			1 << 53, 1 << 62, math.MaxInt64, math.MaxInt64 - 1, 100, 1,
		} {
			r.Cost = cost
			d := take(t, s, r)
			if d.Remaining >= 0 || d.Remaining > over || d.RetryAfter <= 0 || d.ResetAfter <= 0 {
				t.Errorf("%s, cost %d: %s; want at most %d remaining, and waits", text, cost,
					describe(d), over)
			}
			over = d.Remaining
		}
	}
	largest := headgate.Request{Key: "largest", Limit: headgate.FixedWindow(1<<53-1, time.Hour),
		Force: true, At: epoch}
	for _, cost := range []int64{1 << 53, 1<<53 + 1, math.MaxInt64} {
		largest.Cost = cost
		if d := take(t, s, largest); d.RetryAfter != headgate.Never || d.Remaining != 0 {
			t.Errorf("%d, above the capacity of %s: %s", cost, largest.Limit, describe(d))
		}
	}
	r := headgate.Request{Key: "exact", Limit: parse(t, "100/m fixed-window"), Force: true,
		At: epoch}
	used := int64(0)
	for _, cost := range []int64{70, 31, 1, 1 << 32, 1, 1 << 40, 1} {
		r.Cost = cost
		used += cost
		if d := take(t, s, r); d.Remaining != 100-used {
			t.Errorf("%d used of 100: %s; want remaining %d", used, describe(d), 100-used)
		}
	}
}

// forcedThatFits compares grants, peeks and refunds with plain ones, field by field.
func forcedThatFits(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		for i, cost := range []int64{0, 40, -10, 70, 0, -200, 100, -100} {
			r := headgate.Request{Key: "plain", Limit: parse(t, text), Cost: cost}
			r.At = epoch.Add(time.Duration(i) * time.Microsecond)
			want := take(t, s, r)
			r.Key, r.Force = "forced", true
			if got := take(t, s, r); got != want {
				t.Errorf("%s, cost %d: %s; a plain request: %s", text, cost, describe(got),
					describe(want))
			}
		}
	}
}

// shortLog forces a log many times: the latest decide, and a refund gives back the latest.
func shortLog(t *testing.T, s headgate.Store) {
	l := parse(t, "3/m sliding-log")
	ask := func(cost int64, force bool, at time.Duration) headgate.Decision {
		return take(t, s, headgate.Request{Key: "log", Limit: l, Cost: cost, Force: force,
			At: epoch.Add(at)})
	}
	for i := range 50 {
		d := ask(1, true, time.Duration(i)*time.Second)
		if want := int64(max(2-i, -3)); d.Remaining != want {
			t.Errorf("hit %d of 3: %s; want remaining %d", i+1, describe(d), want)
		}
	}
	if d := ask(0, false, 49*time.Second); d.RetryAfter != 58*time.Second ||
		d.ResetAfter != time.Minute {
		t.Errorf("after hits each second until 49 s: %s; want those at 47 s and later to count",
			describe(d))
	}
	if d := ask(-4, false, 49*time.Second); d.Remaining != 1 || d.ResetAfter != 56*time.Second {
		t.Errorf("after a refund of 4: %s; want those at 44 and 45 s to count", describe(d))
	}
}

// notHeldBack takes forced requests together with others: they are charged in any case, and the
// others are granted together or not at all.
func notHeldBack(t *testing.T, s headgate.Store) {
	small, large := parse(t, "small=3/m fixed-window"), parse(t, "large=10/h")
	for _, keys := range [][3]string{{"one", "one", "one"}, {"user", "tenant", "all"}} {
		rs := []headgate.Request{
			{Key: keys[0], Limit: large.Named("forced"), Cost: 7, Force: true, At: epoch},
			{Key: keys[1], Limit: large, Cost: 2, At: epoch},
			{Key: keys[2], Limit: small.Named("peeked"), Force: true, At: epoch},
			{Key: keys[2], Limit: small, Cost: 2, At: epoch},
		}
		for round, want := range [][]int64{{3, 8, 3, 1}, {-4, 8, 3, 1}, {-11, 8, 3, 1}} {
			ds := takeAll(t, s, rs...)
			for i := range rs {
				if ds[i].Remaining != want[i] ||
					ds[i].Allowed() != (i%2 == 0 && want[i] >= 0 || i == 1 || round == 0) {
					t.Errorf("keys %v, round %d, request %d: %s; want remaining %d", keys, round, i,
						describe(ds[i]), want[i])
				}
			}
			if headgate.Granted(rs, ds) != (round == 0) {
				t.Errorf("keys %v, round %d: granted %t", keys, round, round > 0)
			}
		}
		rs[3].Cost = 1
		if ds := takeAll(t, s, rs...); !headgate.Granted(rs, ds) || ds[0].Remaining != -18 ||
			ds[1].Remaining != 6 {
			t.Errorf("keys %v: %s; %s; want the others granted", keys, describe(ds[0]),
				describe(ds[1]))
		}
	}
}

// forcedAlone takes many forced requests at once: each is decided as by itself.
func forcedAlone(t *testing.T, s headgate.Store) {
	var rs []headgate.Request
	for i := range 60 {
		l := parse(t, everyAlgorithm[i%len(everyAlgorithm)])
		rs = append(rs, headgate.Request{Key: fmt.Sprint("alone ", i/7), Limit: l,
			Cost: int64(3 * i), Force: true, At: epoch})
	}
	seen := map[string]bool{}
	for i := range rs { // one request for each key and limit
		if id := rs[i].Key + rs[i].Limit.ID(); seen[id] {
			rs[i].Key += " again"
		} else {
			seen[id] = true
		}
	}
	for range 2 {
		ds := takeAll(t, s, rs...)
		for i, r := range rs {
			r.Key = "single " + r.Key
			if want := take(t, s, r); ds[i] != want {
				t.Errorf("%s: %s; alone: %s", show(rs[i]), describe(ds[i]), describe(want))
			}
		}
	}
}

// forcedWait is refused, because a forced request is charged at once.
func forcedWait(t *testing.T, s headgate.Store) {
	r := headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1, Force: true,
		MaxWait: time.Second, At: epoch}
	_, err := s.Take(t.Context(), r)
	wantInvalid(t, "forced, with a wait", err, "max wait", "1s", "0 with Force")
}
