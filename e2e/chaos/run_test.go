package chaos

import (
	"context"
	"math/rand/v2"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

const (
	callers   = 64
	instances = 2                      // processes, as far as Redis can tell: each has a client of its own
	pace      = 40 * time.Millisecond  // of one caller, from call to call
	deadline  = 500 * time.Millisecond // of a call

	// patience bounds what has to happen after a fault.
	patience = 30 * time.Second
)

// run puts f under load and holds what was granted against the bound.
func (f fault) run(t *testing.T) row {
	s := f.build(t)
	n := newTally()
	var stores []headgate.Store
	var closeAll, stop func()
	pprof.Do(t.Context(), pprof.Labels("fault", f.name), func(ctx context.Context) {
		stores, closeAll = s.openAll() // all goroutines that are begun in here have the label
		stop = load(ctx, n, stores)
	})
	m := s.moments(t, n)
	stop()
	n.checkCharges(t, stores[0], f.bound == "")
	closeAll()
	n.check(t, s, m)
	f.checkErrors(t, n)
	if s.felt != nil {
		s.felt()
	}
	checkGone(t, f.name)
	return n.row(f, s, m)
}

func (s *scene) openAll() (stores []headgate.Store, closeAll func()) {
	var closers []func()
	for range instances {
		store, closer := s.open()
		stores, closers = append(stores, store), append(closers, closer)
	}
	return stores, func() {
		for _, closer := range closers {
			closer()
		}
	}
}

// moments are when what happened, counted from the beginning of the load.
type moments struct {
	injected, healed, answering, ended time.Duration
	mendsItself                        bool
}

// moments lets the load run, and the fault happen.
func (s *scene) moments(t *testing.T, n *tally) moments {
	t.Helper()
	var m moments
	wait(nil, *span/4) // time is what is tested here: the load lasts
	m.injected = n.now()
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { s.inject(over) })
	wait(nil, *span/2)
	close(over)
	wg.Wait()
	if s.heal != nil {
		s.heal()
	}
	m.mendsItself = s.heal == nil
	m.healed = n.now()
	n.awaitAnswers(t, m.healed)
	m.answering = n.now()
	wait(nil, *span/4)
	m.ended = n.now()
	return m
}

// wait waits for d, or until over is closed, and says whether it was not.
func wait(over <-chan struct{}, d time.Duration) (goOn bool) {
	select {
	case <-over:
		return false
	default:
	}
	select {
	case <-time.After(d):
		return true
	case <-over:
		return false
	}
}

// every calls f at intervals until over is closed.
func every(over <-chan struct{}, interval time.Duration, f func()) {
	for wait(over, 0) {
		f()
		wait(over, interval)
	}
}

// until polls for what has to become true.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("after %v: not %s", patience, what)
			return
		}
	}
}

// load lets callers ask until stop is called, which returns when the last has its answer.
func load(ctx context.Context, n *tally, stores []headgate.Store) (stop func()) {
	over := make(chan struct{})
	limiters := make([]*headgate.Limiter, len(stores))
	for i, store := range stores {
		limiters[i] = newLimiter(store)
	}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			wait(over, rand.N(pace))
			every(over, pace, func() { n.ask(ctx, limiters[i%len(limiters)]) })
		})
	}
	return func() {
		close(over)
		wg.Wait()
	}
}

// ask asks for one key and records the answer.
func (n *tally) ask(ctx context.Context, l *headgate.Limiter) {
	key := pick()
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	start := n.now()
	var ds []headgate.Decision
	var err error
	if rs := requests(key); rs[0].Key == key {
		ds, err = l.AllowEach(ctx, key, 1, nil)
	} else {
		ds = make([]headgate.Decision, len(rs))
		err = l.Store().TakeAll(ctx, rs, ds)
	}
	n.record(key, start, n.now(), ds, err)
}

// checkErrors holds what callers were told against what f lets them be told.
func (f fault) checkErrors(t *testing.T, n *tally) {
	t.Helper()
	for text, count := range n.texts {
		t.Logf("%d times: %s", count, text)
		if f.quiet && !strings.Contains(text, "no answer in time") {
			t.Errorf("callers were told %q, %d times", text, count)
		}
	}
	for _, want := range f.sees {
		if !n.told(want) {
			t.Errorf("no caller was told %q: the fault was not felt", want)
		}
	}
}
