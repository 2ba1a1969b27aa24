package pause

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// before is a store that calls a function before it takes several requests of a cost below 0.
type before struct {
	headgate.Store

	refund func()
}

func (b before) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	if rs[0].Cost < 0 {
		b.refund()
	}
	return b.Store.TakeAll(ctx, rs, ds)
}

// newPauses are the pauses of a client whose limit is 5 a minute.
func newPauses(t *testing.T, store headgate.Store, p *Pauses[string]) *headgate.Limiter {
	t.Helper()
	l, err := headgate.NewLimiter(store, headgate.FixedWindow(5, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Init(l); err != nil {
		t.Fatal(err)
	}
	return l
}

func wantLeft(t *testing.T, l *headgate.Limiter, want int64) {
	t.Helper()
	if d, err := l.Peek(t.Context(), "k"); err != nil || d.Remaining != want {
		t.Errorf("%d remain, %v; want %d", d.Remaining, err, want)
	}
}

// What is taken during a pause goes back to its own window: a refund that comes after its end gives
// the next window nothing.
func TestLateRefundOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := headgate.NewMemorySize(10)
		var l *headgate.Limiter
		p := Pauses[string]{}
		l = newPauses(t, before{memory, func() {
			time.Sleep(time.Minute)
			if _, err := l.Allow(t.Context(), "k"); err != nil {
				t.Error(err)
			}
		}}, &p)
		if err := (Store{memory}).Extend(t.Context(), "k", time.Hour); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := p.Wait(ctx, "r", "k", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("during a pause: %v", err)
		}
		time.Sleep(90 * time.Second)
		wantLeft(t, l, 4)
	})
}

// noPermits is a store of permits that is away.
type noPermits struct{ concurrency.Store }

func (noPermits) AcquirePermit(
	context.Context, concurrency.Request,
) (concurrency.Decision, error) {
	return concurrency.Decision{}, errors.New("the store is away")
}

// A request that gets no permit in time charges nothing. With Open, one whose permits cannot be
// asked for is sent at once, and is charged.
func TestTurnsWithoutAPermit(t *testing.T) {
	for name, c := range map[string]struct {
		store concurrency.Store
		sent  bool
		left  int64
	}{
		"all in use": {concurrency.NewMemory(), false, 5},
		"store away": {noPermits{concurrency.NewMemory()}, true, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			permits, err := concurrency.New(c.store, 1, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			_, _, _ = permits.Acquire(t.Context(), "k")
			p := Pauses[string]{Open: true, Permits: permits, Period: time.Second}
			l := newPauses(t, headgate.NewMemorySize(10), &p)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			begun := time.Now()
			_, permit, err := p.Wait(ctx, "r", "k", 1)
			if (err == nil) != c.sent || permit != nil || c.sent != (time.Since(begun) == 0) {
				t.Errorf("%s: %v after %s", name, err, time.Since(begun))
			}
			synctest.Wait()
			wantLeft(t, l, c.left)
		})
	}
}
