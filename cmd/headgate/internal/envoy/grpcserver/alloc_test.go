//go:build !race

package grpcserver

import (
	"testing"

	"google.golang.org/grpc/mem"
)

// The memory of a decision, from message to answer, is that of the answer: its bytes, and two
// headers that grpc-go wants around them.
func TestAllocationsOfADecision(t *testing.T) {
	message := benchmarkMessage(t)
	d := deciderFunc(granted)
	c := newCodec()
	data := mem.BufferSlice{mem.SliceBuffer(message)}
	receive := func(v any) error { return c.Unmarshal(data, v) }
	var sent mem.BufferSlice
	allocs := testing.AllocsPerRun(1000, func() {
		reply, err := shouldRateLimit(t.Context(), d, receive)
		if err != nil {
			t.Fatal(err)
		}
		if sent, err = c.Marshal(reply); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 3 {
		t.Errorf("%v allocations, want at most 3", allocs)
	}
	if sent.Len() == 0 {
		t.Error("an empty answer")
	}
}
