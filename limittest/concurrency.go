package limittest

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// OpenConcurrency makes a store with nothing in flight. Clean up with t.Cleanup.
type OpenConcurrency func(t *testing.T) headgate.ConcurrencyStore

// RunConcurrency is the suite that every headgate.ConcurrencyStore passes: random
// operations against the definition, invariants, and what others have paid for.
func RunConcurrency(t *testing.T, open OpenConcurrency) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s headgate.ConcurrencyStore)
	}{
		{"definition", flightsByDefinition},
		{"never over, at one instant", flightsAtOnce},
		{"never over, by the store's own clock", flightsLive},
		{"a flight gives back itself alone", givesBackItself},
		{"a flight that looks like another", looksLikeAnother},
		{"what has ended is lost", endedIsLost},
		{"a clock that steps back", flightsBack},
		{"N changes", nChanges},
		{"keys are apart", flightKeys},
		{"bad input", badFlights},
		{"a context that has ended", flightsOfEnded},
		{"released once", releasedOnce},
		{"waiters are woken", waitersWoken},
		{"waiters come in order", waitersInOrder},
		{"waiters who leave", waitersLeave},
		{"waiters of others", waitersOfOthers},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// flightModel is the definition of what is in flight, said as simply as it can be: when the
// lease of each ends.
type flightModel map[headgate.FlightID]int64

func (m flightModel) forget(now int64) {
	for id, end := range m {
		if end <= now {
			delete(m, id)
		}
	}
}

// acquire begins a flight if fewer than n are held.
func (m flightModel) acquire(r headgate.FlightRequest, now int64) headgate.FlightDecision {
	m.forget(now)
	d := headgate.FlightDecision{N: r.N}
	_, held := m[r.ID]
	switch {
	case held || int64(len(m)) < r.N && r.ID != headgate.FlightID{}:
		m.prolong(r, now)
	case int64(len(m)) >= r.N:
		d.RetryAfter = m.wait(r, now)
	}
	d.InFlight = int64(len(m))
	return d
}

func (m flightModel) prolong(r headgate.FlightRequest, now int64) {
	m[r.ID] = max(m[r.ID], now+r.Lease.Microseconds())
}

// wait is the least time after which fewer than n are held, if it is any.
func (m flightModel) wait(r headgate.FlightRequest, now int64) time.Duration {
	last := now
	for _, end := range slices.Sorted(maps.Values(m)) {
		last = end
		if m.heldAt(end) < r.N {
			break
		}
	}
	if last == now {
		return r.Lease
	}
	return time.Duration(last-now) * time.Microsecond
}

func (m flightModel) heldAt(now int64) (n int64) {
	for _, end := range m {
		if end > now {
			n++
		}
	}
	return n
}

// flightsByDefinition asks at random, with times that pass and step back, and a few IDs
// again and again.
func flightsByDefinition(t *testing.T, s headgate.ConcurrencyStore) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		key := keyNames()[seed]
		at := epoch.UnixMicro() + r.Int64N(1e12)
		m := flightModel{}
		for op := range ops() / 32 {
			at += []int64{0, 0, r.Int64N(30), r.Int64N(1000), -r.Int64N(300)}[r.IntN(5)]
			request := headgate.FlightRequest{
				Key: key, N: r.Int64N(8), At: time.UnixMicro(at), Waits: r.IntN(2) == 0,
				Lease: time.Duration(1+r.Int64N(1000)) * time.Microsecond,
			}
			if who := r.IntN(16); who > 0 {
				request.ID = headgate.FlightID{byte(who), 0, 0xff, 15: byte(seed)}
			}
			if !sameFlights(t, s, m, request, r.IntN(4)) {
				t.Fatalf("seed %d, operation %d", seed, op)
			}
		}
	}
}

