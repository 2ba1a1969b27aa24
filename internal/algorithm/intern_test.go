package algorithm

import (
	"runtime"
	"testing"
	"time"
)

// A rule that stays in use is found again however often the collector runs; those that do
// not are forgotten, and made anew.
func TestInternedUntilCollected(t *testing.T) {
	intern := func(name string, n int64) *Rule {
		return Intern(Terms{Name: name, Algorithm: TokenBucket, Capacity: n, Refill: n,
			Every: time.Second}, func(t Terms) *Rule { return NewRule(t, name) })
	}
	kept := intern("kept", 37)
	for i := range int64(3) {
		if made := intern("collected", i+1); made.Capacity != i+1 {
			t.Fatal(made)
		}
		runtime.GC()
		if intern("kept", 37) != kept {
			t.Fatalf("no longer equal after collection %d", i+1)
		}
	}
	runtime.KeepAlive(kept)
	left := func() (n int) {
		rules.Range(func(key, _ any) bool {
			if key.(Terms).Name == "collected" {
				n++
			}
			return true
		})
		return n
	}
	for range 1000 { // cleanups run some time after the collection
		if runtime.GC(); left() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d rules that no limit points to are still known", left())
}
