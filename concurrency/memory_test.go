package concurrency_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/limittest"
)

func TestMemory(t *testing.T) {
	limittest.RunPermits(t, func(*testing.T) concurrency.Store { return concurrency.NewMemory() })
}

func TestMemoryForgetsKeysWithoutPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := concurrency.NewMemory()
		l := newLimiter(t, m, 1, time.Minute)
		for i := range 1000 {
			p, _, err := l.Acquire(t.Context(), strconv.Itoa(i))
			if err != nil {
				t.Fatal(err)
			}
			release(t, p)
		}
		if n := m.Keys(); n != 0 {
			t.Errorf("%d keys after all permits were released", n)
		}
		for round := range 10 { // in each, 2,000 holders die
			for i := range 2000 {
				if _, _, err := l.Acquire(t.Context(), fmt.Sprint(round, i)); err != nil {
					t.Fatal(err)
				}
			}
			if n := m.Keys(); n > 2*2*2000 {
				t.Errorf("%d keys, of which 2000 have permits in use", n)
			}
			time.Sleep(time.Minute)
		}
	})
}

// A request with a time ahead removes what has expired of its own key, and no permits of others.
func TestARequestWithATimeAheadLeavesOtherKeysAlone(t *testing.T) {
	m := concurrency.NewMemory()
	r := concurrency.Request{ID: concurrency.PermitID{1}, Limit: 1, TTL: time.Hour}
	for i := range 1000 { // among which Memory looks for keys whose permits have expired
		r.Key, r.At = strconv.Itoa(i), time.Time{}
		if i%2 > 0 {
			r.At = time.Now().Add(24 * time.Hour)
		}
		if d, err := m.AcquirePermit(t.Context(), r); err != nil || !d.Allowed() {
			t.Fatal(d, err)
		}
	}
	r.At = time.Time{}
	for i := range 1000 {
		r.Key = strconv.Itoa(i)
		if held, err := m.RenewPermit(t.Context(), r); err != nil || !held {
			t.Fatalf("permit %d is not in use any more: %v", i, err)
		}
	}
}

func TestBytesPerPermit(t *testing.T) {
	for _, shape := range []struct{ keys, each int }{{50_000, 1}, {500, 100}} {
		m := concurrency.NewMemory()
		names := make([]string, shape.keys)
		for i := range names {
			names[i] = fmt.Sprintf("user:%08d", i)
		}
		before := heap()
		for i, key := range names {
			for j := range shape.each {
				id := concurrency.PermitID{1, byte(i), byte(i >> 8), byte(i >> 16), byte(j)}
				r := concurrency.Request{Key: key, ID: id, Limit: 100, TTL: time.Hour}
				if _, err := m.AcquirePermit(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
		}
		bytes := float64(heap()-before) / float64(shape.keys*shape.each)
		runtime.KeepAlive(m)
		t.Logf("%d keys, %d permits each: %.0f bytes per permit, without the key", shape.keys,
			shape.each, bytes)
		if limit := 40 + 130/float64(shape.each); bytes > limit {
			t.Errorf("%.0f bytes per permit; want at most %.0f", bytes, limit)
		}
	}
}

// heap returns the bytes in use. Two collections free what other tests left.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkPermit acquires and releases a permit while others are in use.
func BenchmarkPermit(b *testing.B) {
	for _, others := range []int{0, 10, 100, 1000} {
		b.Run(strconv.Itoa(others)+" others", func(b *testing.B) {
			l := newLimiter(b, concurrency.NewMemory(), 10_000, time.Hour)
			for range others {
				acquire(b, l)
			}
			b.ReportAllocs()
			for b.Loop() {
				p, _, err := l.Acquire(b.Context(), "k")
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Release(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
