package demo

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// slow is a store that takes its time for each answer.
type slow struct {
	headgate.Store

	mu      sync.Mutex   // of highest
	takes   atomic.Int64 // nanoseconds, for one answer
	under   atomic.Int64 // answers under way
	highest atomic.Int64 // of them, at the same time
}

func (s *slow) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	s.enter()
	defer s.under.Add(-1)
	select {
	case <-time.After(time.Duration(s.takes.Load())):
	case <-ctx.Done():
		return headgate.Decision{}, ctx.Err()
	}
	return s.Store.Take(ctx, r)
}

func (s *slow) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.highest.Store(max(s.highest.Load(), s.under.Add(1)))
}

func slowStore(takes time.Duration) *slow {
	s := &slow{Store: headgate.NewMemory()}
	s.takes.Store(int64(takes))
	return s
}

// A limit is changed only if the answer says so.
func TestLimitOnStoreThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowStore(0)
		d := newDemo(t, store)
		store.takes.Store(int64(time.Hour))
		if w := ask(d, "POST", "/api/limits", jsonType, `{"left":"7/m fixed-window"}`); w.Code != 503 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if d.lanes[0].limit != firstLeft {
			t.Errorf("refused, and yet the limit is %s", d.lanes[0].limit)
		}
	})
}

// The answer to a change has the level of the new limit: a bucket keeps the fraction that is used.
func TestLevelOfNewLimit(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	read[batchAnswer](t, ask(d, "POST", "/api/requests", jsonType, `{"requests":4}`))
	got := read[state](t, ask(d, "POST", "/api/limits", jsonType, `{"left":"1/h burst 100"}`)).Lanes[0]
	if got.Capacity != 100 || got.Remaining != 60 {
		t.Errorf("%d of %d are left, want 60 of 100", got.Remaining, got.Capacity)
	}
}

// A batch that is too slow tells what was decided of it, even if the store then
// says nothing more.
func TestCutBatch(t *testing.T) {
	for _, stands := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := slowStore(time.Second)
			d := newDemo(t, store)
			if stands {
				time.AfterFunc(5500*time.Millisecond, func() { store.takes.Store(int64(time.Hour)) })
			}
			b := read[batchAnswer](t, ask(d, "POST", "/api/requests", jsonType, `{"requests":1000}`))
			decided := b.Lanes[0].Allowed + b.Lanes[0].Denied
			if !b.Cut || decided < parallel || decided > 10*parallel {
				t.Errorf("%+v", b)
			}
			if (b.State == nil) != stands {
				t.Errorf("the state is %v", b.State)
			}
			if most := d.lanes[1].largest.found; most == 0 {
				t.Error("what was granted does not count")
			}
		})
	}
	if read[batchAnswer](t, ask(newDemo(t, headgate.NewMemory()), "POST", "/api/requests", jsonType, `{"requests":1000}`)).Cut {
		t.Error("a batch that was decided is said to be cut")
	}
}

// Each lane has the time at which it was so, however slow the store is.
func TestTimeOfLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDemo(t, slowStore(2*time.Second))
		begun := epoch(time.Now())
		s := read[state](t, ask(d, "GET", "/api/state", "", ""))
		for what, c := range map[string][2]float64{"left": {s.Lanes[0].At, 1000}, "right": {s.Lanes[1].At, 3000}, "now": {s.Now, 4000}} {
			if got := c[0] - begun; got < c[1]-1 || got > c[1]+1 {
				t.Errorf("%s: after %.3f ms, want %.0f", what, got, c[1])
			}
		}
	})
}
