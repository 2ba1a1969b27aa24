package limitmap_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/limitmap"
)

func TestAFullMapKeepsItsFirstKeys(t *testing.T) {
	created := 0
	m := limitmap.New(2, func(key int) int { created++; return 10 * key })
	for range 2 {
		for key, want := range []int{0, 10} {
			if value, ok := m.Get(key); value != want || !ok {
				t.Errorf("Get(%d) = %d, %t; want %d, true", key, value, ok, want)
			}
		}
		if value, ok := m.Get(2); value != 0 || ok {
			t.Errorf("Get(2) = %d, %t; want 0, false", value, ok)
		}
	}
	if created != 2 {
		t.Errorf("%d values created; want 2", created)
	}
}

// Goroutines that ask for the same keys at once get one value for each, and the bound holds.
func TestGoroutinesThatAddAtOnce(t *testing.T) {
	const keys, limit = 200, 100
	var created atomic.Int64
	m := limitmap.New(limit, func(int) int64 { return created.Add(1) })
	var got [4][keys]int64
	var all sync.WaitGroup
	for g := range got {
		all.Go(func() {
			for key := range keys {
				got[g][key], _ = m.Get((key + g*keys/8) % keys)
			}
		})
	}
	all.Wait()
	if created.Load() != limit {
		t.Errorf("%d values created; want %d", created.Load(), limit)
	}
	for g := range got {
		for i, value := range got[g] {
			key := (i + g*keys/8) % keys
			if kept, _ := m.Get(key); value != 0 && value != kept {
				t.Errorf("key %d had value %d and later %d", key, value, kept)
			}
		}
	}
}

func TestGetDoesNotAllocate(t *testing.T) {
	m := limitmap.New(1, func(string) *int { return new(int) })
	n := testing.AllocsPerRun(100, func() {
		m.Get("kept")
		m.Get("not kept")
	})
	if n != 0 {
		t.Errorf("%v allocations; want none", n)
	}
}
