package limittest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// lessons are the defects found in widely used limiters, each with a test that fails on
// it. Those of one backend alone are tested with that.
var lessons = []check{
	{"old timestamps mint no tokens", oldTimestamps},
	{"a partial fit charges nothing", partialFit},
	{"a rate that does not divide does not drift", noDrift},
	{"huge rates keep their interval", hugeRates},
	{"the reset follows the state", resetFollowsState},
	{"keys glued together do not collide", gluedKeys},
	{"costs near 2^63 do not wrap around", hugeCosts},
	{"refunds leave neither more nor less", refunds},
	{"waits under a second are not zero", shortWaits},
	{"a limit of 0 grants nothing", denyAll},
}

// denyAll: a limit of 0, for those who are blocked, divided by zero or was no limit at all.
func denyAll(t *testing.T, s headgate.Store) {
	l := headgate.FixedWindow(0, time.Hour)
	for _, r := range []headgate.Request{
		{Cost: 1}, {Cost: 0}, {Cost: 1 << 40}, {Cost: 1, Headroom: 5},
		{Cost: 1, MaxWait: 24 * time.Hour}, {Cost: 1, Force: true}, {Cost: 1},
	} {
		r.Key, r.Limit, r.At = "blocked", l, epoch
		d, err := s.Take(t.Context(), r)
		if errors.Is(err, headgate.ErrNoBooking) {
			continue
		}
		if err != nil || d.RetryAfter != headgate.Never || d.Remaining > 0 {
			t.Errorf("%+v: %s, %v", r, describe(d), err)
		}
	}
	ds := takeAll(t, s, headgate.Request{Key: "a", Limit: l, Cost: 1, At: epoch},
		headgate.Request{Key: "a", Limit: headgate.PerHour(5), Cost: 1, At: epoch})
	if ds[0].RetryAfter != headgate.Never || ds[1].Remaining != 5 {
		t.Errorf("with another limit: %s, %s", describe(ds[0]), describe(ds[1]))
	}
	r := headgate.Request{Key: "blocked", Limit: l, Cost: -7, At: epoch}
	if d := take(t, s, r); d.Remaining != 0 || d.ResetAfter != 0 {
		t.Errorf("after a refund: %s", describe(d))
	}
}

// oldTimestamps: two callers whose clocks are a second apart took 20,000 of 20,000
// from a bucket of 10, because each switch between them was a second of refill.
func oldTimestamps(t *testing.T, s headgate.Store) {
	l := parse(t, "10/s")
	granted := race(t, s, 2, 500, func(i int) headgate.Request {
		return headgate.Request{Key: "apart", Limit: l, Cost: 1,
			At: epoch.Add(time.Duration(i%2) * time.Second)}
	})
	if granted < 10 || granted > 20 {
		t.Errorf("%d granted of a bucket of 10 and a second of refill; want 10 to 20", granted)
	}
}

// partialFit: asking for more than is left charged what was left.
func partialFit(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		r := headgate.Request{Key: "partial", Limit: parse(t, text), Cost: 70, At: epoch}
		if d := take(t, s, r); d.Remaining != 30 {
			t.Fatalf("%s: %s", text, describe(d))
		}
		if d := take(t, s, r); d.Allowed() || d.Remaining != 30 {
			t.Errorf("%s: 70 of 30: %s", text, describe(d))
		}
		r.Cost = 30
		if d := take(t, s, r); !d.Allowed() || d.Remaining != 0 {
			t.Errorf("%s: the 30 that are left: %s", text, describe(d))
		}
	}
}

// noDrift: 3 per second as an interval of 333,333 microseconds gains a token in
// 12 days; as a float of seconds it loses some.
func noDrift(t *testing.T, s headgate.Store) {
	r := headgate.Request{Key: "drift", Limit: parse(t, "3/s burst 2"), Cost: 1, At: epoch}
	take(t, s, r)
	for i := range 3000 {
		// Token i is there at i/3 s, rounded up to a microsecond; not before.
		due := time.Duration((int64(i)*1_000_000+2)/3) * time.Microsecond
		if i > 0 {
			r.At = epoch.Add(due - time.Microsecond)
			if take(t, s, r).Allowed() {
				t.Fatalf("token %d granted early", i)
			}
		}
		r.At = epoch.Add(due)
		if !take(t, s, r).Allowed() {
			t.Fatalf("token %d refused", i)
		}
	}
}

