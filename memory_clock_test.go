package headgate

import (
	"testing"
	"testing/synctest"
	"time"
)

// The clock of the store and the times of requests are one.
func TestMemoryHasAClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemorySize(10)
		l := PerSecond(1)
		allowed := func(at time.Time) bool {
			return must(m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: 1, At: at})).Allowed()
		}
		for i, c := range []struct {
			wait    time.Duration
			at      time.Duration // since now; 0: the store's own clock
			allowed bool
			remark  string
		}{
			{0, 0, true, "the first"},
			{time.Second - time.Microsecond, 0, false, "a microsecond early"},
			{time.Microsecond, 0, true, "in time"},
			{0, time.Second, true, "at a time that has not come"},
			{time.Second, 0, false, "by when it has been taken"},
			{time.Second, 0, true, "and a second later it is back"},
		} {
			time.Sleep(c.wait)
			at := time.Time{}
			if c.at != 0 {
				at = time.Now().Add(c.at)
			}
			if allowed(at) != c.allowed {
				t.Errorf("row %d (%s): allowed %v", i+1, c.remark, !c.allowed)
			}
		}
	})
}

// Parts of a microsecond do not count.
func TestTimesAreCutToMicroseconds(t *testing.T) {
	m := NewMemorySize(10)
	l := PerSecond(1)
	for i, c := range []struct {
		after   time.Duration
		allowed bool
	}{{999, true}, {time.Second - 1, false}, {time.Second, true}, {2*time.Second + 500, true}, {3*time.Second - 1, false}, {3 * time.Second, true}} {
		if d := ask(t, m, "k", l, 1, c.after); d.Allowed() != c.allowed {
			t.Errorf("row %d, at %v: %+v", i+1, c.after, d)
		}
	}
	// The first and the last instants that a request can have.
	for _, at := range []time.Time{time.UnixMicro(1), time.UnixMicro(1).Add(999), time.UnixMicro(maxExact - 1e6), time.Unix(maxExact/1_000_000-1, 999_999_999).In(time.FixedZone("", 3600))} {
		r := Request{Key: at.String(), Limit: l, Cost: 1, At: at}
		if d, err := m.Take(t.Context(), r); err != nil || !d.Allowed() || d.ResetAfter != time.Second {
			t.Errorf("at %v: %+v, %v", at, d, err)
		}
	}
}
