package concurrency_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

func TestPermitOfADeadHolderExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, concurrency.NewMemory(), 1, 10*time.Second)
		dead := acquire(t, l)
		time.Sleep(4 * time.Second)
		_, d, _ := l.Acquire(t.Context(), "k")
		if want := (concurrency.Decision{Limit: 1, InUse: 1,
			RetryAfter: 6 * time.Second}); d != want {
			t.Errorf("after 4 s: %+v; want %+v", d, want)
		}
		start := time.Now()
		next, err := l.Wait(t.Context(), "k")
		if waited := time.Since(start); err != nil || waited != 6*time.Second {
			t.Errorf("waited %s, error %v; want 6s", waited, err)
		}
		for range 2 {
			if err := dead.Renew(t.Context()); !errors.Is(err, concurrency.ErrExpired) {
				t.Errorf("renewed after it expired: %v", err)
			}
			if err := dead.Release(t.Context()); !errors.Is(err, concurrency.ErrExpired) {
				t.Errorf("released after it expired: %v", err)
			}
		}
		wantInUse(t, l, 1) // the expired permit released no other
		release(t, next)
	})
}

func TestExpiryIsKnownToTheFirstCallThatMeetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, concurrency.NewMemory(), 1, 10*time.Second)
		p := acquire(t, l)
		time.Sleep(10 * time.Second)
		for range 2 {
			if err := p.Release(t.Context()); !errors.Is(err, concurrency.ErrExpired) {
				t.Errorf("released after it expired: %v", err)
			}
		}
		if err := p.Renew(t.Context()); !errors.Is(err, concurrency.ErrExpired) {
			t.Errorf("renewed after it expired: %v", err)
		}
	})
}

func TestKeepRenewsUntilTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, concurrency.NewMemory(), 1, 10*time.Second)
		p := acquire(t, l)
		kept, cancel := p.Keep(t.Context())
		defer cancel()
		time.Sleep(time.Minute)
		wantInUse(t, l, 1)
		if kept.Err() != nil {
			t.Errorf("after a minute: %v", context.Cause(kept))
		}
		release(t, p)
		<-kept.Done()
		if err := context.Cause(kept); !errors.Is(err, concurrency.ErrReleased) {
			t.Errorf("ended by %v", err)
		}
	})
}

func TestAPermitReleasedLaterIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, concurrency.NewMemory(), 1, 10*time.Second)
		p := acquire(t, l)
		kept, cancel := p.Keep(t.Context())
		defer cancel()
		time.Sleep(15 * time.Second)
		served := make(chan time.Duration)
		released := time.Now()
		go func() {
			_, err := l.Wait(t.Context(), "k")
			if err != nil {
				t.Error(err)
			}
			served <- time.Since(released)
		}()
		synctest.Wait()
		if _, invalid := errors.AsType[*headgate.InvalidError](
			p.ReleaseAfter(t.Context(), -1)); !invalid || kept.Err() != nil {
			t.Errorf("released before now: want an error, and a permit that is kept: %v",
				context.Cause(kept))
		}
		if err := p.ReleaseAfter(t.Context(), 25*time.Second); err != nil {
			t.Error(err)
		}
		<-kept.Done()
		for _, err := range []error{
			context.Cause(kept), p.Release(t.Context()), p.ReleaseAfter(t.Context(), time.Hour),
			p.Renew(t.Context()),
		} {
			if !errors.Is(err, concurrency.ErrReleased) {
				t.Errorf("after the release: %v; want %v", err, concurrency.ErrReleased)
			}
		}
		if took := <-served; took != 25*time.Second {
			t.Errorf("the next caller was served %s after the release; want 25s", took)
		}
	})
}

func TestPermitExpiresAfterKeepIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, concurrency.NewMemory(), 1, 10*time.Second)
		_, cancel := acquire(t, l).Keep(t.Context())
		time.Sleep(7 * time.Second) // renewed after 3.3 and 6.7
		cancel()
		start := time.Now()
		if _, err := l.Wait(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if waited := time.Since(start).Round(
			100 * time.Millisecond); waited != 9700*time.Millisecond {
			t.Errorf("waited %s after the last renewal at 6.7 s; want 9.7s", waited)
		}
	})
}

