//go:build !race

package wire

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// What is decoded, decided and encoded with memory that was used before needs no new memory.
func TestNoAllocations(t *testing.T) {
	message, err := proto.Marshal(toGenerated(&envoy.Request{
		Domain: "edge",
		Descriptors: []envoy.Descriptor{
			{Entries: []envoy.Entry{{Key: "remote_address", Value: "192.0.2.1"}}},
			{
				Entries: []envoy.Entry{{Key: "route", Value: "/v1/x"}, {Key: "user", Value: "42"}},
				HasHits: true, Hits: 3,
			},
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	var request envoy.Request
	var response envoy.Response
	var out []byte
	allocs := testing.AllocsPerRun(100, func() {
		if err := Decode(message, &request); err != nil {
			t.Fatal(err)
		}
		response.Reset()
		grant(&request, &response)
		out = AppendResponse(out[:0], &response)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
	if len(out) == 0 {
		t.Error("an empty response")
	}
}
