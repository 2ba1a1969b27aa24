package concurrency_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

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
