package headgate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// jittery is a store that takes some time to answer, and now and then much.
type jittery struct{ Store }

func (s jittery) Take(ctx context.Context, r Request) (Decision, error) {
	time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Millisecond))))
	d, err := s.Store.Take(ctx, r)
	most := 2 * time.Millisecond
	if rand.IntN(10) == 0 {
		most = 40 * time.Millisecond
	}
	time.Sleep(time.Duration(rand.Int64N(int64(most))))
	return d, err
}

func newTestSharedGate(t *testing.T, s Store, n int64, period, slack time.Duration) *SharedGate {
	t.Helper()
	g := must(NewSharedGate(s, "k", n, period, slack))
	t.Cleanup(g.Close)
	return g
}

// mostInAnyWindow is the most of times in any half-open window of that length.
func mostInAnyWindow(times []time.Time, window time.Duration) int {
	slices.SortFunc(times, time.Time.Compare)
	most, first := 0, 0
	for i, at := range times {
		for at.Sub(times[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// Several gates of one store keep one promise for the moments that callers see, though the
// store answers now sooner and now later, and callers leave or wake late. Who comes late
// for a turn takes another.
func TestSharedGateKeepsItsPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, period = 1, 100 * time.Millisecond
		var gates []*SharedGate
		memory := NewMemory(16)
		for range 4 {
			gates = append(gates, newTestSharedGate(t, jittery{memory}, n, period, 10*time.Millisecond))
		}
		var mu sync.Mutex
		var seen []time.Time
		var all sync.WaitGroup
		start := time.Now()
		for i := range 800 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if rand.IntN(4) == 0 {
					time.AfterFunc(time.Duration(rand.Int64N(int64(2*time.Minute))), cancel)
				}
				if gates[i%4].Wait(ctx) != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, time.Now())
			})
		}
		all.Wait()
		took := time.Since(start)
		if most := mostInAnyWindow(seen, period); most > n {
			t.Errorf("%d passed within %s", most, period)
		}
		t.Logf("%d passed in %s: %.3f of what the gate allows", len(seen), took, float64(len(seen)*int(period))/float64(took*n))
		if len(seen) < 500 {
			t.Errorf("only %d passed", len(seen))
		}
	})
}

// Who is alone at a shared gate passes in the steps of a gate.
func TestSharedGateSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestSharedGate(t, NewMemory(16), 2, time.Second, 0)
		start := time.Now()
		for i := range 10 {
			if err := g.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := time.Duration(i/2) * (time.Second + 10*time.Millisecond)
			if since := time.Since(start); since < want || since > want+100*time.Microsecond {
				t.Errorf("pass %d after %s; want %s", i, since, want)
			}
		}
	})
}

// The rest of what a shared gate is asked.
func TestSharedGateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(16)
		g, other := newTestSharedGate(t, m, 1, time.Second, 0), newTestSharedGate(t, m, 1, time.Second, 0)
		if open, in, err := g.Peek(t.Context()); !open || in != 0 || err != nil {
			t.Errorf("at first: %v, %s, %v", open, in, err)
		}
		if ok, err := other.TryWait(t.Context(), 0); !ok || err != nil {
			t.Errorf("the first to try: %v, %v", ok, err)
		}
		if open, in, err := g.Peek(t.Context()); open || in <= time.Second || err != nil {
			t.Errorf("after a pass: %v, %s, %v", open, in, err)
		}
		for _, timeout := range []time.Duration{0, time.Second} {
			if ok, err := g.TryWait(t.Context(), timeout); ok || err != nil {
				t.Errorf("try for %s: %v, %v", timeout, ok, err)
			}
		}
		if ok, err := g.TryWait(t.Context(), 2*time.Second); !ok || err != nil {
			t.Errorf("try for two seconds: %v, %v", ok, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("a deadline before the turn: %v", err)
		}
		if err := g.WaitN(t.Context(), 2); err == nil || err.Error() != "headgate: n is 2; want from 1 to 1, which is what can pass together" {
			t.Error(err)
		}
	})
}

