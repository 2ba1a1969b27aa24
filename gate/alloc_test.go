//go:build !race

// As alloc_test.go: allocations cannot be counted under the race detector.

package gate

import (
	"runtime"
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

// A gate that has been passed is two objects: one of 128 bytes and its ring.
func TestBytesOfGates(t *testing.T) {
	if size := unsafe.Sizeof(Gate{}); size > 128 {
		t.Errorf("a gate takes %d bytes; want at most 128, a size class", size)
	}
	const gates = 100_000
	before := memory()
	kept := make([]*Gate, gates)
	for i := range kept {
		kept[i] = must(New(100, time.Hour))
		_, _ = kept[i].TryWait(t.Context(), 0)
	}
	t.Logf("%.1f bytes a gate", float64(memory()-before)/gates)
	runtime.KeepAlive(kept)
}