// unreachable is a store that does not answer renewals.
type unreachable struct {
	concurrency.Store

	hangs    bool // until the context ends, instead of failing at once
	renewals int
}

func (s *unreachable) RenewPermit(ctx context.Context, _ concurrency.Request) (bool, error) {
	s.renewals++
	if s.hangs {
		<-ctx.Done()
	}
	return false, errors.New("no answer")
}

func TestKeepEndsWhenThePermitMayHaveExpired(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := &unreachable{Store: concurrency.NewMemory(), hangs: hangs}
			p := acquire(t, newLimiter(t, store, 1, 10*time.Second))
			start := time.Now()
			kept, cancel := p.Keep(t.Context())
			defer cancel()
			<-kept.Done()
			err, after := context.Cause(kept), time.Since(start)
			if !errors.Is(err, concurrency.ErrExpired) || after != 10*time.Second {
				t.Errorf("ended by %v after %s", err, after)
			}
			if n := store.renewals; n < 1 || n > 40 || !hangs && n < 4 {
				t.Errorf("asked the store %d times", n)
			}
		})
	}
}

// The clock of the store jumped, and another caller has the place.
func TestKeepEndsWhenThePermitExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := concurrency.NewMemory()
		p := acquire(t, newLimiter(t, store, 1, 10*time.Second))
		kept, cancel := p.Keep(t.Context())
		defer cancel()
		later := concurrency.Request{
			Key: "k", ID: concurrency.PermitID{1}, Limit: 1, TTL: time.Hour,
			At: time.Now().Add(time.Minute),
		}
		if d, err := store.AcquirePermit(t.Context(), later); !d.Allowed() || err != nil {
			t.Fatal(d, err)
		}
		start := time.Now()
		<-kept.Done()
		err, after := context.Cause(kept), time.Since(start)
		if !errors.Is(err, concurrency.ErrExpired) || after > 4*time.Second {
			t.Errorf("ended by %v after %s", err, after)
		}
	})
}

// losesAnswers is a store whose answers to releases get lost.
type losesAnswers struct {
	concurrency.Store

	n int // so many
}

func (s *losesAnswers) ReleasePermit(ctx context.Context, r concurrency.Request) (bool, error) {
	held, err := s.Store.ReleasePermit(ctx, r)
	if s.n--; s.n >= 0 {
		return false, errors.Join(err, errors.New("no answer"))
	}
	return held, err
}

func TestReleaseCanBeRepeatedAfterAnError(t *testing.T) {
	l := newLimiter(t, &losesAnswers{concurrency.NewMemory(), 2}, 2, time.Hour)
	a, b := acquire(t, l), acquire(t, l)
	for range 2 {
		err := a.Release(t.Context())
		if err == nil || errors.Is(err, concurrency.ErrReleased) ||
			errors.Is(err, concurrency.ErrExpired) {
			t.Errorf("a lost answer gave %v", err)
		}
	}
	for _, want := range []error{nil, concurrency.ErrReleased, concurrency.ErrReleased} {
		if err := a.Release(t.Context()); !errors.Is(err, want) {
			t.Errorf("again: %v; want %v", err, want)
		}
	}
	release(t, b)
}

func TestPermitIsReleasedOnce(t *testing.T) {
	l := newLimiter(t, concurrency.NewMemory(), 8, time.Hour)
	for range 7 {
		acquire(t, l)
	}
	p := acquire(t, l)
	var released atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			switch err := p.Release(t.Context()); {
			case err == nil:
				released.Add(1)
			case !errors.Is(err, concurrency.ErrReleased):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if released.Load() != 1 {
		t.Errorf("%d calls released the permit; want 1", released.Load())
	}
	if err := p.Renew(t.Context()); !errors.Is(err, concurrency.ErrReleased) {
		t.Errorf("renewed after the release: %v", err)
	}
	wantInUse(t, l, 7)
}
