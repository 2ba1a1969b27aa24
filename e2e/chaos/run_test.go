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
	m := s.moments(t, f, sides)
	m.late = late()
	for _, e := range sides {
		e.stop()
	}
	rows := make([]row, len(sides))
	for i, e := range sides {
		rows[i] = e.end(t, f, s, m)
	}
	checkGone(t, f.name)
	return rows
}

// end compares the results of e, which has no callers any more, with what was promised.
func (e side) end(t *testing.T, f fault, s *scene, m moments) row {
	t.Helper()
	e.checkCharges(t, e.instances[0].redis, f.bound == "")
	e.checkObserved(t, e.instances)
	for _, i := range e.instances {
		i.close(t)
	}
	e.check(t, s, m)
	e.checkShared(t, s)
	e.checkAnswers(t, f)
	return e.row(f, s, m)
}

// moments are when what happened, counted from the beginning.
type moments struct {
	begun, injected, healed, answering, ended time.Duration
	mendsItself                               bool
	late                                      time.Duration // by how much timers were, at most
}

// moments lets the load run, and the fault last until it has been felt.
func (s *scene) moments(t *testing.T, f fault, sides []side) moments {
	t.Helper()
	now := sides[0].now
	m := moments{begun: now()}
	wait(nil, *span/4) // time is what is tested here: the load lasts
	for _, e := range sides {
		e.awaitShortcuts(t)
	}
	m.injected = now()
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { s.inject(over) })
	wait(nil, *span/2)
	for _, e := range sides {
		until(t, e.stack.name+": harmed", func() bool { return len(e.unseen(f)) == 0 })
	}
	if s.felt != nil {
		until(t, "felt by the servers", func() bool { return s.felt() == nil })
	}
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
		random := rand.New(rand.NewPCG(*seed, uint64(i)))
		wg.Go(func() {
			wait(over, time.Duration(random.Int64N(int64(pace))))
			every(over, pace, func() { n.ask(ctx, random, i%len(all), limiters[i%len(all)]) })
		})
	}
	leave := func() {}
	if n.stack.bare {
		leave = n.useShared(ctx, all)
	}
	return func() {
		close(over)
		wg.Wait()
		leave()
	}
}

// ask asks an instance for one key and records the answer.
func (n *tally) ask(ctx context.Context, random *rand.Rand, instance int, l *headgate.Limiter) {
	c := call{instance: instance}
	c.key, c.cost = pick(random)
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	switch loadOf(c.key).way {
	case waits:
		n.wait(ctx, random, l, c)
	case reserves:
		n.reserve(ctx, random, l, c)
	default:
		n.allow(ctx, l, c)
	}
}

// allow asks for a grant now.
func (n *tally) allow(ctx context.Context, l *headgate.Limiter, c call) {
	c.start = n.now()
	if rs := requests(c.key, c.cost); rs[0].Key == c.key {
		c.ds, c.err = l.AllowEach(ctx, c.key, c.cost, nil)
	} else {
		c.ds = make([]headgate.Decision, len(rs))
		c.err = l.Store().TakeAll(ctx, rs, c.ds)
	}
	c.end = n.now()
	n.record(c)
}

// unseen returns what callers must have been answered under f and have not.
func (n *tally) unseen(f fault) (missing []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.stack.bare {
		if len(f.sees) > 0 && n.instead == 0 {
			return []string{"a decision that is not the store's"}
		}
		return nil
	}
	for _, want := range f.sees {
		if !n.told(want) {
			missing = append(missing, want)
		}
	}
	return missing
}

// checkAnswers fails the test if callers got errors that f does not allow. Only on a busy machine
// does a caller's deadline end or the client of a bare store time out. With a fallback, callers wait
// for their deadline only if this machine stands still, which many do at once then.
func (n *tally) checkAnswers(t *testing.T, f fault) {
	t.Helper()
	for text, count := range n.texts {
		t.Logf("%s: %d times: %s", n.stack.name, count, text)
		late := strings.Contains(text, "deadline exceeded") ||
			n.stack.bare && strings.Contains(text, "i/o timeout")
		if (f.quiet || !n.stack.bare) && !late {
			t.Errorf("%s: callers got %q, %d times", n.stack.name, text, count)
		}
	}
	if missing := n.unseen(f); len(missing) > 0 {
		t.Errorf("%s: the fault was not felt: no caller got %q", n.stack.name, missing)
	}
	if !n.stack.bare && n.errors > n.instead+10*callers {
		t.Errorf("%s: %d callers got errors, and %d a decision that is not the store's", n.stack.name, n.errors, n.instead)
	}
}
