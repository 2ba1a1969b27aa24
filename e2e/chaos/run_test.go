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
	callers  = 24                     // of each stack
	pace     = 60 * time.Millisecond  // of one caller, from call to call
	deadline = 500 * time.Millisecond // of a call

	// patience bounds what has to happen after a fault.
	patience = 30 * time.Second
)

// side is a stack under load, beside the others.
type side struct {
	*tally

	instances []*instance
	stop      func()
}

// run puts f under the load of stacks and holds what was granted to each against its bound.
func (f fault) run(t *testing.T, stacks []stack) []row {
	s := f.build(t)
	var sides []side
	pprof.Do(t.Context(), pprof.Labels("fault", f.name), func(ctx context.Context) {
		begin := time.Now()
		for _, k := range stacks { // all goroutines that are begun in here have the label
			n, all := newTally(k, begin), k.open(t, s) //nolint:contextcheck // a Fleet runs until it is closed
			sides = append(sides, side{n, all, n.load(ctx, all)})
		}
	})
	late := lateness()
	m := s.moments(t, sides)
	m.late = late()
	for _, e := range sides {
		e.stop()
	}
	rows := make([]row, len(sides))
	for i, e := range sides {
		rows[i] = e.end(t, f, s, m)
	}
	if s.felt != nil {
		s.felt()
	}
	checkGone(t, f.name)
	return rows
}

// end holds what came of e, which nobody asks any more, against what was promised.
func (e side) end(t *testing.T, f fault, s *scene, m moments) row {
	t.Helper()
	e.checkCharges(t, e.instances[0].redis, f.bound == "")
	e.checkObserved(t, e.instances)
	for _, i := range e.instances {
		i.close(t)
	}
	e.check(t, s, m)
	e.checkAnswers(t, f)
	return e.row(f, s, m)
}

// moments are when what happened, counted from the beginning.
type moments struct {
	begun, injected, healed, answering, ended time.Duration
	mendsItself                               bool
	late                                      time.Duration // by how much timers were, at most
}

// moments lets the load run, and the fault happen.
func (s *scene) moments(t *testing.T, sides []side) moments {
	t.Helper()
	now := sides[0].now
	m := moments{begun: now()}
	wait(nil, *span/4) // time is what is tested here: the load lasts
	m.injected = now()
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
	m.healed = now()
	for _, e := range sides {
		e.awaitAnswers(t, m.healed)
	}
	m.answering = now()
	wait(nil, *span/4)
	m.ended = now()
	return m
}

// lateness watches by how much timers are late at most, until most is called: so long this machine kept
// callers waiting, and not what they asked.
func lateness() (most func() time.Duration) {
	const interval = 10 * time.Millisecond
	over := make(chan struct{})
	latest := time.Duration(0)
	var wg sync.WaitGroup
	wg.Go(func() {
		for begin := time.Now(); wait(over, interval); begin = time.Now() {
			latest = max(latest, time.Since(begin)-interval)
		}
	})
	return func() time.Duration {
		close(over)
		wg.Wait()
		return latest
	}
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
func (n *tally) load(ctx context.Context, all []*instance) (stop func()) {
	over := make(chan struct{})
	limiters := make([]*headgate.Limiter, len(all))
	for i, store := range all {
		limiters[i] = newLimiter(store)
	}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			wait(over, rand.N(pace))
			every(over, pace, func() { n.ask(ctx, i%len(all), limiters[i%len(all)]) })
		})
	}
	return func() {
		close(over)
		wg.Wait()
	}
}

// ask asks an instance for one key and records the answer.
func (n *tally) ask(ctx context.Context, instance int, l *headgate.Limiter) {
	c := call{instance: instance, key: pick()}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	c.start = n.now()
	if rs := requests(c.key); rs[0].Key == c.key {
		c.ds, c.err = l.AllowEach(ctx, c.key, 1, nil)
	} else {
		c.ds = make([]headgate.Decision, len(rs))
		c.err = l.Store().TakeAll(ctx, rs, c.ds)
	}
	c.end = n.now()
	n.record(c)
}

// checkAnswers holds what callers were told against what f lets them be told.
func (n *tally) checkAnswers(t *testing.T, f fault) {
	t.Helper()
	for text, count := range n.texts {
		t.Logf("%s: %d times: %s", n.stack.name, count, text)
		if (f.quiet || !n.stack.bare) && !strings.Contains(text, "deadline exceeded") {
			t.Errorf("%s: callers were told %q, %d times", n.stack.name, text, count)
		}
	}
	if !n.stack.bare {
		n.checkInstead(t, f)
		return
	}
	for _, want := range f.sees {
		if !n.told(want) {
			t.Errorf("no caller was told %q: the fault was not felt", want)
		}
	}
}

// checkInstead fails the test if the fallback did not decide where the store could not say: then callers
// wait for their deadline, which is what many of them do at once if this machine stands still, and at no other time.
func (n *tally) checkInstead(t *testing.T, f fault) {
	t.Helper()
	if len(f.sees) > 0 && n.instead == 0 {
		t.Errorf("%s: all was the store's answer: the fault was not felt", n.stack.name)
	}
	if n.errors > n.instead+10*callers {
		t.Errorf("%s: %d callers were told errors, and %d what stands in for the store", n.stack.name, n.errors, n.instead)
	}
}
