package limittest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// long is a lease that no test waits for the end of.
const long = time.Hour

// patience is how long what must happen may take on a machine that is busy.
const patience = 30 * time.Second

func newConcurrency(t *testing.T, s headgate.ConcurrencyStore, n int64) *headgate.Concurrency {
	t.Helper()
	c, err := headgate.NewConcurrency(s, n, long)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// begin begins a flight that must be granted.
func begin(t *testing.T, c *headgate.Concurrency, key string) *headgate.Flight {
	t.Helper()
	f, d, err := c.Acquire(t.Context(), key)
	if err != nil || f == nil {
		t.Fatalf("not granted: %+v, %v", d, err)
	}
	return f
}

func release(t *testing.T, f *headgate.Flight) {
	t.Helper()
	if err := f.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func wantInFlight(t *testing.T, c *headgate.Concurrency, key string, want int64) {
	t.Helper()
	if d, err := c.Peek(t.Context(), key); err != nil || d.InFlight != want {
		t.Errorf("%d in flight, error %v; want %d", d.InFlight, err, want)
	}
}

// flightsLive lets 64 hold and give back, and counts them.
func flightsLive(t *testing.T, s headgate.ConcurrencyStore) {
	const n = 5
	c := newConcurrency(t, s, n)
	var held, over, granted atomic.Int64
	var wg sync.WaitGroup
	for caller := range 64 {
		wg.Go(func() {
			for range 20 {
				var f *headgate.Flight
				var err error
				if caller%2 == 0 {
					f, err = c.Wait(t.Context(), "live")
				} else {
					f, _, err = c.Acquire(t.Context(), "live")
				}
				if err != nil {
					t.Error(err)
				}
				if f == nil {
					continue
				}
				granted.Add(1)
				now := held.Add(1)
				if now > n {
					over.Add(1)
				}
				runtime.Gosched()
				held.Add(-1)
				release(t, f)
			}
		})
	}
	wg.Wait()
	if over.Load() > 0 || granted.Load() < 32*20 {
		t.Errorf("%d times more than %d at a time; %d in all, want at least %d", over.Load(), n, granted.Load(), 32*20)
	}
	wantInFlight(t, c, "live", 0)
}

// givesBackItself releases twice, and what is not held: the others stay.
func givesBackItself(t *testing.T, s headgate.ConcurrencyStore) {
	c := newConcurrency(t, s, 2)
	a, b := begin(t, c, "k"), begin(t, c, "k")
	if f, d, err := c.Acquire(t.Context(), "k"); f != nil || err != nil || d.Allowed() || d.InFlight != 2 || d.RetryAfter <= 0 || d.RetryAfter > time.Hour {
		t.Errorf("a third of two: %+v, %v", d, err)
	}
	release(t, b)
	for range 2 {
		if err := b.Release(t.Context()); !errors.Is(err, headgate.ErrReleased) {
			t.Errorf("released again: %v", err)
		}
		if err := b.Renew(t.Context()); !errors.Is(err, headgate.ErrReleased) {
			t.Errorf("renewed after the release: %v", err)
		}
		wantInFlight(t, c, "k", 1)
	}
	stranger := headgate.FlightRequest{Key: "k", ID: headgate.FlightID{1}, Lease: time.Hour}
	if held, err := s.ReleaseFlight(t.Context(), stranger); held || err != nil {
		t.Errorf("a flight that never was: %t, %v", held, err)
	}
	if err := a.Renew(t.Context()); err != nil {
		t.Errorf("the other one: %v", err)
	}
	release(t, a)
	wantInFlight(t, c, "k", 0)
}

// looksLikeAnother is a flight whose ID stands in what a store may keep of another: the end
// of its ID, and the low byte of the end of its lease.
func looksLikeAnother(t *testing.T, s headgate.ConcurrencyStore) {
	held := headgate.FlightRequest{Key: "k", ID: headgate.FlightID{1}, N: 9, Lease: time.Second, At: time.UnixMicro(1 << 52)}
	if d, err := s.AcquireFlight(t.Context(), held); !d.Allowed() || err != nil {
		t.Fatal(d, err)
	}
	other := held
	other.ID = headgate.FlightID{15: byte(1<<52 + held.Lease.Microseconds())}
	if was, err := s.RenewFlight(t.Context(), other); was || err != nil {
		t.Errorf("renewed what is not held: %t, %v", was, err)
	}
	if d, err := s.AcquireFlight(t.Context(), other); d.InFlight != 2 || err != nil {
		t.Errorf("with another: %+v, %v", d, err)
	}
	for _, r := range []headgate.FlightRequest{other, held} {
		if was, err := s.ReleaseFlight(t.Context(), r); !was || err != nil {
			t.Errorf("release %s: %t, %v", r.ID, was, err)
		}
	}
}

// endedIsLost lets leases end, by times that are passed.
func endedIsLost(t *testing.T, s headgate.ConcurrencyStore) {
	request := func(who byte, at time.Duration) headgate.FlightRequest {
		return headgate.FlightRequest{Key: "k", ID: headgate.FlightID{who}, N: 2, Lease: time.Minute, At: epoch.Add(at)}
	}
	acquire := func(who byte, at time.Duration, want headgate.FlightDecision) {
		t.Helper()
		want.N = 2
		if d, err := s.AcquireFlight(t.Context(), request(who, at)); d != want || err != nil {
			t.Errorf("acquire %d at %s: %+v, %v; want %+v", who, at, d, err, want)
		}
	}
	renew := func(who byte, at time.Duration, want bool) {
		t.Helper()
		if held, err := s.RenewFlight(t.Context(), request(who, at)); held != want || err != nil {
			t.Errorf("renew %d at %s: %t, %v; want %t", who, at, held, err, want)
		}
	}
	acquire(1, 0, headgate.FlightDecision{InFlight: 1})
	acquire(2, 10*time.Second, headgate.FlightDecision{InFlight: 2})
	acquire(2, 11*time.Second, headgate.FlightDecision{InFlight: 2}) // the same again: its answer was lost
	renew(1, 20*time.Second, true)
	acquire(3, 20*time.Second, headgate.FlightDecision{InFlight: 2, RetryAfter: 51 * time.Second})
	acquire(3, 71*time.Second-time.Microsecond, headgate.FlightDecision{InFlight: 2, RetryAfter: time.Microsecond})
	acquire(3, 71*time.Second, headgate.FlightDecision{InFlight: 2})
	renew(2, 71*time.Second, false) // its place is another's
	renew(1, 80*time.Second, false) // its place is free, and it is lost all the same
	if held, err := s.ReleaseFlight(t.Context(), request(2, 80*time.Second)); held || err != nil {
		t.Errorf("released after its end: %t, %v", held, err)
	}
	acquire(4, 80*time.Second, headgate.FlightDecision{InFlight: 2})
	acquire(5, 80*time.Second, headgate.FlightDecision{InFlight: 2, RetryAfter: 51 * time.Second})
}

// flightsBack steps back in time: what was forgotten stays so, and nothing is granted.
func flightsBack(t *testing.T, s headgate.ConcurrencyStore) {
	ask := func(who byte, at time.Duration) headgate.FlightDecision {
		t.Helper()
		d, err := s.AcquireFlight(t.Context(), headgate.FlightRequest{Key: "k", ID: headgate.FlightID{who}, N: 1, Lease: time.Minute, At: epoch.Add(at)})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	ask(1, 0)
	if d := ask(2, time.Minute); !d.Allowed() || d.InFlight != 1 {
		t.Errorf("after the end of the first: %+v", d)
	}
	if d := ask(3, 0); d.Allowed() || d.RetryAfter != 2*time.Minute {
		t.Errorf("a minute back: %+v; want to wait for the end of the second", d)
	}
	held, err := s.RenewFlight(t.Context(), headgate.FlightRequest{Key: "k", ID: headgate.FlightID{1}, Lease: time.Minute, At: epoch})
	if held || err != nil {
		t.Errorf("a minute back, the first lives again: %t, %v", held, err)
	}
}

// nChanges to less and to more.
func nChanges(t *testing.T, s headgate.ConcurrencyStore) {
	c := newConcurrency(t, s, 3)
	flights := []*headgate.Flight{begin(t, c, "k"), begin(t, c, "k"), begin(t, c, "k")}
	if err := c.SetN(0); err == nil || c.N() != 3 {
		t.Errorf("SetN(0): %v, and N is %d", err, c.N())
	}
	if err := c.SetN(2); err != nil {
		t.Fatal(err)
	}
	for i, f := range flights {
		if err := f.Renew(t.Context()); err != nil {
			t.Errorf("one of those that are in flight: %v", err)
		}
		other, d, err := c.Acquire(t.Context(), "k")
		if granted := i == 2; (other != nil) != granted || err != nil || d.N != 2 {
			t.Errorf("with %d in flight: %+v, %v", 3-i, d, err)
		}
		release(t, f)
	}
	wantInFlight(t, c, "k", 1)
	if err := c.SetN(4); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		begin(t, c, "k")
	}
	wantInFlight(t, c, "k", 4)
}

// flightKeys are counted apart, whatever is in their names.
func flightKeys(t *testing.T, s headgate.ConcurrencyStore) {
	c := newConcurrency(t, s, 1)
	names := keyNames()
	slices.Sort(names)
	for _, key := range slices.Compact(names) {
		f := begin(t, c, key)
		wantInFlight(t, c, key, 1)
		if f.Key() != key || time.Until(f.Until()) > time.Hour {
			t.Errorf("%q: of %q until %s", key, f.Key(), f.Until())
		}
	}
}

// flightsOfEnded: who has gone begins nothing, and gives back all the same.
func flightsOfEnded(t *testing.T, s headgate.ConcurrencyStore) {
	c := newConcurrency(t, s, 2)
	ended := must(context.WithCancel(t.Context()))
	if f, d, err := c.Acquire(ended, "k"); f != nil || d.Allowed() || !errors.Is(err, context.Canceled) {
		t.Errorf("acquire: %+v, %v", d, err)
	}
	if d, err := c.Peek(ended, "k"); d.Allowed() || !errors.Is(err, context.Canceled) {
		t.Errorf("peek: %+v, %v", d, err)
	}
	if f, err := c.Wait(ended, "k"); f != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
	wantInFlight(t, c, "k", 0)
	if err := begin(t, c, "k").Release(ended); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("release: %v", err)
	}
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		d, err := c.Peek(t.Context(), "k")
		if err == nil && d.InFlight == 0 {
			return
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("it is not given back: %+v, %v", d, err)
		}
	}
}

// releasedOnce lets many release one flight at once.
func releasedOnce(t *testing.T, s headgate.ConcurrencyStore) {
	c := newConcurrency(t, s, 8)
	for range 7 {
		begin(t, c, "k")
	}
	f := begin(t, c, "k")
	var did atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			switch err := f.Release(t.Context()); {
			case err == nil:
				did.Add(1)
			case !errors.Is(err, headgate.ErrReleased):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if did.Load() != 1 {
		t.Errorf("%d say that they gave it back; want 1", did.Load())
	}
	wantInFlight(t, c, "k", 7)
}

// awaitWaiting returns when n wait for the key k.
func awaitWaiting(t *testing.T, c *headgate.Concurrency, n int64) {
	t.Helper()
	for deadline := time.Now().Add(patience); c.Waiting("k") != n; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d wait; want %d", c.Waiting("k"), n)
		}
	}
}

func patient(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), patience)
}
