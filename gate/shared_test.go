package gate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

func newTestSharedGate(
	t *testing.T, s concurrency.Store, n int64, period time.Duration,
) *SharedGate {
	t.Helper()
	g := must(NewShared(s, "k", n, period))
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// remote is a store that takes some time to answer: half of it before it decides, and half
// after.
type remote struct {
	concurrency.Store
	takes func() time.Duration
}

func (s remote) AcquirePermit(
	ctx context.Context, r concurrency.Request,
) (concurrency.Decision, error) {
	half := s.takes() / 2
	time.Sleep(half)
	defer time.Sleep(half)
	return s.Store.AcquirePermit(ctx, r)
}

func (s remote) RenewPermit(ctx context.Context, r concurrency.Request) (bool, error) {
	half := s.takes() / 2
	time.Sleep(half)
	defer time.Sleep(half)
	return s.Store.RenewPermit(ctx, r)
}

func (s remote) ReleasePermit(ctx context.Context, r concurrency.Request) (bool, error) {
	half := s.takes() / 2
	time.Sleep(half)
	defer time.Sleep(half)
	return s.Store.ReleasePermit(ctx, r)
}

// always is the delay of a remote that is always the same.
func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// random is for many goroutines.
type random struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newRandom() *random { return &random{r: rand.New(rand.NewPCG(1, 1))} }

func (r *random) upTo(d time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Duration(r.r.Int64N(int64(d)) + 1)
}

// passes are the times at which callers of several gates passed, each of which has callers that
// pass again and again for the given time.
func passes(t *testing.T, callers int, span time.Duration, gates ...*SharedGate) [][]time.Time {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	seen := make([][]time.Time, len(gates))
	end := time.Now().Add(span)
	for i, g := range gates {
		for range callers {
			all.Go(func() {
				for time.Now().Before(end) {
					if err := g.Wait(t.Context()); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					seen[i] = append(seen[i], time.Now())
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	time.Sleep(time.Minute) // the last permits are released
	return seen
}

// Once, a caller whose answer or whose timer was later than a slack of a few milliseconds lost its
// start, and a busy machine left 0.8% of the rate. The delays are those of answers and timers in
// four processes with two spinning goroutines each on two cores. Some are longer than a permit
// lasts.
func TestSharedGateKeepsHalfOfItsRateOnABusyMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, period, span = 10, 100 * time.Millisecond, 20 * time.Second
		random := newRandom()
		takes := func() time.Duration {
			switch random.upTo(1000) {
			case 1:
				return 3 * time.Second
			case 2, 3, 4:
				return random.upTo(200 * time.Millisecond)
			}
			return random.upTo(40*time.Millisecond) + random.upTo(28*time.Millisecond)
		}
		store := remote{concurrency.NewMemory(), takes}
		var gates []*SharedGate
		for range 4 {
			gates = append(gates, newTestSharedGate(t, store, n, period))
		}
		seen := slices.Concat(passes(t, 4, span, gates...)...)
		holdPromise(t, seen, n, period)
		part := float64(len(seen)) / n * float64(period) / float64(span)
		t.Logf("%.2f of n in a period", part)
		if part < 0.5 {
			t.Errorf("%.2f of n passed in a period; want half", part)
		}
	})
}

// A process that is far from the store asks later than others after each release. It passes all
// the same, because those that passed last pause first.
func TestSharedGateServesProcessesFarFromTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := concurrency.NewMemory()
		near := remote{memory, always(200 * time.Microsecond)}
		far := remote{memory, always(time.Millisecond)}
		const n, period, span = 1, 100 * time.Millisecond, 60 * time.Second
		seen := passes(t, 2, span, newTestSharedGate(t, near, n, period),
			newTestSharedGate(t, near, n, period), newTestSharedGate(t, far, n, period))
		all := slices.Concat(seen...)
		holdPromise(t, all, n, period)
		if part := float64(len(all)) * float64(period) / float64(span); part < 0.9 {
			t.Errorf("%.2f of n passed in a period", part)
		}
		if len(seen[2]) < len(all)/6 {
			t.Errorf("the far one passed %d times of %d", len(seen[2]), len(all))
		}
	})
}

// Callers leave at any moment, and the promise and the rate are kept.
func TestCallersMayLeaveASharedGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, period = 3, 100 * time.Millisecond
		random := newRandom()
		store := remote{
			concurrency.NewMemory(), func() time.Duration {
				return random.upTo(
					2 * time.Millisecond)
			},
		}
		gates := []*SharedGate{
			newTestSharedGate(t, store, n, period), newTestSharedGate(t, store, n, period),
		}
		var mu sync.Mutex
		var seen []time.Time
		var all sync.WaitGroup
		start := time.Now()
		for i := range 400 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%4 == 0 {
					time.AfterFunc(random.upTo(time.Minute), cancel)
				}
				if gates[i%2].Wait(ctx) != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, time.Now())
			})
		}
		all.Wait()
		holdPromise(t, seen, n, period)
		took := time.Since(start)
		if time.Sleep(time.Minute); len(seen) < 300 || took > 400*period/n*5/4 {
			t.Errorf("%d passed in %s", len(seen), took)
		}
	})
}

