package concurrency_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

func newLimiter(
	t testing.TB, s concurrency.Store, limit int64, ttl time.Duration,
) *concurrency.Limiter {
	t.Helper()
	l, err := concurrency.New(s, limit, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// acquire returns a permit of the key "k", which must be free.
func acquire(t testing.TB, l *concurrency.Limiter) *concurrency.Permit {
	t.Helper()
	p, d, err := l.Acquire(t.Context(), "k")
	if err != nil || p == nil {
		t.Fatalf("denied: %+v, %v", d, err)
	}
	return p
}

func release(t testing.TB, p *concurrency.Permit) {
	t.Helper()
	if err := p.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func wantInUse(t testing.TB, l *concurrency.Limiter, want int64) {
	t.Helper()
	if d, err := l.Peek(t.Context(), "k"); err != nil || d.InUse != want {
		t.Errorf("%d in use, error %v; want %d", d.InUse, err, want)
	}
}

func TestNewRejectsInvalidInput(t *testing.T) {
	m := concurrency.NewMemory()
	for _, c := range []struct {
		store concurrency.Store
		limit int64
		ttl   time.Duration
		want  string
	}{
		{m, 0, time.Second, "limit is 0"},
		{m, 65536, time.Second, "limit is 65536"},
		{m, 1, time.Millisecond - 1, "ttl is 999.999µs"},
		{m, 1, 8760*time.Hour + 1, "ttl is 8760h0m0.000000001s"},
		{m, 1, -1, "ttl is -1ns"},
		{nil, 1, 1, "store is nil"},
		{(*concurrency.Memory)(nil), 1, 1, "is nil; want a concurrency.Store"},
	} {
		l, err := concurrency.New(c.store, c.limit, c.ttl)
		_, ok := errors.AsType[*headgate.InvalidError](err)
		if !ok || !strings.Contains(err.Error(), c.want) || l != nil {
			t.Errorf("%v, error %v; want an InvalidError with %q", l, err, c.want)
		}
	}
	newLimiter(t, m, 65535, time.Millisecond)
}

// Limiters of one store count the same permits, each against its own limit.
func TestLimitersOfOneStore(t *testing.T) {
	m := concurrency.NewMemory()
	three, two := newLimiter(t, m, 3, time.Hour), newLimiter(t, m, 2, time.Hour)
	for i, p := range []*concurrency.Permit{acquire(t, three), acquire(t, three),
		acquire(t, three)} {
		if err := p.Renew(t.Context()); err != nil {
			t.Errorf("a permit in use beyond the lower limit: %v", err)
		}
		other, d, err := two.Acquire(t.Context(), "k")
		if granted := i == 2; (other != nil) != granted || err != nil || d.Limit != 2 {
			t.Errorf("with %d in use: %+v, %v", 3-i, d, err)
		}
		release(t, p)
	}
	four := newLimiter(t, m, 4, time.Hour)
	for range 3 {
		acquire(t, four)
	}
	wantInUse(t, four, 4)
}

func TestLimiterDoesNothingForAContextThatHasEnded(t *testing.T) {
	l := newLimiter(t, concurrency.NewMemory(), 2, time.Hour)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if p, d, err := l.Acquire(ended, "k"); p != nil || d.Allowed() ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("Acquire: %+v, %v", d, err)
	}
	if d, err := l.Peek(ended, "k"); d.Allowed() || !errors.Is(err, context.Canceled) {
		t.Errorf("Peek: %+v, %v", d, err)
	}
	if p, err := l.Wait(ended, "k"); p != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
	wantInUse(t, l, 0)
}

// Callers that leave headroom get permits until only that many are free; the others get all.
func TestPermitsWithHeadroom(t *testing.T) {
	l, err := concurrency.New(concurrency.NewMemory(), 10, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var last *concurrency.Permit
	acquire := func(headroom int64, times int) (granted int) {
		for range times {
			p, d, err := l.AcquireWithHeadroom(t.Context(), "k", headroom)
			if err != nil || d.Limit != 10 || (p != nil) != d.Allowed() {
				t.Fatal(p, d, err)
			}
			if p != nil {
				last = p
				granted++
			} else if d.RetryAfter <= 0 || d.RetryAfter == headgate.Never {
				t.Errorf("denied: %+v", d)
			}
		}
		return granted
	}
	for _, class := range []struct {
		headroom int64
		granted  int
	}{{5, 5}, {2, 3}, {0, 2}} {
		if n := acquire(class.headroom, 12); n != class.granted {
			t.Errorf("headroom %d: %d permits; want %d", class.headroom, n, class.granted)
		}
	}
	if err := last.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if acquire(1, 1) != 0 || acquire(0, 1) != 1 {
		t.Error("one permit is free: a caller that leaves one got it, or a critical one did not")
	}
	for _, headroom := range []int64{10, 11, math.MaxInt64} {
		p, d, err := l.AcquireWithHeadroom(t.Context(), "another", headroom)
		if p != nil || err != nil || d.RetryAfter != headgate.Never {
			t.Errorf("headroom %d of 10: %v, %+v, %v", headroom, p, d, err)
		}
	}
	_, _, err = l.AcquireWithHeadroom(t.Context(), "k", -1)
	if e, ok := errors.AsType[*headgate.InvalidError](err); !ok || e.Field != "headroom" {
		t.Errorf("headroom -1: %v", err)
	}
}
