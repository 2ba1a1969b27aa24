//go:build !race

package grpcserver

import (
	"context"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// granted is a Decider that does nothing.
func granted(_ context.Context, request *envoy.Request, response *envoy.Response) error {
	response.Code = envoy.OK
	for range request.Descriptors {
		response.Statuses = append(response.Statuses, envoy.Status{
			Code: envoy.OK, HasLimit: true, Remaining: 99, Reset: 12e9,
			Limit: envoy.Limit{RequestsPerUnit: 100, Unit: envoy.Minute, Name: "100/m"},
		})
	}
	return nil
}

func encodedRequest(t testing.TB) []byte {
	t.Helper()
	b, err := proto.Marshal(generatedRequest("edge", "remote_address", "192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The memory of a decision, from message to answer, is that of the answer: its bytes, and two
// headers that grpc-go wants around them.
func TestAllocationsOfADecision(t *testing.T) {
	message := encodedRequest(t)
	d := deciderFunc(granted)
	c := newCodec()
	data := mem.BufferSlice{mem.SliceBuffer(message)}
	receive := func(v any) error { return c.Unmarshal(data, v) }
	var sent mem.BufferSlice
	allocs := testing.AllocsPerRun(1000, func() {
		reply, err := shouldRateLimit(t.Context(), d, receive, func(error) {})
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