func TestSharedGateTriesAndPeeks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := concurrency.NewMemory()
		g, other := newTestSharedGate(t, m, 1, time.Second), newTestSharedGate(t, m, 1, time.Second)
		if open, in, err := g.Peek(t.Context()); !open || in != 0 || err != nil {
			t.Errorf("at first: %v, %s, %v", open, in, err)
		}
		if ok, err := other.TryWait(t.Context(), 0); !ok || err != nil {
			t.Errorf("the first to try: %v, %v", ok, err)
		}
		if open, in, err := g.Peek(t.Context()); open || in < time.Second || err != nil {
			t.Errorf("after a pass: %v, %s, %v", open, in, err)
		}
		for _, timeout := range []time.Duration{0, time.Second / 2} {
			if ok, err := g.TryWait(t.Context(), timeout); ok || err != nil {
				t.Errorf("try for %s: %v, %v", timeout, ok, err)
			}
		}
		if ok, err := g.TryWait(t.Context(), time.Second); !ok || err != nil {
			t.Errorf("try for another second: %v, %v", ok, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := g.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a deadline before a permit is free: %v", err)
		}
		if ok, err := g.TryWait(ctx, time.Hour); ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a deadline of the caller that has passed: %v, %v", ok, err)
		}
		want := "headgate: n is 2; want from 1 to 1, the burst of the gate"
		if err := g.WaitN(t.Context(), 2); err == nil || err.Error() != want {
			t.Error(err)
		}
	})
}

// A process that ends without releasing its permits delays the others until they expire.
func TestPermitsOfADeadProcessExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := concurrency.NewMemory()
		dead := newTestSharedGate(t, deaf{m}, 2, time.Second)
		g := newTestSharedGate(t, m, 2, time.Second)
		for range 2 {
			if err := dead.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if err := g.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("passed after %s; want two periods and a second", took)
		}
	})
}

// deaf is a store that releases nothing.
type deaf struct{ concurrency.Store }

func (deaf) ReleasePermit(context.Context, concurrency.Request) (bool, error) {
	return false, errors.New("unavailable")
}

// Close ends all waiting at this gate, and at no other.
func TestSharedGateCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := concurrency.NewMemory()
		g, other := newTestSharedGate(t, m, 1, time.Second), newTestSharedGate(t, m, 1, time.Second)
		if err := other.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		waited := make(chan error)
		for range 2 {
			go func() { waited <- g.Wait(t.Context()) }()
		}
		synctest.Wait()
		g.Close()
		g.Close()
		for range 2 {
			if err := <-waited; !errors.Is(err, ErrClosed) {
				t.Errorf("waiting while it was closed: %v", err)
			}
		}
		if err := g.Wait(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after it was closed: %v", err)
		}
		if _, _, err := g.Peek(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("peek after it was closed: %v", err)
		}
		if err := other.Wait(t.Context()); err != nil {
			t.Errorf("the other: %v", err)
		}
	})
}

// A store that fails is an error of the caller that asked it, not a pass.
func TestSharedGateOfABrokenStore(t *testing.T) {
	g := newTestSharedGate(t, broken{concurrency.NewMemory()}, 1, time.Second)
	for range 2 {
		if err := g.Wait(t.Context()); !errors.Is(err, errBroken) {
			t.Error(err)
		}
	}
	if ok, err := g.TryWait(t.Context(), 0); ok || !errors.Is(err, errBroken) {
		t.Errorf("%v, %v", ok, err)
	}
}

var errBroken = errors.New("broken")

type broken struct{ concurrency.Store }

func (broken) AcquirePermit(
	context.Context, concurrency.Request,
) (concurrency.Decision, error) {
	return concurrency.Decision{}, errBroken
}

func TestNewSharedGateRefuses(t *testing.T) {
	m := concurrency.NewMemory()
	for _, c := range []struct {
		store  concurrency.Store
		n      int64
		period time.Duration
	}{
		{nil, 1, time.Second},
		{m, 0, time.Second},
		{m, -1, time.Second},
		{m, 70_000, time.Second},
		{m, 1, 0},
		{m, 1, -time.Second},
		{m, 1, 1<<63 - 1},
	} {
		if _, err := NewShared(c.store, "k", c.n, c.period); err == nil {
			t.Errorf("%+v was accepted", c)
		} else if _, ok := errors.AsType[*headgate.InvalidError](err); !ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// answersLate is a store that decides at once, and whose answers to requests for a permit are late.
type answersLate struct {
	concurrency.Store
	by time.Duration
}

func (s answersLate) AcquirePermit(
	ctx context.Context, r concurrency.Request,
) (concurrency.Decision, error) {
	defer time.Sleep(s.by)
	return s.Store.AcquirePermit(ctx, r)
}

// A permit that would expire before a period has passed is renewed before the caller passes.
func TestSharedGateRenewsAPermitThatEndsTooSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 10 * time.Second // so a permit expires after 21 s
		store := concurrency.NewMemory()
		slow := newTestSharedGate(t, answersLate{store, 20 * time.Second}, 1, period)
		other := newTestSharedGate(t, store, 1, period)
		first := make(chan time.Time, 1)
		go func() {
			if err := slow.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			first <- time.Now()
		}()
		synctest.Wait() // the slow one has the permit
		if err := other.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if apart := time.Since(<-first); apart < period {
			t.Errorf("two passes %s apart, want at least %s", apart, period)
		}
	})
}