// sameFlights does one thing to s and to m, and compares.
func sameFlights(t *testing.T, s headgate.ConcurrencyStore, m flightModel, r headgate.FlightRequest, what int) bool {
	now := r.At.UnixMicro()
	if what > 1 || r.ID == (headgate.FlightID{}) {
		d, err := s.AcquireFlight(t.Context(), r)
		if want := m.acquire(r, now); d != want || err != nil {
			t.Errorf("acquire %+v: %+v, %v; want %+v", r, d, err, want)
			return false
		}
		return true
	}
	m.forget(now)
	_, want := m[r.ID]
	ask, name := s.RenewFlight, "renew"
	switch {
	case what == 1:
		ask, name = s.ReleaseFlight, "release"
		delete(m, r.ID)
	case want:
		m.prolong(r, now)
	}
	held, err := ask(t.Context(), r)
	if held != want || err != nil {
		t.Errorf("%s %+v: %t, %v; want %t", name, r, held, err, want)
	}
	return held == want && err == nil
}

// flightsAtOnce lets many race for the places of a key while no time passes.
func flightsAtOnce(t *testing.T, s headgate.ConcurrencyStore) {
	var mu sync.Mutex
	granted := 0
	var wg sync.WaitGroup
	for caller := range 64 {
		wg.Go(func() {
			for turn := range 3 {
				r := headgate.FlightRequest{Key: "race", ID: headgate.FlightID{1, byte(caller), byte(turn)}, N: 100, Lease: time.Hour, At: epoch}
				d, err := s.AcquireFlight(t.Context(), r)
				if err != nil {
					t.Error(err)
				}
				if d.Allowed() {
					mu.Lock()
					granted++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if granted != 100 {
		t.Errorf("%d of 192 at one instant; want 100", granted)
	}
}

// badFlights get one clear error, and change nothing.
func badFlights(t *testing.T, s headgate.ConcurrencyStore) {
	good := headgate.FlightRequest{Key: "k", ID: headgate.FlightID{1}, N: 1, Lease: time.Second}
	for name, c := range map[string]struct {
		spoil func(r *headgate.FlightRequest)
		words []string
	}{
		"n below 0":      {func(r *headgate.FlightRequest) { r.N = -1 }, []string{"n is -1", "65535"}},
		"n too large":    {func(r *headgate.FlightRequest) { r.N = math.MaxInt64 }, []string{"n is", "65535"}},
		"no lease":       {func(r *headgate.FlightRequest) { r.Lease = 0 }, []string{"lease is 0s", "1µs"}},
		"lease too long": {func(r *headgate.FlightRequest) { r.Lease = math.MaxInt64 }, []string{"lease is", "8760h"}},
		"before 1970":    {func(r *headgate.FlightRequest) { r.At = time.Unix(-1, 0) }, []string{"at", "1969", "1970"}},
	} {
		r := good
		c.spoil(&r)
		_, err := s.AcquireFlight(t.Context(), r)
		wantInvalid(t, name, err, c.words...)
		_, err = s.RenewFlight(t.Context(), r)
		wantInvalid(t, name, err, c.words...)
		_, err = s.ReleaseFlight(t.Context(), r)
		wantInvalid(t, name, err, c.words...)
	}
	for name, construct := range map[string]func() (*headgate.Concurrency, error){
		"n is 0":     func() (*headgate.Concurrency, error) { return headgate.NewConcurrency(s, 0, time.Second) },
		"n is 65536": func() (*headgate.Concurrency, error) { return headgate.NewConcurrency(s, 65536, time.Second) },
		"lease is 999.999µs": func() (*headgate.Concurrency, error) {
			return headgate.NewConcurrency(s, 1, time.Millisecond-1)
		},
		"lease is 8760h0m0.000000001s": func() (*headgate.Concurrency, error) {
			return headgate.NewConcurrency(s, 1, 8760*time.Hour+1)
		},
		"lease is -1": func() (*headgate.Concurrency, error) { return headgate.NewConcurrency(s, 1, -1) },
		"store is nil": func() (*headgate.Concurrency, error) {
			return headgate.NewConcurrency((*headgate.MemoryConcurrency)(nil), 1, 1)
		},
	} {
		c, err := construct()
		wantInvalid(t, name, err, name)
		if c != nil {
			t.Errorf("%s: not nil beside an error", name)
		}
	}
	if _, err := headgate.NewConcurrency(s, 1, time.Millisecond); err != nil {
		t.Errorf("the shortest lease: %v", err)
	}
	if d, err := s.AcquireFlight(t.Context(), good); !d.Allowed() || d.InFlight != 1 || errors.Is(err, headgate.ErrLeaseLost) {
		t.Errorf("after bad input: %+v, %v", d, err)
	}
}