// hugeRates: 2e9 per second became an interval of 0, and so no limit at all.
func hugeRates(t *testing.T, s headgate.Store) {
	r := headgate.Request{Key: "huge", Limit: parse(t, "2000000000/s"), Cost: 2_000_000_000,
		At: epoch}
	if !take(t, s, r).Allowed() {
		t.Fatal("the whole burst refused")
	}
	r.Cost = 1
	if d := take(t, s, r); d.Allowed() || d.RetryAfter != time.Microsecond {
		t.Errorf("one more at once: %s", describe(d))
	}
	r.At, r.Cost = epoch.Add(time.Microsecond), 2001
	if d := take(t, s, r); d.Allowed() || d.Remaining != 2000 {
		t.Errorf("2001 after a microsecond: %s", describe(d))
	}
}

// resetFollowsState: a reset of always one whole period.
func resetFollowsState(t *testing.T, s headgate.Store) {
	r := headgate.Request{Key: "reset", Limit: parse(t, "100/m"), Cost: 1, At: epoch}
	if d := take(t, s, r); d.ResetAfter != 600*time.Millisecond {
		t.Errorf("after one of 100 a minute: %s", describe(d))
	}
	if d := take(t, s, r); d.ResetAfter != 1200*time.Millisecond {
		t.Errorf("after two: %s", describe(d))
	}
}

// gluedKeys: (user_x, y) and (user, x_y) shared a counter. Keys hold any bytes.
func gluedKeys(t *testing.T, s headgate.Store) {
	one := headgate.FixedWindow(1, time.Hour)
	for _, name := range []string{"x_y", "y", "x"} {
		for _, key := range keyNames() {
			r := headgate.Request{Key: key, Limit: one.Named(name), Cost: 1, At: epoch}
			if !take(t, s, r).Allowed() {
				t.Errorf("key %.20q, limit %s: shares the state of another", key, name)
			}
			if take(t, s, r).Allowed() {
				t.Errorf("key %.20q, limit %s: has no state", key, name)
			}
		}
	}
}

// keyNames are keys that have collided elsewhere, or ended a hash tag early.
func keyNames() []string {
	names := []string{
		"", " ", "{", "}", "{}", "}{", "a}b", "{a}b", "a:b", "a", ":", "%", "%7D", "%25", "%257D",
		"user_x", "user", "\x00", "\xff\xfe", "é", "a\r\nb", strings.Repeat("k", 5000),
	}
	for i := range 20 {
		names = append(names, fmt.Sprintf("user:%d", i))
	}
	return names
}

// hugeCosts: a cost near 2^63 wrapped around and handed tokens out.
func hugeCosts(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		r := headgate.Request{Key: "costs", Limit: parse(t, text), At: epoch}
		for _, r.Cost = range []int64{math.MaxInt64, math.MaxInt64 - 1, 1 << 62, 1<<53 + 1, 1 << 53,
			101} {
			if d := take(t, s, r); d.Allowed() || d.RetryAfter != headgate.Never ||
				d.Remaining != 100 {
				t.Errorf("%s: cost %d: %s", text, r.Cost, describe(d))
			}
		}
		r.Cost = 10
		take(t, s, r)
		for _, r.Cost = range []int64{math.MinInt64, math.MinInt64 + 1, -1 << 53} {
			if d := take(t, s, r); d.Remaining != 100 {
				t.Errorf("%s: cost %d: %s", text, r.Cost, describe(d))
			}
		}
	}
}

// refunds: a refund left the bucket lower, or higher, than if it had never been taken from.
func refunds(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		l := parse(t, text)
		ask := func(key string, at time.Duration, cost int64) headgate.Decision {
			return take(t, s, headgate.Request{Key: key, Limit: l, Cost: cost, At: epoch.Add(at)})
		}
		for _, key := range []string{"plain", "refunded"} {
			ask(key, 0, 50)
		}
		for range 20 {
			ask("refunded", time.Second, 7)
			ask("refunded", time.Second, -7)
		}
		for _, at := range []time.Duration{time.Second, 30 * time.Second, 61 * time.Second,
			3 * time.Minute} {
			plain, refunded := ask("plain", at, 0), ask("refunded", at, 0)
			if plain != refunded {
				t.Errorf("%s: at %s: %s; without refunds %s", text, at, describe(refunded),
					describe(plain))
			}
		}
		ask("refunded", 4*time.Minute, 3)
		if d := ask("refunded", 4*time.Minute, -100); d.Remaining != 100 {
			t.Errorf("%s: more given back than taken: %s", text, describe(d))
		}
	}
}

// shortWaits: waits under a second came out as 0.
func shortWaits(t *testing.T, s headgate.Store) {
	r := headgate.Request{Key: "short", Limit: parse(t, "1000000/s burst 1"), Cost: 1, At: epoch}
	take(t, s, r)
	if d := take(t, s, r); d.Allowed() || d.RetryAfter != time.Microsecond {
		t.Errorf("a second one at once: %s", describe(d))
	}
}
