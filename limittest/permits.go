package limittest

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/concurrency"
)

// OpenPermits returns a store with no permits in use. Clean up with t.Cleanup.
type OpenPermits func(t *testing.T) concurrency.Store

// RunPermits is the suite that every concurrency.Store passes: random operations against the
// definition, invariants, and known defects.
func RunPermits(t *testing.T, open OpenPermits) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s concurrency.Store)
	}{
		{"random operations follow the definition", permitsByDefinition},
		{"never over the limit at one instant", permitsAtOnce},
		{"never over the limit by the store's clock", permitsLive},
		{"a permit is found by its whole ID", permitsWithSimilarIDs},
		{"an expired permit stays expired", permitsExpire},
		{"a permit that is released later", permitsReleasedLater},
		{"a clock that steps back", permitsWithClockBack},
		{"keys are apart", permitsOfKeys},
		{"invalid input", invalidPermits},
		{"a release with a context that has ended", releaseWithEndedContext},
		{"a release wakes a caller", releaseWakes},
		{"a later release wakes a caller", laterReleaseWakes},
		{"callers of several limiters", callersOfSeveralLimiters},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// permitModel is the definition of a store for one key: when each permit expires.
type permitModel map[concurrency.PermitID]int64

func (m permitModel) expire(now int64) {
	maps.DeleteFunc(m, func(_ concurrency.PermitID, expires int64) bool { return expires <= now })
}

func (m permitModel) renew(r concurrency.Request, now int64) {
	m[r.ID] = max(m[r.ID], now+r.TTL.Microseconds())
}

// release leaves the place of a permit in use for r.After, under an ID that no call has.
func (m permitModel) release(r concurrency.Request, now int64) {
	if _, held := m[r.ID]; held && r.After > 0 {
		other := concurrency.PermitID{0xff, byte(now), byte(now >> 8), byte(len(m)), r.ID[0]}
		m[other] = now + r.After.Microseconds()
	}
	delete(m, r.ID)
}

func (m permitModel) acquire(r concurrency.Request, now int64) concurrency.Decision {
	m.expire(now)
	d := concurrency.Decision{Limit: r.Limit}
	_, held := m[r.ID]
	switch {
	case held || int64(len(m)) < r.Limit && r.ID != concurrency.PermitID{}:
		m.renew(r, now)
	case int64(len(m)) >= r.Limit:
		d.RetryAfter = m.retryAfter(r, now)
	}
	d.InUse = int64(len(m))
	return d
}

// retryAfter is the time until fewer than the limit are in use, or none.
func (m permitModel) retryAfter(r concurrency.Request, now int64) time.Duration {
	expiries := slices.Sorted(maps.Values(m))
	if len(expiries) == 0 {
		return r.TTL
	}
	for i, at := range expiries {
		if int64(len(expiries)-i-1) < r.Limit {
			return time.Duration(at-now) * time.Microsecond
		}
	}
	return time.Duration(expiries[len(expiries)-1]-now) * time.Microsecond
}

// permitsByDefinition makes random calls with few IDs, at times that pass and step back.
func permitsByDefinition(t *testing.T, s concurrency.Store) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		key := keyNames()[seed]
		at := epoch.UnixMicro() + random.Int64N(1e12)
		m := permitModel{}
		for step := range 500 {
			at += []int64{0, 0, random.Int64N(30), random.Int64N(1000),
				-random.Int64N(300)}[random.IntN(5)]
			r := concurrency.Request{
				Key: key, Limit: random.Int64N(8),
				At: time.UnixMicro(at), Notify: random.IntN(2) == 0,
				TTL: time.Duration(1+random.Int64N(1000)) * time.Microsecond,
			}
			if random.IntN(2) == 0 {
				r.After = time.Duration(random.Int64N(1500)) * time.Microsecond
			}
			if id := random.IntN(16); id > 0 {
				r.ID = concurrency.PermitID{byte(id), 0, 0xff, 15: byte(seed)}
			}
			if !samePermits(t, s, m, r, random.IntN(4)) {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

// samePermits makes one call to s and to m, and compares the answers.
func samePermits(
	t *testing.T, s concurrency.Store, m permitModel, r concurrency.Request, op int,
) bool {
	now := r.At.UnixMicro()
	if op > 1 || r.ID == (concurrency.PermitID{}) {
		d, err := s.AcquirePermit(t.Context(), r)
		want := m.acquire(r, now)
		if d != want || err != nil {
			t.Errorf("acquire %+v: %+v, %v; want %+v", r, d, err, want)
		}
		return d == want && err == nil
	}
	m.expire(now)
	_, want := m[r.ID]
	call, name := s.RenewPermit, "renew"
	if op == 1 {
		call, name = s.ReleasePermit, "release"
		m.release(r, now)
	} else if want {
		m.renew(r, now)
	}
	held, err := call(t.Context(), r)
	if held != want || err != nil {
		t.Errorf("%s %+v: %t, %v; want %t", name, r, held, err, want)
	}
	return held == want && err == nil
}

// permitsAtOnce makes many callers race for the permits of a key while no time passes.
func permitsAtOnce(t *testing.T, s concurrency.Store) {
	var granted atomic.Int64
	var wg sync.WaitGroup
	for caller := range 48 {
		wg.Go(func() {
			for i := range 3 {
				d, err := s.AcquirePermit(t.Context(), concurrency.Request{
					Key: "k", ID: concurrency.PermitID{1, byte(caller), byte(i)},
					Limit: 100, TTL: time.Hour, At: epoch,
				})
				if err != nil {
					t.Error(err)
				}
				if d.Allowed() {
					granted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if granted.Load() != 100 {
		t.Errorf("%d of 144 granted; want 100", granted.Load())
	}
}

func newPermits(t *testing.T, s concurrency.Store, limit int64) *concurrency.Limiter {
	t.Helper()
	l, err := concurrency.New(s, limit, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// permitsLive makes callers hold and release permits, and counts those in use.
func permitsLive(t *testing.T, s concurrency.Store) {
	const limit, callers, rounds = 5, 32, 12
	l := newPermits(t, s, limit)
	var inUse, over, granted atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for range rounds {
				var p *concurrency.Permit
				var err error
				if caller%2 == 0 {
					p, err = l.Wait(t.Context(), "k")
				} else {
					p, _, err = l.Acquire(t.Context(), "k")
				}
				if err != nil {
					t.Error(err)
				}
				if p == nil {
					continue
				}
				granted.Add(1)
				if inUse.Add(1) > limit {
					over.Add(1)
				}
				runtime.Gosched()
				inUse.Add(-1)
				releasePermit(t, p)
			}
		})
	}
	wg.Wait()
	if over.Load() > 0 || granted.Load() < rounds*callers/2 {
		t.Errorf("%d times over the limit; %d granted, want at least %d",
			over.Load(), granted.Load(), rounds*callers/2)
	}
	if d, err := l.Peek(t.Context(), "k"); d.InUse != 0 || err != nil {
		t.Errorf("in the end: %+v, %v", d, err)
	}
}

func releasePermit(t *testing.T, p *concurrency.Permit) {
	t.Helper()
	if err := p.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// permitsWithSimilarIDs has an ID that occurs in what a store may keep of another permit: the end
// of its ID, and the low byte of its expiry.
func permitsWithSimilarIDs(t *testing.T, s concurrency.Store) {
	first := concurrency.Request{
		Key: "k", ID: concurrency.PermitID{1}, Limit: 9, TTL: time.Second,
		At: time.UnixMicro(1 << 52),
	}
	if d, err := s.AcquirePermit(t.Context(), first); !d.Allowed() || err != nil {
		t.Fatal(d, err)
	}
	second := first
	second.ID = concurrency.PermitID{15: byte(1<<52 + first.TTL.Microseconds())}
	if held, err := s.RenewPermit(t.Context(), second); held || err != nil {
		t.Errorf("renewed a permit that is not in use: %t, %v", held, err)
	}
	if held, err := s.ReleasePermit(t.Context(), second); held || err != nil {
		t.Errorf("released a permit that is not in use: %t, %v", held, err)
	}
	if d, err := s.AcquirePermit(t.Context(), second); d.InUse != 2 || err != nil {
		t.Errorf("acquired the second: %+v, %v", d, err)
	}
	for _, r := range []concurrency.Request{second, first} {
		if held, err := s.ReleasePermit(t.Context(), r); !held || err != nil {
			t.Errorf("release %s: %t, %v", r.ID, held, err)
		}
	}
}

// permitsOfKeys acquires one permit of each key, whatever bytes its name has.
func permitsOfKeys(t *testing.T, s concurrency.Store) {
	l := newPermits(t, s, 1)
	names := keyNames()
	slices.Sort(names)
	for _, key := range slices.Compact(names) {
		p, d, err := l.Acquire(t.Context(), key)
		if err != nil || p == nil || d.InUse != 1 {
			t.Fatalf("%q: %+v, %v", key, d, err)
		}
		if p.Key() != key || time.Until(p.ExpiresAt()) > time.Hour {
			t.Errorf("%q: permit of %q until %s", key, p.Key(), p.ExpiresAt())
		}
	}
}

// invalidPermits get one clear error and change nothing.
func invalidPermits(t *testing.T, s concurrency.Store) {
	type request = concurrency.Request
	valid := request{Key: "k", ID: concurrency.PermitID{1}, Limit: 1, TTL: time.Second}
	for name, c := range map[string]struct {
		change func(r *request)
		words  []string
	}{
		"limit below 0": {func(r *request) { r.Limit = -1 }, []string{"limit is -1", "65535"}},
		"limit too large": {func(r *request) { r.Limit = math.MaxInt64 },
			[]string{"limit is", "65535"}},
		"no TTL": {func(r *request) { r.TTL = 0 }, []string{"ttl is 0s", "1µs"}},
		"TTL too long": {func(r *request) { r.TTL = math.MaxInt64 },
			[]string{"ttl is", "8760h"}},
		"released before now": {func(r *request) { r.After = -1 },
			[]string{"after is -1ns", "8760h"}},
		"released too late": {func(r *request) { r.After = math.MaxInt64 },
			[]string{"after is", "8760h"}},
		"before 1970": {func(r *request) { r.At = time.Unix(-1, 0) },
			[]string{"at", "1969", "1970"}},
		"at 1970": {func(r *request) { r.At = time.Unix(0, 0) }, []string{"at", "1970"}},
		"far future": {func(r *request) { r.At = time.Unix(1<<40, 0) },
			[]string{"at", "2255"}},
	} {
		r := valid
		c.change(&r)
		_, err := s.AcquirePermit(t.Context(), r)
		wantInvalid(t, name, err, c.words...)
		_, err = s.RenewPermit(t.Context(), r)
		wantInvalid(t, name, err, c.words...)
		_, err = s.ReleasePermit(t.Context(), r)
		wantInvalid(t, name, err, c.words...)
	}
	if d, err := s.AcquirePermit(t.Context(), valid); !d.Allowed() || d.InUse != 1 || err != nil {
		t.Errorf("after invalid input: %+v, %v", d, err)
	}
}

// patience is how long a busy machine may take for what must happen.
const patience = 30 * time.Second

// eventually waits until done returns true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

func releaseWithEndedContext(t *testing.T, s concurrency.Store) {
	l := newPermits(t, s, 1)
	p, d, err := l.Acquire(t.Context(), "k")
	if err != nil || p == nil {
		t.Fatal(d, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Release(ended); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("release: %v", err)
	}
	eventually(t, "released", func() bool {
		d, err := l.Peek(t.Context(), "k")
		return err == nil && d.InUse == 0
	})
}

// releaseWakes makes a caller wait for a permit whose TTL is longer than any test.
func releaseWakes(t *testing.T, s concurrency.Store) {
	l := newPermits(t, s, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	holder, err := l.Wait(ctx, "k")
	for range 3 {
		if err != nil {
			t.Fatal(err)
		}
		next := make(chan struct{})
		var p *concurrency.Permit
		go func() {
			p, err = l.Wait(ctx, "k")
			close(next)
		}()
		eventually(t, "a caller waits", func() bool { return l.Waiting("k") == 1 })
		releasePermit(t, holder)
		<-next
		holder = p
	}
}

// laterReleaseWakes makes callers of several limiters wait for permits whose TTL is longer than any
// test. They get the permits a period after those were released, and not before.
func laterReleaseWakes(t *testing.T, s concurrency.Store) {
	const limit, period = 3, 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var mu sync.Mutex
	var starts []time.Time
	var wg sync.WaitGroup
	for range 4 {
		l := newPermits(t, s, limit)
		for range 6 {
			wg.Go(func() {
				p, err := l.Wait(ctx, "k")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				starts = append(starts, time.Now())
				mu.Unlock()
				if err := p.ReleaseAfter(ctx, period); err != nil {
					t.Error(err)
				}
				if err := p.Release(ctx); !errors.Is(err, concurrency.ErrReleased) {
					t.Errorf("released again: %v", err)
				}
			})
		}
	}
	wg.Wait()
	slices.SortFunc(starts, time.Time.Compare)
	for i := limit; i < len(starts); i++ {
		if span := starts[i].Sub(starts[i-limit]); span < period-time.Microsecond { // its unit
			t.Errorf("%d starts within %s", limit+1, span)
		}
	}
}

// callersOfSeveralLimiters wait for one key, as those of several processes do.
func callersOfSeveralLimiters(t *testing.T, s concurrency.Store) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	holder, err := newPermits(t, s, 1).Wait(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		l := newPermits(t, s, 1)
		for range 4 {
			wg.Go(func() {
				p, err := l.Wait(ctx, "k")
				if err != nil {
					t.Error(err)
					return
				}
				releasePermit(t, p) //nolint:contextcheck // released even if ctx has ended
			})
		}
		eventually(t, "four callers wait", func() bool { return l.Waiting("k") == 4 })
	}
	releasePermit(t, holder)
	wg.Wait()
}
