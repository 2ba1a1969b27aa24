package chaos

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/gate"
)

// The instances of the bare stack share a gate and permits, and as many callers of each instance
// use them. A permit is in use for a while.
const (
	gatePasses    = 5
	gatePeriod    = 100 * time.Millisecond
	permits       = 3
	permitTTL     = 2 * time.Second
	permitUse     = 30 * time.Millisecond
	sharedCallers = 2
)

// shared is what came of the gate and of the permits.
type shared struct {
	passes []grant // from the last answer of the store, a permit, to when the caller ran
	uses   []grant // while callers had a permit that had not expired
}

// useShared lets callers use the gate and the permits until stop is called.
func (n *tally) useShared(ctx context.Context, all []*instance) (stop func()) {
	over := make(chan struct{})
	var gates []*gate.SharedGate
	var wg sync.WaitGroup
	for _, i := range all {
		g, err := gate.NewShared(timed{i.redis, n}, "gate", gatePasses, gatePeriod)
		if err != nil {
			panic(err)
		}
		p, err := concurrency.New(i.redis, permits, permitTTL)
		if err != nil {
			panic(err)
		}
		gates = append(gates, g)
		for range sharedCallers {
			wg.Go(func() { every(over, pace, func() { n.pass(ctx, g) }) })
			wg.Go(func() { every(over, pace, func() { n.use(ctx, p) }) })
		}
	}
	return func() {
		close(over)
		wg.Wait()
		for _, g := range gates {
			g.Close()
		}
	}
}

// timed is a store of permits that notes when it answered the call of a context.
type timed struct {
	concurrency.Store
	n *tally
}

// answered is the key of a context's value: where the time of the store's last answer is noted.
type answered struct{}

func (s timed) AcquirePermit(ctx context.Context, r concurrency.Request) (concurrency.Decision, error) {
	d, err := s.Store.AcquirePermit(ctx, r)
	*ctx.Value(answered{}).(*time.Duration) = s.n.now()
	return d, err
}

func (s timed) RenewPermit(ctx context.Context, r concurrency.Request) (bool, error) {
	held, err := s.Store.RenewPermit(ctx, r)
	*ctx.Value(answered{}).(*time.Duration) = s.n.now()
	return held, err
}

// pass passes the gate. The pass is between the store's last answer and the end of Wait: this machine may
// keep the caller from running for any time after it.
func (n *tally) pass(ctx context.Context, g *gate.SharedGate) {
	passed := grant{n: 1}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, answered{}, &passed.start), deadline)
	defer cancel()
	err := g.Wait(ctx)
	passed.end = n.now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calls++; err == nil {
		n.shared.passes = append(n.shared.passes, passed)
		return
	}
	n.failShared(err)
}

// use waits for a permit and works for a while.
func (n *tally) use(ctx context.Context, l *concurrency.Limiter) {
	waiting, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	p, err := l.Wait(waiting, "permits")
	g := grant{start: n.now(), n: 1}
	if err == nil {
		wait(nil, permitUse)
		g.end = min(n.now(), p.ExpiresAt().Sub(n.begin))
		releasing, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		err = p.Release(releasing)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls++
	if g.end > g.start {
		n.shared.uses = append(n.shared.uses, g)
	}
	if err != nil && !errors.Is(err, concurrency.ErrExpired) {
		n.failShared(err)
	}
}

// failShared counts an error that is not that no place came free in time.
func (n *tally) failShared(err error) {
	if _, late := errors.AsType[*headgate.DeadlineError](err); !late && !errors.Is(err, context.DeadlineExceeded) {
		n.fail(err, n.now())
	}
}

// checkShared fails the test if more callers passed the gate in a period than it lets pass, or had
// permits at a time: as often again as the server may have forgotten what it knew.
func (n *tally) checkShared(t *testing.T, s *scene) {
	t.Helper()
	if !n.stack.bare {
		return
	}
	times := func(key string) int64 {
		if s.begun == nil {
			return 1
		}
		return 1 + s.begun(&account{key: key, stored: n.stack.prefix() + "{" + key + "}:"})
	}
	t.Logf("%d passes, %d permits", len(n.shared.passes), len(n.shared.uses))
	if over := over(n.shared.passes, perPeriod); over > gatePasses*(times("gate")-1) {
		t.Errorf("%d more than %d passed a gate within %s; it may have been forgotten %d times", over, gatePasses, gatePeriod, times("gate")-1)
	}
	if most := overlapping(n.shared.uses); most > permits*times("permits") {
		t.Errorf("%d of %d permits were in use at a time; they may have been forgotten %d times", most, permits, times("permits")-1)
	}
	if len(n.shared.passes) == 0 || len(n.shared.uses) == 0 {
		t.Error("no caller passed the gate, or none had a permit")
	}
}

// perPeriod is how many pass a gate in any interval shorter than its period.
func perPeriod(d time.Duration) int64 {
	if d < gatePeriod {
		return gatePasses
	}
	return math.MaxInt64
}

// overlapping returns how many of the grants last at the same time, at most.
func overlapping(grants []grant) (most int64) {
	type event struct {
		at time.Duration
		n  int64
	}
	var events []event
	for _, g := range grants {
		events = append(events, event{g.start, g.n}, event{g.end, -g.n})
	}
	slices.SortFunc(events, func(x, y event) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.n, y.n)) })
	held := int64(0)
	for _, e := range events {
		held += e.n
		most = max(most, held)
	}
	return most
}

// TestOverlapping counts what overlaps.
func TestOverlapping(t *testing.T) {
	grants := []grant{{0, 10, 1}, {10, 20, 1}, {5, 12, 1}, {11, 30, 1}, {29, 31, 1}}
	if most := overlapping(grants); most != 3 {
		t.Errorf("%d at a time; want 3", most)
	}
}

// TestPerPeriod finds the window in which too many passed.
func TestPerPeriod(t *testing.T) {
	var passes []grant
	for i := range 20 {
		at := gatePeriod / gatePasses * time.Duration(i)
		passes = append(passes, grant{at, at, 1})
	}
	if over := over(passes, perPeriod); over != 0 {
		t.Errorf("an even pace is %d over", over)
	}
	if over := over(append(passes, grant{gatePeriod + 1, gatePeriod + 2, 1}), perPeriod); over != 1 {
		t.Errorf("one more is %d over; want 1", over)
	}
	if over := over(append(passes, grant{gatePeriod + 1, 3 * gatePeriod, 1}), perPeriod); over != 0 {
		t.Errorf("one more, whose caller ran late, is %d over", over)
	}
}