// Close ends all waiting at this gate, and at no other.
func TestSharedGateCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(16)
		g, other := newTestSharedGate(t, m, 1, time.Second, 0), newTestSharedGate(t, m, 1, time.Second, 0)
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
		if err := other.Wait(t.Context()); err != nil {
			t.Errorf("the other: %v", err)
		}
	})
}

// A crowd in one process does not make itself late, and who waits behind those who have booked
// has nothing to lose.
func TestACrowdAtASharedGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestSharedGate(t, &oneByOne{NewMemory(16), make(chan struct{}, 1)}, 100, time.Second, 0)
		start := time.Now()
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i >= 500 {
					time.AfterFunc(1500*time.Millisecond, cancel)
				}
				if err := g.Wait(ctx); err != nil && i < 500 {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took > 9*time.Second {
			t.Errorf("500 passed in %s", took)
		}
		if open, in, err := g.Peek(t.Context()); err != nil || !open && in > 1100*time.Millisecond {
			t.Errorf("after them the next would pass in %s, error %v", in, err)
		}
	})
}

// Who leaves keeps its place until the turn that is left over has passed: however many leave, others
// are delayed by little. Tokens count, not callers.
func TestLeaversOfASharedGateDelayLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int64{1, 10} {
			m := NewMemory(16)
			const period = 100 * time.Millisecond
			g, other := newTestSharedGate(t, m, n, period, 0), newTestSharedGate(t, m, n, period, 0)
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				go func() { _ = g.WaitN(ctx, n) }()
				time.Sleep(time.Millisecond)
				cancel()
			}
			start := time.Now()
			if err := other.WaitN(t.Context(), n); err != nil || time.Since(start) > 3*period {
				t.Errorf("%d at a time: another waits for %s, error %v", n, time.Since(start), err)
			}
		}
	})
}

// An open gate lets all pass who only try, however many ask at once.
func TestACrowdTriesASharedGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestSharedGate(t, &remote{Store: NewMemory(16), takes: 2 * time.Millisecond}, 1000, time.Second, 0)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if ok, err := g.TryWait(t.Context(), 0); !ok || err != nil {
					t.Errorf("%v, %v", ok, err)
				}
			})
		}
		all.Wait()
	})
}

// oneByOne is a store that takes some time for each question.
type oneByOne struct {
	Store
	busy chan struct{}
}

func (s *oneByOne) Take(ctx context.Context, r Request) (Decision, error) {
	s.busy <- struct{}{}
	defer func() { <-s.busy }()
	time.Sleep(200 * time.Microsecond)
	return s.Store.Take(ctx, r)
}

// A store that always answers too late is an error, and not a wait for ever.
func TestSharedGateOfASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestSharedGate(t, slow{NewMemory(16)}, 100, time.Millisecond, time.Millisecond)
		if err := g.Wait(t.Context()); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

type slow struct{ Store }

func (s slow) Take(ctx context.Context, r Request) (Decision, error) {
	time.Sleep(2 * time.Millisecond)
	return s.Store.Take(ctx, r)
}

func TestNewSharedGateRefuses(t *testing.T) {
	m := NewMemory(16)
	for _, c := range []struct {
		store         Store
		n             int64
		period, slack time.Duration
	}{{nil, 1, time.Second, 0}, {m, 0, time.Second, 0}, {m, -1, time.Second, 0}, {m, 1, 0, 0}, {m, 1, -time.Second, 0}, {m, 70_000, time.Second, 0}, {m, 1, time.Second, -1}, {m, 1, 1<<63 - 1, 0}, {m, 1, time.Second, 1<<63 - 1}} {
		if _, err := NewSharedGate(c.store, "k", c.n, c.period, c.slack); err == nil {
			t.Errorf("%+v was accepted", c)
		} else if _, ok := errors.AsType[*InvalidError](err); !ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
