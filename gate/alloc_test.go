//go:build !race

// As alloc_test.go: allocations cannot be counted under the race detector.

package gate

import (
	"testing"
	"time"
	"unsafe"
)

func TestAPassDoesNotAllocate(t *testing.T) {
	ctx := t.Context()
	g := must(New(1<<40, time.Millisecond))
	for range 1 << 15 { // until the rings have grown
		_ = g.Wait(ctx)
	}
	for what, pass := range map[string]func(){
		"Wait":    func() { _ = g.Wait(ctx) },
		"WaitN":   func() { _ = g.WaitN(ctx, 3) },
		"TryWait": func() { _, _ = g.TryWait(ctx, 0) },
		"Peek":    func() { g.Peek() },
	} {
		if n := testing.AllocsPerRun(1000, pass); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}

// A gate is one object of a size class, and its ring.
func TestBytesOfGates(t *testing.T) {
	if size := unsafe.Sizeof(Gate{}); size > 128 {
		t.Errorf("a gate takes %d bytes; want at most 128, a size class", size)
	}
}
