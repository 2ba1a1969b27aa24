package grpcserver

import (
	"context"
	"net"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// granted is the Decider of the benchmarks, which does nothing.
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

func benchmarkMessage(t testing.TB) []byte {
	t.Helper()
	b, err := proto.Marshal(generatedRequest("edge", "remote_address", "192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// BenchmarkServer compares this server with grpc-go alone. All of them are called by the same
// client, whose cost is part of each.
//
//	floor      options and codec as here, a handler that answers the same bytes unread
//	headgate   decodes and encodes by hand
//	generated  grpc-go as it comes, with generated types
func BenchmarkServer(b *testing.B) {
	reply, err := shouldRateLimit(b.Context(), deciderFunc(granted), func(v any) error {
		return newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(benchmarkMessage(b))}, v)
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("floor", func(b *testing.B) {
		s := New(deciderFunc(granted), Options{})
		floor := grpc.NewServer(s.serverOptions()...)
		floor.RegisterService(&grpc.ServiceDesc{
			ServiceName: "envoy.service.ratelimit.v3.RateLimitService",
			Methods: []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: func(
				_ any, _ context.Context, receive func(any) error, _ grpc.UnaryServerInterceptor,
			) (any, error) {
				var c call
				err := receive(&c)
				c.free()
				return reply, err
			}}},
		}, nil)
		benchmarkCalls(b, listenFor(b, floor))
	})
	b.Run("headgate", func(b *testing.B) {
		_, address := serve(b, deciderFunc(granted), Options{})
		benchmarkCalls(b, address)
	})
	b.Run("generated", func(b *testing.B) {
		s := grpc.NewServer()
		rls.RegisterRateLimitServiceServer(s, generatedServer{})
		benchmarkCalls(b, listenFor(b, s))
	})
}

type generatedServer struct {
	rls.UnimplementedRateLimitServiceServer
}

// ShouldRateLimit grants everything.
func (generatedServer) ShouldRateLimit(
	_ context.Context, request *rls.RateLimitRequest,
) (*rls.RateLimitResponse, error) {
	response := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}
	for range request.GetDescriptors() {
		response.Statuses = append(response.Statuses, &rls.RateLimitResponse_DescriptorStatus{
			Code: rls.RateLimitResponse_OK, LimitRemaining: 99,
			CurrentLimit: &rls.RateLimitResponse_RateLimit{
				RequestsPerUnit: 100, Unit: rls.RateLimitResponse_RateLimit_MINUTE, Name: "100/m",
			},
		})
	}
	return response, nil
}

func listenFor(b *testing.B, s *grpc.Server) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it returns at once
	if err != nil {
		b.Fatal(err)
	}
	go s.Serve(l) //nolint:errcheck // it is stopped below
	b.Cleanup(s.Stop)
	return l.Addr().String()
}

// rawClient is the codec of a client that neither encodes nor decodes.
type rawClient struct{ encoding.CodecV2 }

// Marshal takes a message as it is.
func (rawClient) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

// Unmarshal throws the message away.
func (rawClient) Unmarshal(mem.BufferSlice, any) error { return nil }

func benchmarkCalls(b *testing.B, address string) {
	b.Helper()
	conn := dial(b, address)
	message := benchmarkMessage(b)
	raw := grpc.ForceCodecV2(rawClient{newCodec()})
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := conn.Invoke(context.Background(), method, &message, nil, raw); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
