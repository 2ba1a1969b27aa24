package limittest

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// invariants are what must be true of every store, beyond the single decision.
var invariants = []check{
	{"never over, at one instant", neverOverAtOnce},
	{"never over, by the store's own clock", neverOverLive},
	{"never over, in any interval", neverOver},
	{"never short", neverShort},
	{"time never runs back", neverBack},
	{"a denial touches nothing", denialTouchesNothing},
	{"all or none", allOrNone},
	{"all or none, of several keys", severalKeys},
	{"a reset is complete", resetIsComplete},
	{"bad input", badInput},
}

var everyAlgorithm = []string{"100/m", "100/m stepped", "100/m fixed-window",
	"100/m sliding-window", "100/m sliding-log"}

// neverOverAtOnce lets many callers race for a limit while no time passes: they
// get all of it, and no more.
func neverOverAtOnce(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		r := headgate.Request{Key: "race", Limit: parse(t, text), Cost: 1, At: epoch}
		if granted := race(t, s, 32, 10, func(int) headgate.Request { return r }); granted != 100 {
			t.Errorf("%s: %d granted to 320 at one instant; want 100", text, granted)
		}
	}
}

// race lets callers take each turns times, at once, and counts what is granted.
func race(
	t *testing.T, s headgate.Store, callers, turns int, request func(i int) headgate.Request,
) int64 {
	t.Helper()
	var granted atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for turn := range turns {
				d, err := s.Take(t.Context(), request(caller*turns+turn))
				if err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				if d.Allowed() {
					granted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return granted.Load()
}

// neverOverLive counts what racing callers are granted in the time it took.
func neverOverLive(t *testing.T, s headgate.Store) {
	l := parse(t, "2000/s burst 50")
	start := time.Now()
	granted := race(t, s, 16, 200, func(int) headgate.Request {
		return headgate.Request{Key: "live", Limit: l, Cost: 1}
	})
	elapsed := time.Since(start)
	// A millisecond for the difference between the clocks of caller and store.
	most := 50 + int64(2000*(elapsed+time.Millisecond).Seconds()) + 1
	if granted > most || granted < 50 {
		t.Errorf("%d granted in %s; want 50 to %d", granted, elapsed, most)
	}
}

// neverShort lets a patient caller take 10^9 tokens, each time after exactly its
// RetryAfter. The time this took is the exact one: not a microsecond more.
//
// The bucket holds one token more than a turn takes. If it held no more, it would be
// full when the caller comes, and the part of a microsecond by which the wait was
// rounded up would by definition be lost to it.
func neverShort(t *testing.T, s headgate.Store) {
	const cost, turns = 1_000_000, 1_000
	for _, text := range []string{"3/s", "7000/h", "1.5/s", "999983/s", "11/7ms"} {
		l := parse(t, text+" burst 1000001")
		var elapsed time.Duration
		for turn := range turns {
			r := headgate.Request{Key: "patient", Limit: l, Cost: cost, At: epoch.Add(elapsed)}
			d := take(t, s, r)
			if !d.Allowed() {
				elapsed += d.RetryAfter
				r.At = epoch.Add(elapsed)
				d = take(t, s, r)
			}
			if !d.Allowed() {
				t.Fatalf("%s: turn %d refused after the wait it was told", text, turn)
			}
		}
		// All tokens but the first burst flowed in at refill each period.
		refill, period := big.NewInt(l.Refill()), big.NewInt(l.Period().Microseconds())
		needed := big.NewInt(cost*turns - (cost + 1))
		needed.Mul(needed, period).Add(needed, refill).Sub(needed, big.NewInt(1)).Div(needed,
			refill)
		exact := time.Duration(needed.Int64()) * time.Microsecond
		if elapsed != exact {
			t.Errorf("%s: 10^9 tokens took %s; want %s", text, elapsed, exact)
		}
	}
}

// neverBack lets a clock step back: nothing extra is granted, nothing taken away,
// and the waits are true.
func neverBack(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		l := parse(t, text)
		at := func(d time.Duration) time.Time { return epoch.Add(time.Hour + d) }
		ask := func(d time.Duration, cost int64) headgate.Decision {
			return take(t, s, headgate.Request{Key: "back", Limit: l, Cost: cost, At: at(d)})
		}
		ask(0, 60)
		before := ask(0, 0)
		for _, back := range []time.Duration{time.Microsecond, time.Second, time.Minute,
			59 * time.Minute} {
			if d := ask(-back, 0); d.Remaining != before.Remaining ||
				d.ResetAfter != before.ResetAfter+back {
				t.Errorf("%s: %s back: %s; want remaining %d, reset after %s", text, back,
					describe(d), before.Remaining, before.ResetAfter+back)
			}
		}
		if d := ask(-time.Minute, 40); !d.Allowed() || d.Remaining != 0 {
			t.Errorf("%s: a minute back, the 40 that were left: %s", text, describe(d))
		}
		if d := ask(-time.Second, 1); d.Allowed() {
			t.Errorf("%s: a second back, one too many: %s", text, describe(d))
		} else if again := ask(-time.Second+d.RetryAfter, 1); !again.Allowed() {
			t.Errorf("%s: refused again after the wait it was told: %s", text, describe(again))
		}
	}
}

// denialTouchesNothing asks for too much many times: neither the limit nor how
// long it takes to reset is changed, and an untouched key stays untouched.
func denialTouchesNothing(t *testing.T, s headgate.Store) {
	for _, text := range everyAlgorithm {
		l := parse(t, text)
		ask := func(key string, cost int64) headgate.Decision {
			return take(t, s, headgate.Request{Key: key, Limit: l, Cost: cost, At: epoch})
		}
		ask("denied", 95)
		before := ask("denied", 0)
		for range 10 {
			if d := ask("denied", 6); d.Allowed() || d.Remaining != 5 ||
				d.ResetAfter != before.ResetAfter {
				t.Fatalf("%s: 6 of 5: %s", text, describe(d))
			}
			ask("denied", 101)
			ask("untouched", 101)
		}
		if after := ask("denied", 0); after != before {
			t.Errorf("%s: after denials %s; want %s", text, describe(after), describe(before))
		}
		if d := ask("untouched", 0); d.Remaining != 100 || d.ResetAfter != 0 {
			t.Errorf("%s: after denials alone: %s", text, describe(d))
		}
	}
}

// allOrNone takes several limits together, of one key and of several.
func allOrNone(t *testing.T, s headgate.Store) {
	small, large := parse(t, "small=3/m fixed-window"), parse(t, "large=10/h")
	for _, keys := range [][2]string{{"one", "one"}, {"user", "tenant"}} {
		rs := []headgate.Request{
			{Key: keys[0], Limit: large, Cost: 2, At: epoch},
			{Key: keys[1], Limit: small, Cost: 2, At: epoch},
		}
		ds := takeAll(t, s, rs...)
		if !ds[0].Allowed() || !ds[1].Allowed() || ds[0].Remaining != 8 || ds[1].Remaining != 1 {
			t.Fatalf("keys %v, both fit: %s; %s", keys, describe(ds[0]), describe(ds[1]))
		}
		ds = takeAll(t, s, rs...)
		if !ds[0].Allowed() || ds[0].Remaining != 8 || ds[1].Allowed() ||
			ds[1].RetryAfter != time.Minute {
			t.Errorf("keys %v, the second refuses: %s; %s", keys, describe(ds[0]), describe(ds[1]))
		}
		rs[0], rs[1] = rs[1], rs[0]
		ds = takeAll(t, s, rs...)
		if ds[0].Allowed() || !ds[1].Allowed() || ds[1].Remaining != 8 {
			t.Errorf("keys %v, the first refuses: %s; %s", keys, describe(ds[0]), describe(ds[1]))
		}
		if d := take(t, s, headgate.Request{Key: keys[0], Limit: large,
			At: epoch}); d.Remaining != 8 {
			t.Errorf("keys %v: the sibling was charged by a refusal: %s", keys, describe(d))
		}
	}
	if err := s.TakeAll(t.Context(), nil, nil); err != nil {
		t.Errorf("TakeAll of nothing: %v", err)
	}
}

// resetIsComplete resets a key that was charged, and booked ahead if the store does that.
func resetIsComplete(t *testing.T, s headgate.Store) {
	wait := time.Duration(0)
	if books(t, s) {
		wait = time.Hour
	}
	for _, text := range everyAlgorithm {
		l := parse(t, text)
		for range 3 {
			r := headgate.Request{Key: "reset", Limit: l, Cost: 60, MaxWait: wait, At: epoch}
			take(t, s, r)
			if d := take(t, s, r); d.RetryAfter == 0 {
				t.Errorf("%s: 120 of 100: %s", text, describe(d))
			}
			if err := s.Reset(t.Context(), r.Key, l); err != nil {
				t.Fatal(err)
			}
			r.Cost = 0
			if d := take(t, s, r); d.Remaining != 100 || d.RetryAfter != 0 || d.ResetAfter != 0 {
				t.Errorf("%s: after a reset: %s", text, describe(d))
			}
		}
	}
}

// badInput gets one clear error and changes nothing.
func badInput(t *testing.T, s headgate.Store) {
	good := headgate.Request{Key: "k", Limit: parse(t, "10/s"), Cost: 1, At: epoch}
	for _, c := range []struct {
		name  string
		spoil func(r *headgate.Request)
		words []string
	}{
		{"zero limit", func(r *headgate.Request) { r.Limit = headgate.Limit{} },
			[]string{"limit", "zero"}},
		{"no capacity",
			func(r *headgate.Request) {
				r.Limit = headgate.FixedWindow(-1,
					time.Second)
			}, []string{"count", "0", "at least 1"}},
		{"no window", func(r *headgate.Request) { r.Limit = headgate.FixedWindow(1, 0) },
			[]string{"window", "0s"}},
		{"no refill", func(r *headgate.Request) { r.Limit = headgate.PerSecond(0).Burst(1) },
			[]string{"refill", "0"}},
		{"negative wait", func(r *headgate.Request) { r.MaxWait = -1 },
			[]string{"max wait", "-1ns", "0 to 285 years"}},
		{"long wait", func(r *headgate.Request) { r.MaxWait = 1<<63 - 1 },
			[]string{"max wait", "0 to 285 years"}},
		{"before 1970", func(r *headgate.Request) { r.At = time.Unix(-1, 0) },
			[]string{"at", "1969", "1970"}},
		{"after 2255",
			func(r *headgate.Request) {
				r.At = time.Date(2300, 1, 1, 0, 0, 0, 0,
					time.UTC)
			}, []string{"at", "2300", "2255"}},
		{"cancels before 1970", func(r *headgate.Request) {
			start := time.Unix(-1, 0)
			r.Cost,
				r.Start = -1, &start
		}, []string{"start", "1969", "1970"}},
		{"cancels after 2255",
			func(r *headgate.Request) {
				start := time.UnixMicro(1<<56 + 5)
				r.Cost, r.Start = -1,
					&start
			}, []string{"start", "4253", "2255"}},
	} {
		r := good
		c.spoil(&r)
		_, err := s.Take(t.Context(), r)
		wantInvalid(t, c.name, err, c.words...)
		wantInvalid(t, c.name+", together",
			s.TakeAll(t.Context(), []headgate.Request{good, r},
				make([]headgate.Decision, 2)), c.words...)
	}
	wantInvalid(t, "lengths", s.TakeAll(t.Context(), []headgate.Request{good}, nil), "decisions",
		"0", "1")
	wantInvalid(t, "twice", s.TakeAll(t.Context(), []headgate.Request{good, good},
		make([]headgate.Decision, 2)), "10/s", "twice")
	several := make([]headgate.Request, 40)
	for i := range several {
		several[i] = good
		several[i].Key = strconv.Itoa(i)
		several[i].Limit = good.Limit.Named("twice")
	}
	several[39].Key, several[39].Limit = "20", parse(t, "twice=7/h")
	wantInvalid(t, "twice of many", s.TakeAll(t.Context(), several, make([]headgate.Decision, 40)),
		"twice")
	many := make([]headgate.Request, 4001)
	wantInvalid(t, "many", s.TakeAll(t.Context(), many, make([]headgate.Decision, len(many))),
		"requests", "4001", "4000")
	wantInvalid(t, "reset", s.Reset(t.Context(), "k", headgate.Limit{}), "limit", "zero")
	if d := take(t, s, good); d.Remaining != 9 {
		t.Errorf("after bad input: %s", describe(d))
	}
}

func wantInvalid(t *testing.T, name string, err error, words ...string) {
	t.Helper()
	if _, ok := errors.AsType[*headgate.InvalidError](err); !ok {
		t.Errorf("%s: error %v; want an InvalidError", name, err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %q does not name %q in one line", name, err, word)
		}
	}
}
