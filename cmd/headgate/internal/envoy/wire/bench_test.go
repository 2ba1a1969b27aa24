package wire

import (
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

func grant(request *envoy.Request, response *envoy.Response) {
	response.Code = envoy.OK
	for range request.Descriptors {
		response.Statuses = append(response.Statuses, envoy.Status{
			Code: envoy.OK, HasLimit: true, Remaining: 99, Reset: 12 * time.Second,
			Limit: envoy.Limit{
				RequestsPerUnit: 100, Unit: envoy.Minute, Multiplier: 5, Name: "100/5m",
			},
		})
	}
}

func BenchmarkDecodeEncode(b *testing.B) {
	one := envoy.Descriptor{Entries: []envoy.Entry{{Key: "remote_address", Value: "192.0.2.1"}}}
	message, err := proto.Marshal(toGenerated(&envoy.Request{
		Domain: "edge", Descriptors: []envoy.Descriptor{one},
	}))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("by hand", func(b *testing.B) {
		var request envoy.Request
		var response envoy.Response
		var out []byte
		b.ReportAllocs()
		for b.Loop() {
			if err := Decode(message, &request); err != nil {
				b.Fatal(err)
			}
			response.Reset()
			grant(&request, &response)
			out = AppendResponse(out[:0], &response)
		}
	})
	b.Run("generated", func(b *testing.B) {
		var granted envoy.Response
		grant(&envoy.Request{Descriptors: make([]envoy.Descriptor, 1)}, &granted)
		var response rls.RateLimitResponse
		if err := proto.Unmarshal(AppendResponse(nil, &granted), &response); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			var request rls.RateLimitRequest
			if err := proto.Unmarshal(message, &request); err != nil {
				b.Fatal(err)
			}
			if _, err := proto.Marshal(&response); err != nil {
				b.Fatal(err)
			}
		}
	})
}
